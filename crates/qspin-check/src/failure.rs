//! What a checker may find: the kinds of counterexample.

use std::fmt;

/// The kind of a counterexample. A mutation or planted bug must die of the kind that its flaw
/// should cause; one that dies of another shows that it is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Two accesses to the protected data, one of them a write, are not ordered.
    DataRace,
    /// An access to a node is not ordered with the beginning of one of its lives.
    NodeLife,
    /// Two contexts were inside at the same time that exclude each other.
    Exclusion,
    /// No context can go on: each waits for a word that none will change.
    Deadlock,
    /// No context can go on, and one is halted that none will kick.
    LostWakeup,
    /// A kick of a node that there is not, or ahead of one that does not come next.
    Kick,
    /// An entry of the table of halted waiters that should not be there.
    Hash,
    /// Some context took more steps than any correct execution needs.
    Livelock,
    /// A context passed another one that had queued before it.
    Fifo,
    /// A waiter was passed more often than the order promises.
    Bypass,
    /// The protected counter does not show every section, or a bucket counts sleepers that are gone.
    Count,
    /// A reader passed a writer that was waiting already.
    WriterPassed,
    /// An attempt that may not wait did wait.
    TryWaited,
    /// A step of a lock word that its state diagram does not have.
    State,
    /// `is_locked` was wrong where the answer is certain.
    IsLocked,
    /// A node's nesting count was not left as it was found.
    Nesting,
    /// A context used a lock after the last acquisition of it had been released, and it was freed.
    Freed,
    /// The check ran out of time before it was complete.
    Undecided,
    /// Something else panicked.
    Crash,
}

impl Kind {
    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        use Kind::*;
        let all = [
            DataRace,
            NodeLife,
            Exclusion,
            Deadlock,
            LostWakeup,
            Kick,
            Hash,
            Livelock,
            Fifo,
            Bypass,
            Count,
            WriterPassed,
            TryWaited,
            State,
            IsLocked,
            Nesting,
            Freed,
            Undecided,
            Crash,
        ];
        all.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind as shown to people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::DataRace => "data race",
            Kind::NodeLife => "node-life race",
            Kind::Exclusion => "exclusion",
            Kind::Deadlock => "deadlock",
            Kind::LostWakeup => "lost wake-up",
            Kind::Kick => "kick",
            Kind::Hash => "hash",
            Kind::Livelock => "livelock",
            Kind::Fifo => "fifo",
            Kind::Bypass => "bypass",
            Kind::Count => "wrong count",
            Kind::WriterPassed => "writer passed",
            Kind::TryWaited => "try waited",
            Kind::State => "illegal step",
            Kind::IsLocked => "is_locked",
            Kind::Nesting => "nesting",
            Kind::Freed => "use after free",
            Kind::Undecided => "undecided",
            Kind::Crash => "crash",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A counterexample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub kind: Kind,
    /// The particulars.
    pub message: String,
}

impl Failure {
    /// A counterexample of this kind.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}
