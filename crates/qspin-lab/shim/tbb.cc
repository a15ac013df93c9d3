/* oneTBB's mutexes. */
#include "peer.h"

#include <new>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/spin_mutex.h>

QSPIN_PEER(tbb_spin);
QSPIN_PEER(tbb_mutex);

using Spin = oneapi::tbb::spin_mutex;
using Mutex = oneapi::tbb::mutex;

static_assert(sizeof(Spin) <= QSPIN_PEER_ROOM && sizeof(Mutex) <= QSPIN_PEER_ROOM, "room");

size_t qspin_tbb_spin_size() { return sizeof(Spin); }
void qspin_tbb_spin_init(void *room) { new (room) Spin; }
void qspin_tbb_spin_lock(void *lock) { static_cast<Spin *>(lock)->lock(); }
void qspin_tbb_spin_unlock(void *lock) { static_cast<Spin *>(lock)->unlock(); }

size_t qspin_tbb_mutex_size() { return sizeof(Mutex); }
void qspin_tbb_mutex_init(void *room) { new (room) Mutex; }
void qspin_tbb_mutex_lock(void *lock) { static_cast<Mutex *>(lock)->lock(); }
void qspin_tbb_mutex_unlock(void *lock) { static_cast<Mutex *>(lock)->unlock(); }
