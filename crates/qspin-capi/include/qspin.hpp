/* qspin: the locks as classes of C++17. SPDX-License-Identifier: MIT OR Apache-2.0

   Each class is a lock of <qspin.h>, of its size, for std::lock_guard, std::unique_lock, std::scoped_lock and
   std::lock: `qspin::native` is `qspin_native_t`. `qspin::queued_rw` is for std::shared_lock, too. What holds
   for the functions holds here: nothing throws, and lock() of a lock that the thread holds waits for ever.
   A static or global one needs no constructor at run time, so it may be locked before main().

   The names mutex, shared_mutex and condition_variable are kept free for the defaults, which do not exist
   yet. */

#ifndef QSPIN_HPP
#define QSPIN_HPP

#include "qspin.h"

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

}  // namespace qspin

#endif
