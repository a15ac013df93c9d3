//! The environment, read while the program is loaded.
//!
//! In a preloaded library, functions that run at load time come before the C library has an environment, and
//! `getenv` finds nothing; but the loader hands the environment to them. Later on another thread may be about
//! to change it.

use core::ffi::{CStr, c_char};
use core::marker::PhantomData;

/// An environment that does not change.
#[derive(Debug, Clone, Copy)]
pub struct Environment<'a> {
    /// Null for the C library's environment.
    texts: *const *const c_char,
    unchanged: PhantomData<&'a CStr>,
}

impl<'a> Environment<'a> {
    /// The environment `texts`, or the C library's if `texts` is null.
    ///
    /// # Safety
    /// `texts` is null or ends with null, and its strings end with a zero. No thread changes them, or the C
    /// library's environment, for `'a`.
    #[must_use]
    pub unsafe fn new(texts: *const *const c_char) -> Self {
        Self { texts, unchanged: PhantomData }
    }

    /// The value of a variable.
    #[must_use]
    pub fn value_of(&self, name: &CStr) -> Option<&'a CStr> {
        if self.texts.is_null() {
            // SAFETY: a name that ends in a zero; by the promise of `new` what `getenv` returns stays.
            return unsafe {
                let value = libc::getenv(name.as_ptr());
                (!value.is_null()).then(|| CStr::from_ptr(value))
            };
        }
        let mut place = self.texts;
        // SAFETY: the promise of `new`.
        unsafe {
            while !(*place).is_null() {
                let text = CStr::from_ptr(*place);
                if let Some([b'=', ..]) = text.to_bytes().strip_prefix(name.to_bytes()) {
                    return Some(CStr::from_ptr((*place).add(name.count_bytes() + 1)));
                }
                place = place.add(1);
            }
        }
        None
    }
}

/// Whether the environment is heeded. Not in a program with more rights than the user that started it: that
/// user must not make it read files of their choice.
pub(crate) fn counts() -> bool {
    // SAFETY: asks for a number, nothing else; every Linux provides it.
    unsafe { libc::getauxval(libc::AT_SECURE) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name_in_the_environment_that_is_given() {
        let texts = [c"QSPIN_MEMBARRIERS=on", c"A=QSPIN_MEMBARRIER=on", c"QSPIN_MEMBARRIER=off"];
        for (many, found) in [(3, Some(c"off")), (2, None)] {
            let mut places: Vec<_> = texts[..many].iter().map(|text| text.as_ptr()).collect();
            places.push(core::ptr::null());
            // SAFETY: ended by null, and of texts that stay.
            let environment = unsafe { Environment::new(places.as_ptr()) };
            assert_eq!(environment.value_of(c"QSPIN_MEMBARRIER"), found);
        }
    }
}
