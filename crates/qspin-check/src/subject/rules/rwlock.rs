//! The state diagram of the default reader-writer lock's word. The bits are written down again, so that one that the lock
//! defines wrongly is not wrong here too.

const WRITER: u32 = 1;
const CLOSED: u32 = 2;
const SLEEPING: u32 = 4;
const HEIR: u32 = 8;
const UPGRADING: u32 = 16;
const UPGRADABLE: u32 = 32;
const ASKED: u32 = 64;
const WAITING: u32 = 128;
const READER: u32 = 1 << 8;
/// Each keeps newcomers out that want to read.
const KEEPS_OUT: u32 = WRITER | CLOSED | HEIR | UPGRADING;

const fn has(word: u32, bits: u32) -> bool {
    word & bits != 0
}

const fn readers(word: u32) -> u32 {
    word / READER
}

/// Whether the word can be at all: a writer is alone, and what concerns the upgradable reader is there with it.
const fn is_word(word: u32) -> bool {
    let writes = has(word, WRITER);
    let upgradable = has(word, UPGRADABLE);
    let alone = readers(word) == 0 && !upgradable;
    (!writes || alone)
        && (!upgradable || readers(word) > 0)
        && (upgradable || !has(word, ASKED | UPGRADING))
}

/// Whether a reader comes in.
const fn reads(from: u32, to: u32) -> bool {
    !has(from, WRITER)
        && readers(to) == readers(from) + 1
        && (!has(from, UPGRADABLE) || has(to, UPGRADABLE))
}

/// Whether a writer comes in: into a free lock, past a closed gate only while its owner sleeps, and never past an
/// heir; or the upgradable reader, once it is the only one.
const fn writes(from: u32, to: u32) -> bool {
    let kept = from & to;
    let barges = !has(kept, HEIR) && (!has(kept, CLOSED) || has(from, SLEEPING));
    let alone = readers(from) == 0 && barges || readers(from) == 1 && has(from, UPGRADABLE);
    !has(from, WRITER) && has(to, WRITER) && alone
}

/// Whether one leaves, or does less from now on.
const fn leaves(from: u32, to: u32) -> bool {
    let ends_upgradable = has(from, UPGRADABLE) && !has(to, UPGRADABLE);
    let reader = !has(from, WRITER)
        && readers(to) + 1 == readers(from)
        && (ends_upgradable || has(from, UPGRADABLE) == has(to, UPGRADABLE));
    let downgrades = readers(to) == readers(from) && ends_upgradable;
    let writer = has(from, WRITER) && readers(to) <= 1;
    !has(to, WRITER) && (reader || downgrades || writer)
}

/// Whether no more than state bits change, and these say what is.
const fn marks(from: u32, to: u32) -> bool {
    let set = to & !from;
    let inside = has(from, WRITER | UPGRADING) || readers(from) > 0;
    readers(from) == readers(to)
        && !has(from ^ to, WRITER | UPGRADABLE)
        && (!has(set, WAITING) || has(to, KEEPS_OUT))
        && (!has(set, SLEEPING) || inside)
}

/// Whether the diagram has this step.
pub(super) const fn is_step(from: u32, to: u32) -> bool {
    is_word(to) && (reads(from, to) || writes(from, to) || leaves(from, to) || marks(from, to))
}

/// Whether a reader comes in past a gate that stays closed, or past one that upgrades: only an interrupt may.
pub(super) const fn passes(from: u32, to: u32) -> bool {
    reads(from, to) && (has(from & to, CLOSED | HEIR) || has(from, UPGRADING))
}

/// Whether the heir comes in to read: it starved, and went through the gate.
pub(super) const fn is_heir_reading(from: u32, to: u32) -> bool {
    reads(from, to) && has(from & !to, HEIR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_the_files_head_are_in_it() {
        for (from, to) in [
            (0, READER),
            (READER, 2 * READER),
            (0, WRITER),
            (WRITER, READER),
            (WRITER | WAITING, READER),
            (READER, (2 * READER) | UPGRADABLE),
            (READER | UPGRADABLE | ASKED, WRITER),
            (READER | UPGRADABLE | UPGRADING, WRITER),
            (READER | CLOSED, CLOSED),
            (CLOSED | SLEEPING, WRITER | CLOSED | SLEEPING),
            (CLOSED | SLEEPING | HEIR, WRITER),
            (WRITER, WRITER | WAITING),
            (READER, READER | CLOSED | SLEEPING),
            (WRITER | CLOSED, CLOSED | HEIR),
        ] {
            assert!(is_step(from, to), "{from:#x} {to:#x}");
            assert!(!passes(from, to), "{from:#x} {to:#x}");
        }
    }

    #[test]
    fn others_are_not() {
        for (from, to) in [
            (READER, WRITER),
            (WRITER, WRITER | READER),
            ((2 * READER) | UPGRADABLE, WRITER),
            (READER | UPGRADABLE | ASKED, READER | ASKED),
            (CLOSED, WRITER | CLOSED),
            (CLOSED | SLEEPING | HEIR, WRITER | CLOSED | SLEEPING | HEIR),
            (READER, READER | WAITING),
            (CLOSED, CLOSED | SLEEPING),
        ] {
            assert!(!is_step(from, to), "{from:#x} {to:#x}");
        }
        for (from, to) in [
            (CLOSED, CLOSED + READER),
            (READER | CLOSED | SLEEPING, (2 * READER) | CLOSED | SLEEPING),
            (READER | UPGRADABLE | UPGRADING, (2 * READER) | UPGRADABLE | UPGRADING),
        ] {
            assert!(passes(from, to), "{from:#x} {to:#x}");
        }
    }
}
