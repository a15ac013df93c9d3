#!/usr/bin/env bash
# Programs of Debian with qspin's locks in the place of the C library's: first whether they work, then how fast.
#
#   crates/qspin-preload/real-programs.sh [--short | --measure [PAIRS [TEXT]]]
#
#   --short     a few seconds a program: results only
#   (nothing)   every program of docs/real-programs.md: results only, some minutes
#   --measure   the same programs against the C library's locks, in turns, 5 pairs each; with TEXT those
#               whose name contains it
#
# Wants rocksdb-tools, kyotocabinet-utils, sysbench, redis-server, redis-tools, memcached, libmemcached-tools and
# python3 with libpython3.11-testsuite; what is not there is skipped, and said. The command `qspin` and the library
# are those of target/release, or what QSPIN and QSPIN_PRELOAD name; the lock is QSPIN_LOCK_NAME, or the default.
set -uo pipefail
cd "$(dirname "$0")/../.."

mode=all
pairs=5
only=
case "${1-}" in
    "") ;;
    --short) mode=short ;;
    --measure) mode=measure; pairs=${2-5}; only=${3-} ;;
    *) echo "real-programs: unknown option '$1': there are --short and --measure [PAIRS [TEXT]]" >&2; exit 2 ;;
esac
[[ $pairs =~ ^[1-9][0-9]*$ ]] || { echo "real-programs: '$pairs' is no number of pairs: give 1 or more" >&2; exit 2; }

qspin=${QSPIN:-target/release/qspin}
if ! [ -x "$qspin" ]; then
    echo "real-programs: there is no $qspin: build it (cargo build --release), or name it in QSPIN" >&2
    exit 2
