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

#define QSPIN_CLASS(name, initialiser)                                                             \
    class name {                                                                                   \
    public:                                                                                        \
        using native_handle_type = qspin_##name##_t *;                                             \
        constexpr name() noexcept = default;                                                       \
        name(const name &) = delete;                                                               \
        name &operator=(const name &) = delete;                                                    \
        void lock() noexcept { qspin_##name##_lock(&word_); }                                      \
        [[nodiscard]] bool try_lock() noexcept { return qspin_##name##_trylock(&word_) == 0; }     \
        void unlock() noexcept { qspin_##name##_unlock(&word_); }                                  \
        [[nodiscard]] bool is_locked() const noexcept { return qspin_##name##_is_locked(&word_); } \
        native_handle_type native_handle() noexcept { return &word_; }                             \
                                                                                                   \
    private:                                                                                       \
        qspin_##name##_t word_ = initialiser;                                                      \
    };                                                                                             \
    static_assert(sizeof(name) == sizeof(qspin_##name##_t))

QSPIN_CLASS(native, QSPIN_NATIVE_INIT);
QSPIN_CLASS(paravirt, QSPIN_PARAVIRT_INIT);
QSPIN_CLASS(paravirt_stealing, QSPIN_PARAVIRT_STEALING_INIT);
QSPIN_CLASS(paravirt_queued, QSPIN_PARAVIRT_QUEUED_INIT);
QSPIN_CLASS(paravirt_ticket, QSPIN_PARAVIRT_TICKET_INIT);
QSPIN_CLASS(cna, QSPIN_CNA_INIT);
QSPIN_CLASS(cna_paravirt, QSPIN_CNA_PARAVIRT_INIT);
QSPIN_CLASS(ticket, QSPIN_TICKET_INIT);
QSPIN_CLASS(mcs, QSPIN_MCS_INIT);
QSPIN_CLASS(backoff, QSPIN_BACKOFF_INIT);
QSPIN_CLASS(tas, QSPIN_TAS_INIT);
QSPIN_CLASS(yielding, QSPIN_YIELDING_INIT);
QSPIN_CLASS(simple, QSPIN_SIMPLE_INIT);
QSPIN_CLASS(select, QSPIN_SELECT_INIT);

#undef QSPIN_CLASS

/* The queued reader-writer lock. */
class queued_rw {
public:
    using native_handle_type = qspin_queued_rw_t *;
    constexpr queued_rw() noexcept = default;
    queued_rw(const queued_rw &) = delete;
    queued_rw &operator=(const queued_rw &) = delete;
    void lock() noexcept { qspin_queued_rw_wrlock(&word_); }
    [[nodiscard]] bool try_lock() noexcept { return qspin_queued_rw_trywrlock(&word_) == 0; }
    void unlock() noexcept { qspin_queued_rw_wrunlock(&word_); }
    void lock_shared() noexcept { qspin_queued_rw_rdlock(&word_); }
    [[nodiscard]] bool try_lock_shared() noexcept { return qspin_queued_rw_tryrdlock(&word_) == 0; }
    void unlock_shared() noexcept { qspin_queued_rw_rdunlock(&word_); }
    [[nodiscard]] bool is_locked() const noexcept { return qspin_queued_rw_is_locked(&word_); }
    native_handle_type native_handle() noexcept { return &word_; }

private:
    qspin_queued_rw_t word_ = QSPIN_QUEUED_RW_INIT;
};
static_assert(sizeof(queued_rw) == sizeof(qspin_queued_rw_t));

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

/* The default mutex. */
class mutex {
public:
    using native_handle_type = qspin_mutex_t *;
    constexpr mutex() noexcept = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock() noexcept { qspin_mutex_lock(&word_); }
    [[nodiscard]] bool try_lock() noexcept { return qspin_mutex_trylock(&word_) == 0; }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &time) {
        return qspin_mutex_lock_for(&word_, nanoseconds_of(time)) == 0;
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        return try_lock_for(time - Clock::now());
    }
    void unlock() noexcept { qspin_mutex_unlock(&word_); }
    [[nodiscard]] bool is_locked() const noexcept { return qspin_mutex_is_locked(&word_); }
    native_handle_type native_handle() noexcept { return &word_; }

private:
    qspin_mutex_t word_ = QSPIN_MUTEX_INIT;
};
static_assert(sizeof(mutex) == sizeof(qspin_mutex_t));

/* The default reader-writer lock. */
class rwlock {
public:
    using native_handle_type = qspin_rwlock_t *;
    constexpr rwlock() noexcept = default;
    rwlock(const rwlock &) = delete;
    rwlock &operator=(const rwlock &) = delete;
    void lock() noexcept { qspin_rwlock_wrlock(&word_); }
    [[nodiscard]] bool try_lock() noexcept { return qspin_rwlock_trywrlock(&word_) == 0; }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &time) {
        return qspin_rwlock_wrlock_for(&word_, nanoseconds_of(time)) == 0;
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        return try_lock_for(time - Clock::now());
    }
    void unlock() noexcept { qspin_rwlock_wrunlock(&word_); }
    void lock_shared() noexcept { qspin_rwlock_rdlock(&word_); }
    [[nodiscard]] bool try_lock_shared() noexcept { return qspin_rwlock_tryrdlock(&word_) == 0; }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time) {
        return qspin_rwlock_rdlock_for(&word_, nanoseconds_of(time)) == 0;
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time) {
        return try_lock_shared_for(time - Clock::now());
    }
    void unlock_shared() noexcept { qspin_rwlock_rdunlock(&word_); }
    [[nodiscard]] bool is_locked() const noexcept { return qspin_rwlock_is_locked(&word_); }
    native_handle_type native_handle() noexcept { return &word_; }

private:
    qspin_rwlock_t word_ = QSPIN_RWLOCK_INIT;
};
static_assert(sizeof(rwlock) == sizeof(qspin_rwlock_t));

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
