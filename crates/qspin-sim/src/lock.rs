//! The locks that are simulated: those of the register that need no more of a platform than a simulated CPU
//! has.

use qspin_core::for_each_lock;
use qspin_core::locks::{Id, Waits};
use serde::{Deserialize, Serialize};

macro_rules! simulated {
    (
        () sleeping { $($sleeps:ident: $smodule:ident = $slock:path, $sabout:literal;)* }
        spinning { $($id:ident: $module:ident = $lock:path, $about:literal;)* }
        shared_sleeping $shared:tt shared_spinning $queued:tt
    ) => {
        /// A lock, by any of the names that it has in the register.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum Lock {
            $(#[doc = $about] $id,)*
            $(#[doc = $sabout] $sleeps,)*
        }

        impl Lock {
            /// All of them.
            pub const ALL: &'static [Lock] = &[$(Lock::$id,)* $(Lock::$sleeps,)*];

            const fn id(self) -> Id {
                match self { $(Lock::$id => Id::$id,)* $(Lock::$sleeps => Id::$sleeps,)* }
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

    /// The lock of that name.
    ///
    /// # Errors
    /// There is no lock of that name (the message lists the names); or it is not simulated, and why.
    pub fn named(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.iter().map(|lock| lock.name()).collect::<Vec<_>>().join(", ");
        let Some(id) = Id::named(name) else {
            return Err(format!("no lock is called `{name}`: choose from {}", known()));
        };
        Self::ALL.iter().copied().find(|lock| lock.id() == id).ok_or_else(|| {
            format!(
                "the lock {} is not simulated yet, since no workload has readers: choose from {}",
                id.name(),
                known()
            )
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
    fn a_lock_has_the_names_of_the_register_or_is_refused_with_the_reason() {
        assert_eq!(Lock::named("yielding"), Ok(Lock::Yield));
        assert_eq!(Lock::named("paravirt_queued"), Ok(Lock::ParavirtQueued));
        assert!(Lock::named("magic").unwrap_err().contains("choose from native"));
        assert_eq!(Lock::named("mutex"), Ok(Lock::Mutex));
        assert!(Lock::named("queued-rw").unwrap_err().contains("readers"));
        assert!(
            !Lock::Native.halts()
                && Lock::Simple.halts()
                && Lock::Paravirt.halts()
                && Lock::Mutex.halts()
        );
    }
}