fi
qspin=$(realpath "$qspin")
lock=()
[ -n "${QSPIN_LOCK_NAME-}" ] && lock=(--lock "$QSPIN_LOCK_NAME")
work=$(mktemp -d)
rocks=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d -p "$work")
servers=()
ends() {
    [ ${#servers[@]} -gt 0 ] && kill "${servers[@]}" 2>/dev/null
    rm -rf "$work" "$rocks"
}
trap ends EXIT
failed=0
tried=0

is_there() {
    command -v "$1" >/dev/null && return 0
    echo "skipped: $2 (no $1)"
    return 1
}

# A program by itself: it must end well. NAME COMMAND…
works() {
    local name=$1 code
    shift
    "$qspin" run "${lock[@]}" -- timeout 300 "$@" >"$work/said" 2>&1
    code=$?
    if [ $code -eq 0 ]; then
        echo "passed: $name"
    else
        echo "FAILED: $name (exit code $code)"
        tail -5 "$work/said" | sed 's/^/    /'
        failed=1
    fi
}

# A program against itself with the C library's locks, by its time or by a figure that it prints.
faster() {
    local name=$1 figure=$2
    shift 2
    [ -n "$figure" ] && set -- --figure "$figure" -- "$@" || set -- -- "$@"
    printf '%-44s ' "$name"
    "$qspin" run "${lock[@]}" --compare "$pairs" "$@" || failed=1
}

try() {
    local name=$1 figure=$2
    shift 2
    [[ $name == *"$only"* ]] || return 0
    tried=$((tried + 1))
    if [ $mode = measure ]; then faster "$name" "$figure" "$@"; else works "$name" "$@"; fi
}

rocksdb() {
    is_there db_bench "rocksdb" || return
    local keys=200000 threads="1 4 32" seconds=2
    [ $mode = short ] && keys=20000 threads=4 seconds=1
    [ $mode = measure ] && threads="1 2 8 32" seconds=1
    # Each run has the same database, in memory if it can be: one that grows leaves work behind for the next run.
    cat >"$work/rocks" <<EOF
#!/bin/sh
# rocksdb with a copy of the database: options of db_bench
rm -rf "$rocks/copy" && cp -r "$rocks/filled" "$rocks/copy" || exit
exec db_bench --db="$rocks/copy" --num=$keys --compression_type=none --disable_wal=1 --use_existing_db=1 "\$@"
EOF
    chmod +x "$work/rocks"
    on_filled() {
        [[ $1 == *"$only"* ]] || return 0
        # It takes seconds, so only if it is wanted.
        [ -d "$rocks/filled" ] || db_bench --db="$rocks/filled" --num=$keys --compression_type=none --disable_wal=1 \
            --benchmarks=fillrandom >/dev/null 2>&1
        try "$1" "micros/op" "$work/rocks" "${@:2}"
    }
    local one
    for one in $threads; do
        try "rocksdb fillrandom, $one threads" "micros/op" db_bench --db="$rocks/new" --num=$((keys / one)) \
            --compression_type=none --disable_wal=1 --benchmarks=fillrandom --threads="$one"
        on_filled "rocksdb readrandom, one shard, $one threads" --cache_numshardbits=0 --benchmarks=readrandom \
            --duration=$seconds --threads="$one"
        on_filled "rocksdb readwhilewriting, $one threads" --benchmarks=readwhilewriting --duration=$seconds \
            --threads="$one"
    done
}

kyoto() {
    is_there kccachetest "kyotocabinet" || return
    local order=50000 wicked=37500
    [ $mode = short ] && order=5000 wicked=4000
    [ $mode = measure ] && wicked=150000
    try "kccachetest order, 8 threads" "" kccachetest order -th 8 -rnd $order
    try "kccachetest wicked, 8 threads" "" kccachetest wicked -th 8 -it 1 $wicked
}

sys() {
    is_there sysbench "sysbench" || return
    local locks=20000 seconds=2
    [ $mode = short ] && locks=2000 seconds=1
    [ $mode = measure ] && locks=400000
    try "sysbench mutex, 8 threads, one mutex" "" sysbench mutex --threads=8 --mutex-num=1 \
        --mutex-locks=$locks --mutex-loops=100 run
    try "sysbench threads, 8 threads, one lock" "total number of events:" sysbench threads --threads=8 \
        --thread-locks=1 --time=$seconds run
}

# A server with these locks, or with the C library's, under a load from outside.
redis() {
    is_there redis-server "redis" && is_there redis-benchmark "redis" || return
    local requests=20000
    [ $mode = short ] && requests=2000
    cat >"$work/redis" <<'EOF'
#!/bin/sh
# redis under load: port requests
redis-server --port "$1" --save "" --appendonly no --io-threads 3 --io-threads-do-reads yes --daemonize no >/dev/null &
server=$!
for i in 1 2 3 4 5 6 7 8 9 10; do redis-cli -p "$1" ping >/dev/null 2>&1 && break; sleep 0.2; done
redis-benchmark -p "$1" -n "$2" -c 50 -q -t set,get -P 8 >"$0.said"
code=$?
tr '\r' '\n' <"$0.said" | grep 'per second'
kill $server; wait $server
exit $code
EOF
    chmod +x "$work/redis"
    try "redis, io-threads, SET and GET" "GET:" "$work/redis" 7911 $requests
}

memcached_() {
    is_there memcached "memcached" && is_there memcslap "memcached" || return
    local calls=5000
    [ $mode = short ] && calls=500
    cat >"$work/memcached" <<'EOF'
#!/bin/sh
# memcached under load: port calls
memcached -u nobody -p "$1" -t 8 -l 127.0.0.1 &
server=$!
sleep 0.5
begin=$(date +%s%N)
memcslap --servers=127.0.0.1:"$1" --concurrency=8 --execute-number="$2" --test=get && \
    memcslap --servers=127.0.0.1:"$1" --concurrency=8 --execute-number="$2" --test=set
code=$?
echo "calls/s: $((16 * $2 * 1000000000 / ($(date +%s%N) - begin)))"
kill $server; wait $server
exit $code
EOF
    chmod +x "$work/memcached"
    try "memcached, 8 threads, get and set" "calls/s:" "$work/memcached" 7912 $calls
}

# python3's own tests: those that fail must fail without the library, too.
python() {
    local python=/usr/bin/python3
    [ $mode = measure ] && return
    "$python" -c 'import test.test_queue' 2>/dev/null || { echo "skipped: python3's tests (not installed)"; return; }
    local tests="test_threading test_queue test_concurrent_futures" one
    [ $mode = short ] && tests="test_queue test_thread"
    for one in $tests; do
        (cd "$work" && timeout 300 "$python" -m unittest -q "test.$one" >"$work/bare" 2>&1)
        (cd "$work" && "$qspin" run "${lock[@]}" -- timeout 300 "$python" -m unittest -q "test.$one" >"$work/with" 2>&1)
        local bare with
        bare=$(grep -E '^(FAIL|ERROR):' "$work/bare" | sort)
        with=$(grep -E '^(FAIL|ERROR):' "$work/with" | sort)
        if ! grep -qE '^Ran [1-9]' "$work/with"; then
            echo "FAILED: python3 $one (it did not end)"; failed=1
        elif [ -n "$(comm -13 <(echo "$bare") <(echo "$with"))" ]; then
            echo "FAILED: python3 $one"
            comm -13 <(echo "$bare") <(echo "$with") | sed 's/^/    /'
            failed=1
        else
            echo "passed: python3 $one ($(grep -E '^Ran' "$work/with"), $(grep -c . <<<"$bare") failures without the library)"
        fi
    done
}

rocksdb
kyoto
sys
redis
memcached_
python
if [ -n "$only" ] && [ $tried -eq 0 ]; then
    echo "real-programs: no program that is here has '$only' in its name, as in 'redis' or 'readrandom, one shard, 8'" >&2
    exit 2
fi
exit $failed
