/* Every lock that excludes, for the tests. */
#define EVERY_LOCK(X)                                                                              \
    X(mutex, MUTEX)                                                                                \
    X(native, NATIVE)                                                                              \
    X(paravirt, PARAVIRT)                                                                          \
    X(paravirt_stealing, PARAVIRT_STEALING)                                                        \
    X(paravirt_queued, PARAVIRT_QUEUED)                                                            \
    X(paravirt_ticket, PARAVIRT_TICKET)                                                            \
    X(cna, CNA)                                                                                    \
    X(cna_paravirt, CNA_PARAVIRT)                                                                  \
    X(ticket, TICKET)                                                                              \
    X(mcs, MCS)                                                                                    \
    X(backoff, BACKOFF)                                                                            \
    X(tas, TAS)                                                                                    \
    X(yielding, YIELDING)                                                                          \
    X(simple, SIMPLE)                                                                              \
    X(select, SELECT)

#define REQUIRE(condition)                                                                         \
    ((condition) ? (void)0                                                                         \
                 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(1)))
