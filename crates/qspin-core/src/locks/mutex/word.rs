//! The word of the default mutex: its fields, and which of them are valid in this process.
//!
//! ```text
//!   31            12 11          4  3      2       1      0
//!   ┌───────────────┬─────────────┬──────┬────────────┬────────┐
//!   │ generation of │ CPU on which│ HEIR │ awake      │ LOCKED │
//!   │ the state bits│ it was taken│      │ waiters    │        │
//!   └───────────────┴─────────────┴──────┴────────────┴────────┘
//! ```

use crate::sleepers::SleepPlatform;

/// The lock is held.
pub(super) const LOCKED: u32 = 1;
/// One counted awake waiter.
pub(super) const AWAKE: u32 = 2;
/// As many as can be counted.
const ALL_AWAKE: u32 = 3 * AWAKE;
/// This many waiters may spend their whole spin budget: if only one may, and it was woken but has no CPU yet,
/// CPUs idle.
const LONG_AWAKE: u32 = 2 * AWAKE;
/// As many CPUs as these waiters and the owner run on.
pub(super) const CPUS_OF_AWAKE: u32 = 1 + LONG_AWAKE / AWAKE;
/// Only counted awake waiters may acquire the lock: there is an heir, the starving waiter that holds this
/// reservation. The count beside it is at least one.
pub(super) const HEIR: u32 = 8;
const STATE_BITS: u32 = ALL_AWAKE | HEIR;
/// On which CPU the owner acquired the lock: a bit that says that it is known, and below it the low bits of the
/// CPU's number. The owner sets the field, and its release clears it.
pub(super) const PLACE: u32 = PLACE_KNOWN | 0x7f << PLACE_SHIFT;
const PLACE_SHIFT: u32 = 4;
const PLACE_KNOWN: u32 = 1 << 11;
/// Where the generation of the state bits stands (MUTEX-5).
const GENERATION_SHIFT: u32 = 12;

/// The state bits of `seen` that are valid in this process (MUTEX-5).
#[inline]
pub(super) fn bits<P: SleepPlatform>(p: &P, seen: u32) -> u32 {
    if seen & STATE_BITS != 0 { bits_in(generation(p), seen) } else { 0 }
}

/// The same for a process of this generation. Code that reads state bits and writes them back asks for the
/// generation once: a signal handler may fork in between, and what the parent has seen is not the child's.
#[inline]
pub(super) fn bits_in(generation: u32, seen: u32) -> u32 {
    if seen >> GENERATION_SHIFT == generation { seen & STATE_BITS } else { 0 }
}

/// This process's generation, as far as it fits beside the state bits.
#[inline]
pub(super) fn generation<P: SleepPlatform>(p: &P) -> u32 {
    p.generation() << GENERATION_SHIFT >> GENERATION_SHIFT
}

/// The word of an owner that acquires the lock on this CPU, where that is known, without state bits.
#[inline]
pub(super) fn locked_on(cpu: Option<u32>) -> u32 {
    LOCKED | cpu.map_or(0, |cpu| PLACE_KNOWN | cpu << PLACE_SHIFT & PLACE)
}

/// Whether the owner acquired the lock on this CPU, as far as is known. The owner is another context than this
/// one.
#[inline]
pub(super) fn owner_is_here<P: SleepPlatform>(p: &P, seen: u32) -> bool {
    seen & PLACE_KNOWN != 0 && seen & (LOCKED | PLACE) == locked_on(p.runs_on())
}

/// The CPU on which the owner acquired the lock, or one whose number has the same low bits, where that is known.
#[inline]
pub(super) fn owners_cpu(seen: u32) -> Option<u32> {
    let known = seen & LOCKED != 0 && seen & PLACE_KNOWN != 0;
    known.then_some((seen & (PLACE & !PLACE_KNOWN)) >> PLACE_SHIFT)
}

