//! pprof's protobuf: `profile.proto` of <https://github.com/google/pprof>, as much of it as is written here.

use std::collections::BTreeMap;

use prost::Message;

use super::Sample;

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Stack>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Stack {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
    #[prost(int64, tag = "3")]
    num: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The sample types: how often and how long stacks waited, and how often and how long others waited for their releases.
const TYPES: [(&str, &str); 4] = [
    ("contentions", "count"),
    ("delay", "nanoseconds"),
    ("releases", "count"),
    ("blame", "nanoseconds"),
];

/// What is written, while it grows.
struct Growing {
    profile: Profile,
    strings: BTreeMap<String, i64>,
    functions: BTreeMap<(i64, i64), u64>,
    locations: BTreeMap<(u32, u64), u64>,
}

impl Growing {
    fn string(&mut self, text: &str) -> i64 {
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let number = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), number);
        number
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (name, filename) = (self.string(name), self.string(file));
        let functions = &mut self.profile.function;
        *self.functions.entry((name, filename)).or_insert_with(|| {
            let id = functions.len() as u64 + 1;
            functions.push(Function { id, name, system_name: name, filename });
            id
        })
    }

    fn sample(&mut self, sample: &Sample) {
        let mut location_id = Vec::new();
        for (address, frames) in &sample.calls {
            let key = (sample.process, *address);
            let id = match self.locations.get(&key) {
                Some(id) => *id,
                None => {
                    let line = frames
                        .iter()
                        .map(|frame| {
                            let (file, line) = frame
                                .line
                                .as_ref()
                                .map_or(("", 0), |(file, line)| (file.as_str(), *line));
                            Line {
                                function_id: self.function(&frame.function, file),
                                line: line.into(),
                            }
                        })
                        .collect();
                    let id = self.profile.location.len() as u64 + 1;
                    self.profile.location.push(Location { id, address: *address, line });
                    self.locations.insert(key, id);
                    id
                }
            };
            location_id.push(id);
        }
        let (lock, name) = (self.string("lock"), self.string(&sample.lock));
        let process = self.string("process");
        let value = [sample.waits, sample.waited_ns, sample.releases, sample.delayed_ns];
        self.profile.sample.push(Stack {
            location_id,
            value: value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)).to_vec(),
            label: vec![
                Label { key: lock, str: name, num: 0 },
                Label { key: process, str: 0, num: sample.process.into() },
            ],
        });
    }
}

pub(super) fn bytes(samples: &[Sample]) -> Vec<u8> {
    let mut growing = Growing {
        profile: Profile::default(),
        strings: BTreeMap::new(),
        functions: BTreeMap::new(),
        locations: BTreeMap::new(),
    };
    // The first string is the empty one.
    growing.string("");
    for (kind, unit) in TYPES {
        let (kind, unit) = (growing.string(kind), growing.string(unit));
        growing.profile.sample_type.push(ValueType { kind, unit });
    }
    growing.profile.default_sample_type = growing.string("delay");
    samples.iter().for_each(|sample| growing.sample(sample));
    growing.profile.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::super::symbols::Frame;
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_every_number_names_something() {
        let frame = |function: &str| Frame {
            function: function.into(),
            object: "program".into(),
            line: Some(("a.c".into(), 7)),
        };
        let sample = |waited_ns| Sample {
            process: 1,
            lock: "hot".into(),
            calls: vec![(30, vec![frame("inlined"), frame("f")]), (10, vec![frame("main")])],
            waits: 3,
            waited_ns,
            releases: 1,
            delayed_ns: 4,
        };
        let profile = Profile::decode(bytes(&[sample(5), sample(u64::MAX)]).as_slice()).unwrap();
        let text = |number: i64| profile.string_table[number as usize].as_str();
        assert_eq!(text(0), "");
        let types: Vec<_> =
            profile.sample_type.iter().map(|of| (text(of.kind), text(of.unit))).collect();
        assert_eq!(types, TYPES);
        assert_eq!(profile.sample[0].value, [3, 5, 1, 4]);
        assert_eq!(profile.sample[1].value[1], i64::MAX);
        assert_eq!((profile.location.len(), profile.function.len()), (2, 3), "each once");
        for sample in &profile.sample {
            assert_eq!(text(sample.label[0].str), "hot");
            for id in &sample.location_id {
                let location = profile.location.iter().find(|location| location.id == *id).unwrap();
                for line in &location.line {
                    assert_eq!(line.line, 7);
                    let function = profile
                        .function
                        .iter()
                        .find(|function| function.id == line.function_id)
                        .unwrap();
                    assert_eq!(text(function.filename), "a.c");
                    assert!(["inlined", "f", "main"].contains(&text(function.name)));
                }
            }
        }
    }
}
