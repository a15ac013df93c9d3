#!/usr/bin/env bash
# Compiles qspin for systems that are not Linux with the GNU C library: nothing is linked, and nothing runs.
#
# Rust's standard libraries of these systems are rustup's; where one is not to be had, a line says that it is skipped.
set -uo pipefail
cd "$(dirname "$0")/../.."

targets=(x86_64-unknown-linux-musl aarch64-apple-darwin x86_64-pc-windows-gnu x86_64-unknown-freebsd
    wasm32-unknown-unknown)
failed=0
for target in "${targets[@]}"; do
    if ! libraries=$(rustc --print target-libdir --target "$target") || ! compgen -G "$libraries/libcore-*" >/dev/null; then
        if ! rustup target add "$target" >/dev/null 2>&1; then
            echo "skipped: $target (no standard library for it, and rustup gives none)"
            continue
        fi
    fi
    if cargo check --package qspin --features arc_lock,serde --locked --quiet --target "$target"; then
        echo "compiled: $target"
    else
        echo "FAILED: $target"
        failed=1
    fi
done
exit $failed
