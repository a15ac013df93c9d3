#!/usr/bin/env bash
#SBATCH --job-name=qspin-sweep
#SBATCH --array=1-16
#SBATCH --cpus-per-task=2
# A sweep as a Slurm job array: each task simulates one part of a scenario's cells.
#
#   mkdir parts
#   sbatch examples/sweep/slurm-array.sh scenarios/evidence/kick-ahead.toml 16 parts --seeds 10
#   qspin report merge parts/*.jsonl --out whole.jsonl     # when all tasks are done
#
# The published tables likewise, one by its name or `--all` of them, with the options of qspin reproduce:
#
#   sbatch examples/sweep/slurm-array.sh --all 16 parts
#   qspin report merge parts/*.jsonl --out whole.json      # what qspin reproduce --all --json prints
#
# The array must have as many tasks as the second argument says. A part that is there already is left as it
# is, so submitting the same again, or some numbers of it (--array=7), does what is missing. The merge
# refuses parts that are missing, twice there, or of something else.
set -euo pipefail

if [ $# -lt 3 ]; then
    echo "usage: slurm-array.sh SCENARIO.toml|TABLE|--all PARTS FOLDER [OPTION of qspin simulate or reproduce]…" >&2
    exit 2
fi
scenario=$1 parts=$2 folder=$3
shift 3
case $scenario in *.toml) command=simulate ;; *) command=reproduce ;; esac
if [ -z "${SLURM_ARRAY_TASK_ID:-}" ]; then
    echo "slurm-array.sh: there is no SLURM_ARRAY_TASK_ID; submit it by sbatch, as an array" >&2
    exit 2
fi

part=$folder/$SLURM_ARRAY_TASK_ID.jsonl
if [ -e "$part" ]; then
    echo "$part is there already"
    exit 0
fi
# A task that is cancelled leaves what it has finished; only a whole part gets the name of one.
trap 'rm -f "$part.unfinished"' EXIT
"${QSPIN:-qspin}" "$command" "$scenario" "$@" --shard "$SLURM_ARRAY_TASK_ID/$parts" --out "$part.unfinished"
mv "$part.unfinished" "$part"
