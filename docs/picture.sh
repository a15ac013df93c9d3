#!/bin/sh
# Makes the README's picture anew, of this machine: a quarter of an hour, in which nothing else should run.
set -eu
cd "$(dirname "$0")/.."
rows=$(mktemp -d)
trap 'rm -rf "$rows"' EXIT
cargo run --release -- bench --random 50 --seed "${1:-351}" --out "$rows/rows.jsonl"
cargo run --release -- report "$rows/rows.jsonl" --format svg --out docs/regret.svg
