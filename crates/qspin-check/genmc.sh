#!/bin/sh
# Explores the locks with GenMC, under RC11 and under IMM, where GenMC is installed.
#
# GenMC reads LLVM IR: it must have been built against the LLVM of this Rust (`rustc -vV` says
# which). Usage: crates/qspin-check/genmc.sh [threads]
set -eu

if ! command -v genmc >/dev/null 2>&1; then
    echo "skipped: GenMC (genmc is not on the PATH)"
    exit 0
fi

threads=${1:-2}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

cargo run --quiet --release --manifest-path "$here/Cargo.toml" -- \
    emit --lock all --threads "$threads" --out "$work" >"$work/emit.txt"

for ir in "$work"/*.ll; do
    lock=${ir##*/client-}
    lock=${lock%-"$threads".ll}
    for model in rc11 imm; do
        if genmc "--$model" --check-liveness --input-from-bitcode-file "$ir" \
            >"$work/genmc.txt" 2>&1; then
            executions=$(sed -n 's/.*complete executions explored: *//p' "$work/genmc.txt")
            echo "genmc  $lock  $threads threads  $model  ${executions:-?} executions  passed"
        else
            failed=1
            echo "genmc  $lock  $threads threads  $model  FAILED"
            sed 's/^/    /' "$work/genmc.txt"
        fi
    done
done
exit $failed
