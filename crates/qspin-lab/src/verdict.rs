//! The sentence at the end: which lock is best here, and how sure that is.