/// The word with `locked`, which is 0 or an owner's fields, and these state bits.
#[inline]
pub(super) fn with_bits(generation: u32, locked: u32, bits: u32) -> u32 {
    if bits == 0 { locked } else { locked | bits | generation << GENERATION_SHIFT }
}

/// The bits with one more awake waiter, and with `bit`, which is HEIR or 0. A fourth waiter is not counted
/// (MUTEX-2).
#[inline]
pub(super) fn one_more(bits: u32, bit: u32) -> u32 {
    let awake = (bits & ALL_AWAKE) + AWAKE;
    awake.min(ALL_AWAKE) | (bits | bit) & HEIR
}

/// The bits without one waiter, which sleeps or has acquired the lock, and without HEIR (MUTEX-2).
#[inline]
pub(super) fn one_less(bits: u32) -> u32 {
    (bits & ALL_AWAKE).saturating_sub(AWAKE)
}

/// Whether one more waiter may spend its whole spin budget, and be counted.
#[inline]
pub(super) fn may_stay_awake(bits: u32) -> bool {
    bits & HEIR == 0 && bits & ALL_AWAKE < LONG_AWAKE
}

/// Whether no more can be counted.
#[inline]
pub(super) fn are_enough(bits: u32) -> bool {
    bits & ALL_AWAKE == ALL_AWAKE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_has_one_meaning() {
        let generation = u32::MAX << GENERATION_SHIFT;
        let fields = [LOCKED, ALL_AWAKE, HEIR, PLACE, generation];
        assert_eq!(fields.iter().fold(0, |all, field| all | field), u32::MAX);
        assert_eq!(fields.iter().map(|field| field.count_ones()).sum::<u32>(), u32::BITS);
    }

    #[test]
    fn a_cpu_whose_number_has_no_room_does_not_reach_into_other_fields() {
        for cpu in [None, Some(0), Some(127), Some(128), Some(300), Some(u32::MAX)] {
            assert_eq!(locked_on(cpu) & !(LOCKED | PLACE), 0, "{cpu:?}");
            assert_eq!(owners_cpu(locked_on(cpu)), cpu.map(|cpu| cpu & 0x7f), "{cpu:?}");
            assert_eq!(owners_cpu(locked_on(cpu) & !LOCKED), None, "no owner");
        }
    }

    #[test]
    fn awake_waiters_are_counted_as_far_as_there_is_room() {
        let mut bits = 0;
        for awake in 1..=3 {
            assert!(!are_enough(bits));
            assert_eq!(may_stay_awake(bits), awake <= 2);
            bits = one_more(bits, 0);
            assert_eq!(bits, awake * AWAKE);
        }
        assert!(are_enough(bits));
        assert_eq!(one_more(bits, 0), bits, "a fourth is not counted");
        for awake in (0..3).rev() {
            bits = one_less(bits);
            assert_eq!(bits, awake * AWAKE);
        }
        assert_eq!(one_less(0), 0, "a thread that was not counted takes none back");
    }

    #[test]
    fn an_heir_stays_one_while_others_wake_and_goes_with_the_first_that_has_the_lock() {
        let heir = one_more(0, HEIR);
        assert_eq!(heir, AWAKE | HEIR);
        assert!(!may_stay_awake(heir));
        assert_eq!(one_more(heir, 0), (2 * AWAKE) | HEIR);
        assert!(are_enough(one_more(one_more(heir, 0), 0)));
        assert_eq!(one_less(one_more(heir, 0)), AWAKE);
    }

    #[test]
    fn bits_count_in_the_generation_that_made_them() {
        let owner = LOCKED | PLACE_KNOWN | 5 << PLACE_SHIFT;
        let word = with_bits(7, owner, AWAKE | HEIR);
        assert_eq!(word & (LOCKED | PLACE), owner);
        assert_eq!(bits_in(7, word), AWAKE | HEIR);
        assert_eq!(bits_in(8, word), 0);
        assert_eq!(with_bits(7, owner, 0), owner, "without state bits a word has no generation");
    }
}
