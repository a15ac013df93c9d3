//! The locks that are simulated: those of the register that need no more of a platform than a simulated CPU
//! has.

use qspin_core::for_each_lock;
use qspin_core::locks::{Id, Waits};
use serde::{Deserialize, Serialize};

macro_rules! simulated {
    (
        () sleeping { $($sleeps:ident: $smodule:ident = $slock:path, $sabout:literal;)* }
        spinning { $($id:ident: $module:ident = $lock:path, $about:literal;)* }
        shared_sleeping { $($rsleeps:ident: $rsmodule:ident = $rslock:path, $rsabout:literal;)* }
        shared_spinning { $($rid:ident: $rmodule:ident = $rlock:path, $rabout:literal;)* }
    ) => {
        /// A lock, by any of the names that it has in the register.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum Lock {
            $(#[doc = $about] $id,)*
            $(#[doc = $sabout] $sleeps,)*
            $(#[doc = $rsabout] $rsleeps,)*
            $(#[doc = $rabout] $rid,)*
        }

        impl Lock {
            /// All of them.
            pub const ALL: &'static [Lock] =
                &[$(Lock::$id,)* $(Lock::$sleeps,)* $(Lock::$rsleeps,)* $(Lock::$rid,)*];

            const fn id(self) -> Id {
                match self {
                    $(Lock::$id => Id::$id,)*
                    $(Lock::$sleeps => Id::$sleeps,)*
                    $(Lock::$rsleeps => Id::$rsleeps,)*
                    $(Lock::$rid => Id::$rid,)*
                }
            }
        }
    };
}

for_each_lock!(simulated);

impl Lock {
    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.id().name()
    }

    /// Whether its waiters halt, or yield: it needs a [`Hypervisor`](crate::Hypervisor).
    #[must_use]
    pub const fn halts(self) -> bool {
        !matches!(self.id().lock().waits, Waits::Spins)
    }

    /// Whether readers share it.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        self.id().lock().shared
    }

    /// The lock of that name.
    ///
    /// # Errors
    /// There is no lock of that name: the message lists the names.
    pub fn named(name: &str) -> Result<Self, String> {
        let of = |id| Self::ALL.iter().copied().find(|lock| lock.id() == id);
        Id::named(name).and_then(of).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|lock| lock.name()).collect();
            format!("no lock is called `{name}`: choose from {}", known.join(", "))
        })
    }
}

impl TryFrom<String> for Lock {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name)
    }
}

impl From<Lock> for String {
    fn from(lock: Lock) -> Self {
        lock.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_the_names_of_the_register_and_no_other() {
        assert_eq!(Lock::named("yielding"), Ok(Lock::Yield));
        assert_eq!(Lock::named("paravirt_queued"), Ok(Lock::ParavirtQueued));
        assert!(Lock::named("magic").unwrap_err().contains("choose from native"));
        assert_eq!(Lock::named("mutex"), Ok(Lock::Mutex));
        assert_eq!(Lock::named("queued-rw"), Ok(Lock::QueuedRw));
        assert!(Lock::QueuedRw.is_shared() && !Lock::Native.is_shared());
        assert!(
            !Lock::Native.halts()
                && Lock::Simple.halts()
                && Lock::Paravirt.halts()
                && Lock::Mutex.halts()
        );
    }
}
