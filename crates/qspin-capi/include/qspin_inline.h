/* qspin: the first attempt of some locks in the caller's code. SPDX-License-Identifier: MIT OR Apache-2.0

   Off unless QSPIN_INLINE is defined before <qspin.h> is included; include that one, not this.

   What it does. An uncontended acquisition is one compare-exchange, and a release one instruction more. With
   QSPIN_INLINE these stand in the caller, and only what has to wait, or to wake a waiter, calls the library.
   Code with and without it may use the same lock.

   What it costs. The layout of the word, which is otherwise the library's secret, becomes part of the
   program: it must be compiled anew for a library with another soname. Each place that locks becomes some
   tens of bytes longer. What is saved is two calls by way of the procedure linkage table: 2 to 3.5 ns of the 11 to
   20 ns that an acquisition and a release without contention take (docs/c.md). It is off because of the layout.

   For the locks whose first attempt is a compare-exchange of one word from 0 to 1. The others (tickets,
   mcs, simple, select, queued_rw) begin in other ways, and always call the library. */

#ifndef QSPIN_INLINE_H
#define QSPIN_INLINE_H

#ifndef QSPIN_H
#error "include <qspin.h>, with QSPIN_INLINE defined before it"
#endif
#if !defined(__GNUC__)
#error "QSPIN_INLINE needs the __atomic built-in functions of gcc and clang"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Acquire pairs with the release of the last owner, in the library or here. */
static inline bool qspin_inline_take(uint32_t *word) QSPIN_NOEXCEPT {
    uint32_t unlocked = 0;
    return __atomic_compare_exchange_n(word, &unlocked, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

#define QSPIN_INLINE_LOCK(name)                                                                    \
    static inline void qspin_##name##_lock_inline(qspin_##name##_t *lock) QSPIN_NOEXCEPT {         \
        if (__builtin_expect(!qspin_inline_take(&lock->qspin_private[0]), 0)) {                    \
            qspin_##name##_lock(lock);                                                             \
        }                                                                                          \
    }

/* The owner's bit is subtracted: nothing else of the word is the owner's. */
#define QSPIN_INLINE_UNLOCK_SUBTRACT(name)                                                         \
    static inline void qspin_##name##_unlock_inline(qspin_##name##_t *lock) QSPIN_NOEXCEPT {       \
        (void)__atomic_fetch_sub(&lock->qspin_private[0], 1u, __ATOMIC_RELEASE);                   \
    }

/* A waiter that halts has set a bit in the word: the library wakes it. */
#define QSPIN_INLINE_UNLOCK_EXCHANGE(name)                                                         \
    static inline void qspin_##name##_unlock_inline(qspin_##name##_t *lock) QSPIN_NOEXCEPT {       \
        uint32_t mine = 1;                                                                         \
        if (__builtin_expect(!__atomic_compare_exchange_n(&lock->qspin_private[0], &mine, 0u,      \
                                 false, __ATOMIC_RELEASE, __ATOMIC_RELAXED), 0)) {                 \
            qspin_##name##_unlock(lock);                                                           \
        }                                                                                          \
    }

/* The word is a flag. */
#define QSPIN_INLINE_UNLOCK_STORE(name)                                                            \
    static inline void qspin_##name##_unlock_inline(qspin_##name##_t *lock) QSPIN_NOEXCEPT {       \
        __atomic_store_n(&lock->qspin_private[0], 0u, __ATOMIC_RELEASE);                           \
    }

QSPIN_INLINE_LOCK(native)
QSPIN_INLINE_UNLOCK_SUBTRACT(native)
QSPIN_INLINE_LOCK(cna)
QSPIN_INLINE_UNLOCK_SUBTRACT(cna)
QSPIN_INLINE_LOCK(paravirt)
QSPIN_INLINE_UNLOCK_EXCHANGE(paravirt)
QSPIN_INLINE_LOCK(paravirt_stealing)
QSPIN_INLINE_UNLOCK_EXCHANGE(paravirt_stealing)
QSPIN_INLINE_LOCK(paravirt_queued)
QSPIN_INLINE_UNLOCK_EXCHANGE(paravirt_queued)
QSPIN_INLINE_LOCK(cna_paravirt)
QSPIN_INLINE_UNLOCK_EXCHANGE(cna_paravirt)
QSPIN_INLINE_LOCK(backoff)
QSPIN_INLINE_UNLOCK_STORE(backoff)
QSPIN_INLINE_LOCK(tas)
QSPIN_INLINE_UNLOCK_STORE(tas)
QSPIN_INLINE_LOCK(yielding)
QSPIN_INLINE_UNLOCK_STORE(yielding)

#undef QSPIN_INLINE_LOCK
#undef QSPIN_INLINE_UNLOCK_SUBTRACT
#undef QSPIN_INLINE_UNLOCK_EXCHANGE
#undef QSPIN_INLINE_UNLOCK_STORE

#ifdef __cplusplus
}
#endif

/* Calls from here on; a pointer to a function is still the library's. */
#define qspin_native_lock(lock) qspin_native_lock_inline(lock)
#define qspin_native_unlock(lock) qspin_native_unlock_inline(lock)
#define qspin_cna_lock(lock) qspin_cna_lock_inline(lock)
#define qspin_cna_unlock(lock) qspin_cna_unlock_inline(lock)
#define qspin_paravirt_lock(lock) qspin_paravirt_lock_inline(lock)
#define qspin_paravirt_unlock(lock) qspin_paravirt_unlock_inline(lock)
#define qspin_paravirt_stealing_lock(lock) qspin_paravirt_stealing_lock_inline(lock)
#define qspin_paravirt_stealing_unlock(lock) qspin_paravirt_stealing_unlock_inline(lock)
#define qspin_paravirt_queued_lock(lock) qspin_paravirt_queued_lock_inline(lock)
#define qspin_paravirt_queued_unlock(lock) qspin_paravirt_queued_unlock_inline(lock)
#define qspin_cna_paravirt_lock(lock) qspin_cna_paravirt_lock_inline(lock)
#define qspin_cna_paravirt_unlock(lock) qspin_cna_paravirt_unlock_inline(lock)
#define qspin_backoff_lock(lock) qspin_backoff_lock_inline(lock)
#define qspin_backoff_unlock(lock) qspin_backoff_unlock_inline(lock)
#define qspin_tas_lock(lock) qspin_tas_lock_inline(lock)
#define qspin_tas_unlock(lock) qspin_tas_unlock_inline(lock)
#define qspin_yielding_lock(lock) qspin_yielding_lock_inline(lock)
#define qspin_yielding_unlock(lock) qspin_yielding_unlock_inline(lock)

#endif
