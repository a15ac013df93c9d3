#!/bin/sh
# Explores the locks with GenMC, under RC11 and under IMM, where GenMC is installed (`GENMC` says where, if it is not on
# the PATH). GenMC reads LLVM IR; what Rust's compiler writes is made readable for LLVM 16 and later, and `opt` of the LLVM
# that GenMC was built with must be there, too. Options: those of `qspin-check genmc`, as in `--lock native --sizes 4x1`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec cargo run --quiet --release --manifest-path "$here/Cargo.toml" -- genmc "$@"
