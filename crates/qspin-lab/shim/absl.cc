/* Abseil's mutex. */
#include "peer.h"

#include <absl/synchronization/mutex.h>
#include <new>

QSPIN_PEER(absl);

static_assert(sizeof(absl::Mutex) <= QSPIN_PEER_ROOM, "room");

size_t qspin_absl_size() { return sizeof(absl::Mutex); }
void qspin_absl_init(void *room) { new (room) absl::Mutex; }
void qspin_absl_lock(void *lock) { static_cast<absl::Mutex *>(lock)->Lock(); }
void qspin_absl_unlock(void *lock) { static_cast<absl::Mutex *>(lock)->Unlock(); }
