/* nsync's mutex. */
#include "peer.h"

#include <nsync.h>

QSPIN_PEER(nsync);

_Static_assert(sizeof(nsync_mu) <= QSPIN_PEER_ROOM, "room");

size_t qspin_nsync_size(void) { return sizeof(nsync_mu); }
void qspin_nsync_init(void *room) { nsync_mu_init((nsync_mu *)room); }
void qspin_nsync_lock(void *lock) { nsync_mu_lock((nsync_mu *)lock); }
void qspin_nsync_unlock(void *lock) { nsync_mu_unlock((nsync_mu *)lock); }
