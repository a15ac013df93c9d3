#!/usr/bin/env bash
# A sweep over several computers by GNU parallel, and what comes of it in one file.
#
#   examples/sweep/gnu-parallel.sh scenarios/evidence/kick-ahead.toml 16 whole.jsonl --seeds 10
#
# qspin uses all processors of a computer, so one part runs at a time on each. Which computers, GNU
# parallel is told as always; here by its variable, for computers that have the scenario at the same path:
#
#   PARALLEL='--sshlogin first,second --return {3}/{1}.jsonl --cleanup --workdir .' examples/sweep/gnu-parallel.sh …
set -euo pipefail

if [ $# -lt 3 ]; then
    echo "usage: gnu-parallel.sh SCENARIO.toml PARTS WHOLE.jsonl [OPTION of qspin simulate]…" >&2
    exit 2
fi
scenario=$1 parts=$2 whole=$3
shift 3
qspin=${QSPIN:-qspin}

folder=$(mktemp -d "$whole.parts-XXXXXX")
trap 'rm -rf "$folder"' EXIT
parallel --quote --jobs 1 --halt now,fail=1 \
    "$qspin" simulate "$scenario" "$@" --shard "{1}/{2}" --out "{3}/{1}.jsonl" \
    ::: $(seq "$parts") ::: "$parts" ::: "$folder" > /dev/null
"$qspin" report merge "$folder"/*.jsonl --out "$whole"
