//! What a run looks like to people: one file an output format.
