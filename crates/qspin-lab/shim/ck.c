/* ConcurrencyKit's fetch-and-store and MCS spinlocks. */
#include "peer.h"

#include <ck_spinlock.h>

QSPIN_PEER(ck_fas);
QSPIN_PEER(ck_mcs);

_Static_assert(sizeof(ck_spinlock_fas_t) <= QSPIN_PEER_ROOM, "room");
_Static_assert(sizeof(ck_spinlock_mcs_t) <= QSPIN_PEER_ROOM, "room");

size_t qspin_ck_fas_size(void) { return sizeof(ck_spinlock_fas_t); }
void qspin_ck_fas_init(void *room) { ck_spinlock_fas_init((ck_spinlock_fas_t *)room); }
void qspin_ck_fas_lock(void *lock) { ck_spinlock_fas_lock((ck_spinlock_fas_t *)lock); }
void qspin_ck_fas_unlock(void *lock) { ck_spinlock_fas_unlock((ck_spinlock_fas_t *)lock); }

/* A thread of the measuring loop holds one lock at a time, so one node a thread is enough. */
static _Thread_local _Alignas(128) ck_spinlock_mcs_context_t node;

size_t qspin_ck_mcs_size(void) { return sizeof(ck_spinlock_mcs_t); }
void qspin_ck_mcs_init(void *room) { *(ck_spinlock_mcs_t *)room = NULL; }
void qspin_ck_mcs_lock(void *lock) { ck_spinlock_mcs_lock((ck_spinlock_mcs_t *)lock, &node); }
void qspin_ck_mcs_unlock(void *lock) { ck_spinlock_mcs_unlock((ck_spinlock_mcs_t *)lock, &node); }
