//! What is there with a feature only.

#[cfg(feature = "arc_lock")]
mod arc_lock {
    use std::sync::Arc;
    use std::thread;

    use qspin::{ArcMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, Mutex, RwLock};

    #[test]
    fn a_guard_keeps_the_lock_alive() {
        let lock = Arc::new(Mutex::new(1));
        let mut guard: ArcMutexGuard<i32> = lock.lock_arc();
        assert!(lock.try_lock().is_none() && lock.try_lock_arc().is_none());
        let other = Arc::downgrade(&lock);
        drop(lock);
        // It goes to another thread, which releases what no other thread has any more.
        thread::spawn(move || *guard += 1).join().unwrap();
        assert!(other.upgrade().is_none());
    }

    #[test]
    fn readers_and_writers_keep_it_alive_too() {
        let lock = Arc::new(RwLock::new(1));
        let reads: ArcRwLockReadGuard<i32> = lock.read_arc();
        let looks: ArcRwLockUpgradableReadGuard<i32> = lock.upgradable_read_arc();
        assert!(*reads == 1 && lock.try_write_arc().is_none());
        drop(reads);
        let mut writes = ArcRwLockUpgradableReadGuard::upgrade(looks);
        assert!(lock.try_read_arc().is_none());
        *writes += 1;
        let other = Arc::downgrade(&lock);
        drop(lock);
        assert_eq!(*writes, 2);
        drop(writes);
        assert!(other.upgrade().is_none());
    }
}

#[cfg(feature = "serde")]
mod serde {
    use qspin::{Mutex, RwLock};

    #[test]
    fn a_lock_is_written_as_its_value_and_read_as_a_free_one() {
        let lock = Mutex::new(vec![1, 2]);
        let text = serde_json::to_string(&lock).unwrap();
        assert_eq!(text, "[1,2]");
        let read: Mutex<Vec<i32>> = serde_json::from_str(&text).unwrap();
        assert!(!read.is_locked() && read.into_inner() == [1, 2]);
        let text = serde_json::to_string(&RwLock::new("a")).unwrap();
        let read: RwLock<String> = serde_json::from_str(&text).unwrap();
        assert!(!read.is_locked() && *read.read() == "a");
        assert!(serde_json::from_str::<Mutex<u8>>("\"x\"").is_err());
    }
}

/// What every user of such locks expects, with and without features.
#[test]
fn the_public_face_is_that_of_other_locks() {
    use qspin::{Condvar, MappedMutexGuard, Mutex, MutexGuard, Once, RwLock, RwLockWriteGuard};
    static MUTEX: Mutex<(u8, u8)> = Mutex::new((1, 2));
    static SHARED: RwLock<(u8, u8)> = RwLock::new((1, 2));
    let part: MappedMutexGuard<u8> = MutexGuard::map(MUTEX.lock(), |pair| &mut pair.1);
    assert!(MUTEX.is_locked() && *part == 2 && format!("{MUTEX:?}").contains("<locked>"));
    drop(part);
    assert!(format!("{MUTEX:?}").contains("(1, 2)"));
    let part = MutexGuard::try_map(MUTEX.lock(), |pair| (pair.0 == 9).then_some(&mut pair.0));
    assert!(part.is_err() && MUTEX.is_locked());
    drop(part);
    let mut guard = SHARED.write();
    RwLockWriteGuard::unlocked(&mut guard, || assert!(SHARED.try_write().is_some()));
    assert!(SHARED.is_locked_exclusive() && format!("{SHARED:?}").contains("<locked>"));
    drop(guard);
    // SAFETY: no other thread has it.
    assert_eq!(unsafe { *MUTEX.data_ptr() }, (1, 2));
    let mut own = Mutex::from(3);
    *own.get_mut() += 1;
    assert_eq!(own.into_inner(), 4);
    let mut own = RwLock::<u8>::default();
    *own.get_mut() += 1;
    assert_eq!(own.into_inner(), 1);
    assert!(!format!("{:?} {:?}", Condvar::default(), Once::default()).is_empty());
    let guard = MUTEX.lock();
    std::mem::forget(guard);
    // SAFETY: forgotten above.
    unsafe { MUTEX.force_unlock(lock_api::GuardSend::new()) };
    assert!(!MUTEX.is_locked());
}

/// What a compiler's message says of a lock.
#[test]
fn the_name_of_a_type_is_that_of_its_module() {
    use std::any::type_name;

    assert_eq!(
        type_name::<qspin::Mutex<u8>>(),
        "lock_api::mutex::Mutex<qspin::mutex::RawMutex, u8>"
    );
    assert_eq!(
        type_name::<qspin::native::Mutex<u8>>(),
        "lock_api::mutex::Mutex<qspin::native::RawMutex, u8>"
    );
    assert_eq!(
        type_name::<qspin::cna::HintedMutex<u8>>(),
        "lock_api::mutex::Mutex<qspin::cna::HintedRawMutex, u8>"
    );
    assert_eq!(
        type_name::<qspin::RwLock<u8>>(),
        "lock_api::rwlock::RwLock<qspin::rwlock::RawRwLock, u8>"
    );
    assert_eq!(type_name::<qspin::Condvar>(), "qspin::condvar::Condvar");
    assert_eq!(format!("{:?}", qspin::paravirt::RawMutex::new()), "RawMutex { .. }");
}

/// Every program that takes qspin takes these, too.
#[test]
fn there_are_two_dependencies_outside_this_workspace() {
    let manifest = include_str!("../Cargo.toml");
    // Those of every system, and those of Linux.
    let list = manifest.split("[dependencies]\n").nth(1).unwrap();
    let names = list.lines().take_while(|line| !line.starts_with("[lints]"));
    let outside: Vec<_> =
        names.filter(|line| line.contains(" = ") && !line.starts_with(['[', 'q'])).collect();
    assert_eq!(outside, ["lock_api.workspace = true", "libc.workspace = true"]);
    let core = include_str!("../../qspin-core/Cargo.toml");
    let list = core.split("[dependencies]\n").nth(1).unwrap();
    let names: Vec<_> = list.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(names, ["lock_api.workspace = true"]);
}
