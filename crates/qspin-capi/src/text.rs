//! Text between C and Rust.

use core::ffi::{CStr, c_char};

/// The text that a caller passed; nothing for a null pointer or for text that is not UTF-8.
///
/// # Safety
/// CAPI-4.
pub(crate) unsafe fn passed<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: CAPI-4.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// `text` padded with zeros, at least one.
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

/// Static texts: the one at `$at` is `$text`.
macro_rules! texts {
    ($name:ident: [$longest:expr; $many:expr], $at:ident => $text:expr) => {
        static $name: [[u8; $longest]; $many] = {
            let mut texts = [[0; $longest]; $many];
            let mut $at = 0;
            while $at < $many {
                texts[$at] = crate::text::padded($text);
                $at += 1;
            }
            texts
        };
    };
}
pub(crate) use texts;

/// The text at this place as C sees it: null if there is none, or if it is empty.
pub(crate) fn returned<const N: usize>(
    texts: &'static [[u8; N]],
    at: Option<usize>,
) -> *const c_char {
    let text = at.and_then(|at| texts.get(at)).filter(|text| text[0] != 0);
    text.map_or(core::ptr::null(), |text| text.as_ptr().cast())
}
