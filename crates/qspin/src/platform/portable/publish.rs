//! Counters are not shown to other processes: their pages are used as they are.

use crate::events::Group;

/// Nothing is kept of a group beside its counters.
pub(crate) struct Shown;

impl Shown {
    pub(crate) const NOT_YET: Self = Self;

    /// Whether a parent has counted: a process is never known to be a child here.
    fn by_a_parent(&self) -> bool {
        false
    }
}

/// Begins to count in the group's pages, which are zero. Threads that do so at once do the same.
pub(crate) fn try_publish(group: &'static Group) {
    if group.is_new() {
        group.become_ready();
    }
}

/// Whether all that the group has counted is its parent's.
pub(crate) fn is_inherited(group: &Group) -> bool {
    group.shown.by_a_parent()
}
