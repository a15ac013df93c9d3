/* What the measuring loop needs from a peer: four functions by name. */
#ifndef QSPIN_PEER_H
#define QSPIN_PEER_H

#include <stddef.h>

/* The room that the loop gives to a lock, at the same alignment. */
#define QSPIN_PEER_ROOM 128

#ifdef __cplusplus
#define QSPIN_LINKAGE extern "C"
#else
#define QSPIN_LINKAGE
#endif

#define QSPIN_PEER(name)                           \
    QSPIN_LINKAGE size_t qspin_##name##_size(void); \
    QSPIN_LINKAGE void qspin_##name##_init(void *); \
    QSPIN_LINKAGE void qspin_##name##_lock(void *); \
    QSPIN_LINKAGE void qspin_##name##_unlock(void *)

#endif
