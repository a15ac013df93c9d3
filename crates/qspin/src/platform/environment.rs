//! The environment, read while the program is loaded.
//!
//! In a preloaded library functions that run at load time come before the C library has an environment, and `getenv`
//! knows none; but the loader hands it to them. Later on another thread may be about to change it.

use core::ffi::{CStr, c_char};
use core::marker::PhantomData;

/// An environment that nobody changes.
#[derive(Debug, Clone, Copy)]
pub struct Environment<'a> {
    /// Null for the C library's.
    texts: *const *const c_char,
    unchanged: PhantomData<&'a CStr>,
}

impl<'a> Environment<'a> {
    /// That of `texts`, or the C library's if they are null.
    ///
    /// # Safety
    /// `texts` is null or ends with null, its texts end with a zero, and nobody changes them, or the C library's,
    /// for `'a`.
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

/// Whether the environment counts. Not in a program that has more rights than who started it: they must not have it
/// read files of their choice.
pub(crate) fn counts() -> bool {
    // SAFETY: asks for a number, nothing else; every Linux has told it.
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
