//! A full fence in every context, made by one of them: what loom has no word for.
//!
//! # Problem
//! The heavy side of an asymmetric fence interrupts each thread wherever it is, and there it passes a full fence. Loom
//! knows fences of the thread that runs. As a fence of the interrupting thread alone, with one on the light side in turn,
//! it would order what it does not: two light sides, and a light side with any other full fence.
//!
//! # What is done
//! What a fence comes to in loom is that the *view* of its thread (what happens before whatever it does next) and that of
//! all fences become one. So it can be made for others, by two things of loom that are no points at which threads change:
//! * A `lazy_static` keeps the view of the thread that has made it for those that come to it later. Each context makes
//!   one after each of its operations: that is how far it has come.
//! * `unpark` hands the view of the running thread to another.
//!
//! The barrier takes the views of all, passes a full fence, and hands the outcome to all: as if each had passed a full
//! fence where it stands, in this moment. That they do so at one moment is no less than what there is: the interrupting
//! thread does nothing between the first fence and the last, and for it and another one it does not matter when in between
//! that one was interrupted. Where a context stands is a matter of the schedule.
//!
//! # Limits
//! With three contexts one moment is more than there is: one may be interrupted early, and what it does then be seen by
//! another before that one is interrupted. To loom's search a barrier depends on fences, not on the accesses of those that
//! it interrupts.
//!
//! As an acquire or release fence for relaxed accesses of the *interrupted* thread it does not count: that is less than
//! there is, and no lock asks for it.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::Ordering::{self, Relaxed, SeqCst};

use loom::lazy_static::Lazy;
use loom::sync::atomic::{AtomicU32, fence};
use loom::thread::Thread;

/// Operations of all contexts in one execution.
const MAX: usize = 5 * 4096;

/// A view each, in the order of the operations of an execution.
static VIEWS: [Lazy<()>; MAX] = [const { Lazy { init: nothing, _p: PhantomData } }; MAX];

fn nothing() {}

struct Context {
    thread: Thread,
    /// How far it has come.
    view: Option<usize>,
}

#[derive(Default)]
struct Contexts {
    all: Vec<Context>,
    views: usize,
    barriers: bool,
    /// See [`fence_apart`].
    fences: Option<Rc<AtomicU32>>,
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
}

pub(super) fn begin(barriers: bool) {
    let fences = Some(Rc::new(AtomicU32::new(0)));
    CONTEXTS
        .with(|known| *known.borrow_mut() = Contexts { all: vec![], views: 0, barriers, fences });
    begins(&loom::thread::current());
}

/// The next context: what it will do comes after what the running one has done, and a barrier meets it before it begins.
pub(super) fn begins(thread: &Thread) {
    CONTEXTS.with(|known| {
        known.borrow_mut().all.push(Context { thread: thread.clone(), view: None });
    });
}

pub(super) fn came_so_far(context: usize) {
    CONTEXTS.with(|known| {
        let mut known = known.borrow_mut();
        if !known.barriers {
            return;
        }
        let view = known.views;
        known.views += 1;
        known.all[context].view = Some(view);
        VIEWS[view].get();
    });
}

/// A fence that other contexts may come before.
///
/// To loom a fence is one step with the access before it, so that a thread which sees what was stored there, and passes a
/// fence itself, is always ordered behind the store: one that should release, and does not, goes unnoticed. So a store comes
/// between the two, to a word of which all fences know, and which orders nothing: threads change at it, and in each order
/// in which fences may come.
pub(super) fn fence_apart(order: Ordering) {
    let fences = CONTEXTS.with(|known| known.borrow().fences.clone());
    if let Some(fences) = fences {
        fences.store(0, Relaxed);
    }
    fence(order);
}

pub(super) fn fence_everywhere(
    me: usize,
    spares: impl Fn(usize) -> bool,
    ended: impl Fn(usize) -> bool,
) {
    CONTEXTS.with(|known| {
        let known = known.borrow();
        let others =
            || known.all.iter().enumerate().filter(|&(other, _)| other != me && !spares(other));
        for view in others().filter_map(|(_, context)| context.view) {
            VIEWS[view].get();
        }
        fence(SeqCst);
        for (_, context) in others().filter(|&(other, _)| !ended(other)) {
            context.thread.unpark();
        }
    });
}
