//! Which constants are fitted to which rows.

/// A constant that is searched for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// The least that it can be.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// Where the search begins: what manuals and sources say.
    pub start: f64,
    /// Whether the search goes in equal factors instead of equal steps.
    pub logarithmic: bool,
}

impl Knob {
    /// The value at a place from 0 to 1 of its range.
    #[must_use]
    pub fn at(&self, place: f64) -> f64 {
        if self.logarithmic {
            self.low * (self.high / self.low).powf(place)
        } else {
            self.low + place * (self.high - self.low)
        }
    }

    /// The place of a value in its range.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let place = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }
}

/// Constants that are fitted together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Study {
    /// Its name.
    pub name: &'static str,
    /// The tables that it simulates.
    pub tables: &'static [&'static str],
    /// The constants.
    pub knobs: &'static [Knob],
    /// Whether a factor between simulated and published unit is fitted as well.
    pub scaled: bool,
    /// What the constants are, for people.
    pub about: &'static str,
}

const fn knob(name: &'static str, low: f64, high: f64, start: f64) -> Knob {
    Knob { name, low, high, start, logarithmic: false }
}

/// One of which nobody knows the order of magnitude.
const fn logarithmic(name: &'static str, low: f64, high: f64, start: f64) -> Knob {
    Knob { name, low, high, start, logarithmic: true }
}

/// All of them, each after those whose constants it uses.
pub const STUDIES: &[Study] = &[
    Study {
        name: "x5-4",
        tables: &["002-locktorture"],
        knobs: &[
            knob("same_socket", 25.0, 80.0, 45.0),
            knob("other_socket", 70.0, 220.0, 130.0),
            knob("near_bias", 0.0, 1.0, 0.3),
            knob("queued", 0.3, 1.0, 0.67),
            knob("invalidate", 0.0, 6.0, 2.0),
            knob("inside_ns", 0.0, 60.0, 20.0),
            knob("outside_ns", 0.0, 80.0, 40.0),
        ],
        scaled: false,
        about: "transfers on the X5-4, and what a writer of lock torture computes",
    },
    Study {
        name: "open1",
        tables: &["002-open1"],
        knobs: &[knob("outside_ns", 500.0, 2500.0, 1800.0)],
        scaled: false,
        about: "the code of open and close outside of the lock",
    },
    Study {
        name: "lock2",
        tables: &["002-lock2"],
        knobs: &[knob("outside_ns", 200.0, 1500.0, 1000.0)],
        scaled: false,
        about: "the code of fcntl outside of the locks, for a pair of calls",
    },
    Study {
        name: "leveldb",
        tables: &["002-leveldb"],
        knobs: &[knob("outside_ns", 500.0, 2500.0, 1700.0)],
        scaled: false,
        about: "a search, outside of the mutex",
    },
    Study {
        name: "fsmark-nosync",
        tables: &["002-fsmark-nosync"],
        knobs: &[knob("outside_ns", 100.0, 8000.0, 1500.0), knob("inside_ns", 0.0, 400.0, 50.0)],
        scaled: true,
        about: "work between two sections, a section, and sections a file",
    },
    Study {
        name: "fsmark-fsync",
        tables: &["002-fsmark-fsync"],
        knobs: &[knob("outside_ns", 100.0, 8000.0, 3000.0), knob("inside_ns", 0.0, 400.0, 50.0)],
        scaled: true,
        about: "work between two sections, a section, and sections a file",
    },
    Study {
        name: "aim7",
        tables: &["002-aim7"],
        knobs: &[knob("outside_ns", 1000.0, 60000.0, 15000.0), knob("inside_ns", 0.0, 400.0, 50.0)],
        scaled: true,
        about: "work between two sections, a section, and sections a job",
    },
    Study {
        name: "xeon-8380l",
        tables: &["003-1", "003-32", "003-128"],
        knobs: &[
            knob("same_socket", 30.0, 90.0, 50.0),
            knob("other_socket", 70.0, 220.0, 130.0),
            knob("near_bias", 0.0, 1.0, 0.3),
            knob("queued", 0.2, 1.0, 0.67),
            knob("read_occupancy", 1.0, 20.0, 6.0),
            knob("overhead_ns", 5.0, 60.0, 20.0),
        ],
        scaled: false,
        about: "transfers on the 8380L, and the benchmark's loop; its unit is 15 cycles, as its source says",
    },
    Study {
        name: "x3650",
        tables: &["001-A", "001-B", "001-C"],
        knobs: &[
            logarithmic("outside_ns", 2e4, 2e6, 2e5),
            logarithmic("inside_ns", 500.0, 2e5, 1e4),
            knob("hot", 0.0, 0.6, 0.1),
            knob("idle", 0.0, 0.8, 0.3),
        ],
        scaled: true,
        about: "what a kernel build does with its locks, how much of it its CPUs sleep, and how long it is",
    },
    Study {
        name: "haswell-ex",
        tables: &["000-haswell"],
        knobs: &[
            logarithmic("outside_ns", 5e3, 2e5, 3e4),
            logarithmic("inside_ns", 200.0, 2e4, 1e3),
            knob("hot", 0.0, 0.6, 0.1),
            knob("idle", 0.0, 0.8, 0.0),
        ],
        scaled: true,
        about: "what a kernel build does with its locks, how much of it its CPUs sleep, and how long it is",
    },
    Study {
        name: "westmere-ex",
        tables: &["000-westmere", "000-pending"],
        knobs: &[],
        scaled: true,
        about: "how long the build is on this machine; what it does is haswell-ex's",
    },
    Study {
        name: "statistics",
        tables: &["000-latencies", "000-statistics"],
        knobs: &[],
        scaled: true,
        about: "what a kick and a wake-up take is the document's; and how often the build takes the pending bit",
    },
    Study {
        name: "stated",
        tables: &["002-tpcc", "003-gcc"],
        knobs: &[],
        scaled: false,
        about: "nothing is fitted to what is stated without a table",
    },
    Study {
        name: "power9",
        tables: &["004-openclose", "004-dbench", "004-single"],
        knobs: &[knob("other_socket", 100.0, 1200.0, 160.0)],
        scaled: false,
        about: "transfers between sockets of the POWER9, from the queued lock's throughput",
    },
];

/// The study that a table belongs to.
#[must_use]
pub fn study_of(table: &str) -> Option<&'static Study> {
    STUDIES.iter().find(|study| study.tables.contains(&table))
}

/// Where the search for a constant begins.
pub(super) fn start(study: &str, name: &str) -> f64 {
    let knobs = STUDIES.iter().filter(|it| it.name == study).flat_map(|it| it.knobs);
    knobs.filter(|knob| knob.name == name).map(|knob| knob.start).next().unwrap_or(0.0)
}
