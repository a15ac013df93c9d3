//! Many jobs, as many at a time as there are CPUs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Does `job` for every number below `count`; returns what came of each, in their order.
///
/// # Panics
/// If a job does.
pub(crate) fn each<T: Send>(count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers.min(count) {
            scope.spawn(|| {
                loop {
                    // Relaxed: it only hands out numbers.
                    let number = next.fetch_add(1, Relaxed);
                    if number >= count {
                        return;
                    }
                    let result = job(number);
                    done.lock().expect("no worker panics while it has this").push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no worker panics while it has this");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_and_results_are_in_order() {
        let done = AtomicUsize::new(0);
        let squares = each(100, |number| {
            done.fetch_add(1, Relaxed);
            number * number
        });
        assert_eq!(squares, (0..100).map(|number| number * number).collect::<Vec<_>>());
        assert_eq!(done.into_inner(), 100);
        assert_eq!(each(0, |number| number), []);
    }
}
