//! Text between C and Rust.

use core::ffi::{CStr, c_char};

/// The text that a caller passed, or nothing for a null pointer and for what is not UTF-8.
///
/// # Safety
/// X4.
pub(crate) unsafe fn passed<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: X4.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// `text` with zeros behind it, at least one.
pub(crate) const fn padded<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    assert!(bytes.len() < N, "the text and its zero fit");
    let mut padded = [0; N];
    let mut at = 0;
    while at < bytes.len() {
        assert!(bytes[at] != 0, "a zero is the end");
        padded[at] = bytes[at];
        at += 1;
    }
    padded
}

/// What C sees of it.
pub(crate) const fn returned<const N: usize>(padded: &'static [u8; N]) -> *const c_char {
    padded.as_ptr().cast()
}
