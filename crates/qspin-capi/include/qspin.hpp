/* qspin: the locks as classes of C++17. SPDX-License-Identifier: MIT OR Apache-2.0

   Each class is a lock of <qspin.h>, of its size, for std::lock_guard, std::unique_lock, std::scoped_lock and
   std::lock: `qspin::native` is `qspin_native_t`. `qspin::queued_rw` is for std::shared_lock, too. What holds
   for the functions holds here: nothing throws, and lock() of a lock that the thread holds waits for ever.
   A static or global one needs no constructor at run time, so it may be locked before main().

   `qspin::mutex` and `qspin::rwlock`, the defaults, can wait for a time, as std::timed_mutex and
   std::shared_timed_mutex can, and `qspin::condition_variable` is for std::unique_lock<qspin::mutex>. */

#ifndef QSPIN_HPP
#define QSPIN_HPP

#include "qspin.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "qspin.hpp is for C++17 or later; for C and for earlier C++ there is qspin.h"
#endif

namespace qspin {

/* Nanoseconds from now, none of a time that is over. */
template <class Rep, class Period>
[[nodiscard]] uint64_t nanoseconds_of(const std::chrono::duration<Rep, Period> &time) {
    using float_seconds = std::chrono::duration<double>;
    if (time <= time.zero()) {
        return 0;
    }
    if (float_seconds(time) > float_seconds(1e9)) {
        return UINT64_MAX;
    }
    return static_cast<uint64_t>(std::chrono::ceil<std::chrono::nanoseconds>(time).count());
}

/* What every class has. */
#define QSPIN_MEMBERS(name, initialiser)                                                           \
    qspin_##name##_t word_ = initialiser;                                                          \
                                                                                                   \
public:                                                                                            \
    using native_handle_type = qspin_##name##_t *;                                                 \
    constexpr name() noexcept = default;                                                           \
    name(const name &) = delete;                                                                   \
    name &operator=(const name &) = delete;                                                        \
    [[nodiscard]] bool is_locked() const noexcept { return qspin_##name##_is_locked(&word_); }     \
    native_handle_type native_handle() noexcept { return &word_; }

/* Those that exclude. */
#define QSPIN_EXCLUDES(name)                                                                       \
    void lock() noexcept { qspin_##name##_lock(&word_); }                                          \
    [[nodiscard]] bool try_lock() noexcept { return qspin_##name##_trylock(&word_) == 0; }         \
    void unlock() noexcept { qspin_##name##_unlock(&word_); }

/* Those that readers share. */
#define QSPIN_SHARES(name)                                                                         \
    void lock() noexcept { qspin_##name##_wrlock(&word_); }                                        \
    [[nodiscard]] bool try_lock() noexcept { return qspin_##name##_trywrlock(&word_) == 0; }       \
    void unlock() noexcept { qspin_##name##_wrunlock(&word_); }                                    \
    void lock_shared() noexcept { qspin_##name##_rdlock(&word_); }                                 \
    [[nodiscard]] bool try_lock_shared() noexcept { return qspin_##name##_tryrdlock(&word_) == 0; }\
    void unlock_shared() noexcept { qspin_##name##_rdunlock(&word_); }

/* Those that can wait for a time. */
#define QSPIN_TIMED(wait_for, wait_until, function)                                                \
    template <class Rep, class Period>                                                             \
    [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period> &time) {                  \
        return function(&word_, nanoseconds_of(time)) == 0;                                        \
    }                                                                                              \
    template <class Clock, class Duration>                                                         \
    [[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration> &time) {          \
        return wait_for(time - Clock::now());                                                      \
    }

#define QSPIN_CLASS(name, initialiser)                                                             \
    class name {                                                                                   \
        QSPIN_MEMBERS(name, initialiser)                                                           \
        QSPIN_EXCLUDES(name)                                                                       \
    };                                                                                             \
    static_assert(sizeof(name) == sizeof(qspin_##name##_t))

#define QSPIN_SHARED_CLASS(name, initialiser)                                                      \
    class name {                                                                                   \
        QSPIN_MEMBERS(name, initialiser)                                                           \
        QSPIN_SHARES(name)                                                                         \
    };                                                                                             \
    static_assert(sizeof(name) == sizeof(qspin_##name##_t))

QSPIN_CLASS(native, QSPIN_NATIVE_INIT);
QSPIN_CLASS(backoff, QSPIN_BACKOFF_INIT);
QSPIN_CLASS(tas, QSPIN_TAS_INIT);
QSPIN_CLASS(yielding, QSPIN_YIELDING_INIT);
QSPIN_CLASS(ticket, QSPIN_TICKET_INIT);
QSPIN_CLASS(mcs, QSPIN_MCS_INIT);
QSPIN_CLASS(simple, QSPIN_SIMPLE_INIT);
QSPIN_CLASS(paravirt, QSPIN_PARAVIRT_INIT);
QSPIN_CLASS(paravirt_stealing, QSPIN_PARAVIRT_STEALING_INIT);
QSPIN_CLASS(paravirt_queued, QSPIN_PARAVIRT_QUEUED_INIT);
QSPIN_CLASS(paravirt_ticket, QSPIN_PARAVIRT_TICKET_INIT);
QSPIN_CLASS(cna, QSPIN_CNA_INIT);
QSPIN_CLASS(cna_paravirt, QSPIN_CNA_PARAVIRT_INIT);
QSPIN_CLASS(select, QSPIN_SELECT_INIT);

QSPIN_SHARED_CLASS(queued_rw, QSPIN_QUEUED_RW_INIT);
QSPIN_SHARED_CLASS(paravirt_rw, QSPIN_PARAVIRT_RW_INIT);

/* The default mutex. */
class mutex {
    QSPIN_MEMBERS(mutex, QSPIN_MUTEX_INIT)
    QSPIN_EXCLUDES(mutex)
    QSPIN_TIMED(try_lock_for, try_lock_until, qspin_mutex_lock_for)
};
static_assert(sizeof(mutex) == sizeof(qspin_mutex_t));

/* The default reader-writer lock. */
class rwlock {
    QSPIN_MEMBERS(rwlock, QSPIN_RWLOCK_INIT)
    QSPIN_SHARES(rwlock)
    QSPIN_TIMED(try_lock_for, try_lock_until, qspin_rwlock_wrlock_for)
    QSPIN_TIMED(try_lock_shared_for, try_lock_shared_until, qspin_rwlock_rdlock_for)
};
static_assert(sizeof(rwlock) == sizeof(qspin_rwlock_t));

#undef QSPIN_MEMBERS
#undef QSPIN_EXCLUDES
#undef QSPIN_SHARES
#undef QSPIN_TIMED
#undef QSPIN_CLASS
#undef QSPIN_SHARED_CLASS

/* The condition variable of the default mutex. */
class condition_variable {
public:
    using native_handle_type = qspin_cond_t *;
    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;
    void notify_one() noexcept { qspin_cond_signal(&words_); }
    void notify_all() noexcept { qspin_cond_broadcast(&words_); }
    void wait(std::unique_lock<mutex> &held) noexcept {
        qspin_cond_wait(&words_, held.mutex()->native_handle());
    }
    template <class Predicate>
    void wait(std::unique_lock<mutex> &held, Predicate is_so) {
        while (!is_so()) {
            wait(held);
        }
    }
    template <class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<mutex> &held,
                              const std::chrono::time_point<Clock, Duration> &time) {
        qspin_cond_wait_for(&words_, held.mutex()->native_handle(), nanoseconds_of(time - Clock::now()));
        return Clock::now() < time ? std::cv_status::no_timeout : std::cv_status::timeout;
    }
    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<mutex> &held,
                    const std::chrono::time_point<Clock, Duration> &time, Predicate is_so) {
        while (!is_so()) {
            if (wait_until(held, time) == std::cv_status::timeout) {
                return is_so();
            }
        }
        return true;
    }
    template <class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<mutex> &held,
                            const std::chrono::duration<Rep, Period> &time) {
        return wait_until(held, std::chrono::steady_clock::now() + time);
    }
    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<mutex> &held, const std::chrono::duration<Rep, Period> &time,
                  Predicate is_so) {
        return wait_until(held, std::chrono::steady_clock::now() + time, is_so);
    }
    native_handle_type native_handle() noexcept { return &words_; }

private:
    qspin_cond_t words_ = QSPIN_COND_INIT;
};

}  // namespace qspin

#endif
