//! Measuring.
