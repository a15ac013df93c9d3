/* Every lock that excludes, for the tests. */
#define EVERY_LOCK(X)                                                                              \
    X(mutex, MUTEX) \
    X(native, NATIVE) \
    X(backoff, BACKOFF) \
    X(tas, TAS) \
    X(yielding, YIELDING) \
    X(ticket, TICKET) \
    X(mcs, MCS) \
    X(simple, SIMPLE) \
    X(paravirt, PARAVIRT) \
    X(paravirt_stealing, PARAVIRT_STEALING) \
    X(paravirt_queued, PARAVIRT_QUEUED) \
    X(paravirt_ticket, PARAVIRT_TICKET) \
    X(cna, CNA) \
    X(cna_paravirt, CNA_PARAVIRT) \
    X(select, SELECT) \
    /* and no more */

/* Every lock that readers share. */
#define EVERY_SHARED(Y)                                                                            \
    Y(rwlock, RWLOCK) \
    Y(queued_rw, QUEUED_RW) \
    Y(paravirt_rw, PARAVIRT_RW) \
    /* and no more */

#define REQUIRE(condition)                                                                         \
    ((condition) ? (void)0                                                                         \
                 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(1)))
