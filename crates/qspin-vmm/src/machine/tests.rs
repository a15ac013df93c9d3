use super::*;

#[test]
fn the_first_processor_begins_as_a_pvh_loader_leaves_it() {
    let code = segment(CODE);
    assert_eq!((code.base, code.limit, code.type_, code.db, code.l), (0, u32::MAX, 0xb, 1, 0));
    assert_eq!((code.s, code.g, code.present), (1, 1, 1));
    let task = segment(TASK);
    assert_eq!((task.limit, task.type_, task.s, task.g), (0x67, 0xb, 0, 0));
}

/// A thread that runs no guest, but stands where a CPU's would.
fn with_thread(test: impl FnOnce(&Control)) {
    install_handler().unwrap();
    let control = Control::default();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut at_once = 0_u8;
            AT_ONCE.set(&raw mut at_once);
            // SAFETY: asks for a number.
            // ORDERING: Release pairs with the Acquires of `Control::kick` and of the wait below: `AT_ONCE` is set.
            control.thread.store(unsafe { libc::gettid() }, Release);
            // ORDERING: Acquire, here and in the loop within, pairs with the store of `over` below.
            while !over.load(Acquire) {
                control.pass(&over);
                // The guest: left for a signal only.
                // SAFETY: a byte that the handler of this thread writes.
                while unsafe { (&raw const at_once).read_volatile() } == 0 && !over.load(Acquire) {
                    thread::yield_now();
                }
                // SAFETY: as above.
                unsafe { (&raw mut at_once).write_volatile(0) };
            }
            // ORDERING: as above; from here on the thread is not kicked.
            control.thread.store(0, Release);
            AT_ONCE.set(std::ptr::null_mut());
        });
        // ORDERING: Acquire pairs with the thread's first store of its number.
        while control.thread.load(Acquire) == 0 {
            thread::yield_now();
        }
        test(&control);
        // ORDERING: Release pairs with the thread's Acquires of `over`.
        over.store(true, Release);
        control.go_on();
    });
}

#[test]
fn a_stop_is_never_lost_whatever_the_thread_does() {
    with_thread(|control| {
        for _ in 0..200 {
            assert!(control.stop());
            control.go_on();
        }
    });
}

#[test]
fn a_cpu_without_a_thread_cannot_be_stopped() {
    let control = Control::default();
    assert!(!control.stop());
    assert!(!lock(&control.state).stop, "and would not stand if it came later");
}
