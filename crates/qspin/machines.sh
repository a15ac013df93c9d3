#!/usr/bin/env bash
# The library on processors that this machine does not have: ARM, powerpc and RISC-V, by an emulator. On ARM also the
# library for C, and the one for programs that cannot be changed.
#
#   crates/qspin/machines.sh [--laboratory] [aarch64 | powerpc64le | riscv64]…
#
# With --laboratory instead of all that the simulator's tests and the command `qspin`: minutes to compile for each.
#
# Packages of Debian 13, all of that suite, are unpacked into a root of their own, a folder: target/machines, or what
# QSPIN_MACHINES names. Nothing is installed on this machine, and it learns of no foreign architecture. They are
# fetched once (400 MB; 3 GB unpacked). Where Debian 13 is not to be had, those of Debian 12 and its security suite are
# taken: they have Rust's library for ARM only, and an emulator that cannot fork a process with threads. What is compiled
# there runs in that root, in namespaces of its own, in which the kernel starts programs of the other processors by qemu.
#
# Where any of that cannot be had, one line says so, and that is all. Exit status: 1 if a test failed, 2 for a machine
# that there is not.
set -uo pipefail
cd "$(dirname "$0")/../.."

all=(aarch64 powerpc64le riscv64)
laboratory=no
if [ "${1-}" = --laboratory ]; then
    laboratory=yes
    shift
fi
for machine in "$@"; do
    [[ " ${all[*]} " == *" $machine "* ]] && continue
    echo "machines: there is no machine '$machine': there are ${all[*]}" >&2
    exit 2
done
machines=("$@")
[ $# -gt 0 ] || machines=("${all[@]}")

# Of the machines that were asked for, those for which `suite` has packages; what is fetched for them: `packages`, and for
# each its part of Rust's library, as the compiler is this machine's.
choose() {
    suite=$1
    local known=("${all[@]}") emulator=qemu-user each
    static=
    # Debian 12's other emulator is linked dynamically: what a test preloads into a program would be preloaded into it.
    [ "$suite" = bookworm ] && known=(aarch64) emulator=qemu-user-static static=-static
    packages=(rustc-web cargo-web "$emulator" bash coreutils) foreign=() architectures=(amd64)
    for each in "${known[@]}"; do
        packages+=("gcc-$each-linux-gnu" "libc6-dev-$(debian "$each")-cross")
        foreign+=("libstd-rust-web-dev:$(debian "$each")")
        architectures+=("$(debian "$each")")
    done
    chosen=() left=()
    for each in "${machines[@]}"; do
        if [[ " ${known[*]} " == *" $each "* ]]; then chosen+=("$each"); else left+=("$each"); fi
    done
}

# What Debian calls a machine.
debian() {
    case $1 in
        aarch64) echo arm64 ;;
        powerpc64le) echo ppc64el ;;
        *) echo "$1" ;;
    esac
}

place=$(realpath -m "${QSPIN_MACHINES:-target/machines}")
root=$place/root
mkdir -p "$place"
log=$place/log

skip() {
    echo "skipped: ARM, powerpc and RISC-V ($1)"
    exit 0
}

triple() {
    case $1 in
        riscv64) echo riscv64gc-unknown-linux-gnu ;;
        *) echo "$1-unknown-linux-gnu" ;;
    esac
}

# apt with lists, caches and architectures of its own.
apt_config() {
    local mirror security
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 'Created-By: Packages' |
        grep -m 1 '/debian/ main$') || return
    security=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 'Created-By: Packages' |
        grep -m 1 '/debian-security/ main$')
    rm -rf "$place/apt"
    mkdir -p "$place"/apt/{state/lists/partial,cache/archives/partial,etc/apt.conf.d,etc/preferences.d} || return
    : >"$place/apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror% main} $suite main" \
        >"$place/apt/etc/sources.list"
    if [ "$suite" = bookworm ]; then
        # Its compiler is a security update.
        [ -n "$security" ] || return
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${security% main} $suite-security main" \
            >>"$place/apt/etc/sources.list"
    fi
    cat >"$place/apt/apt.conf" <<CONFIG
Dir::State "$place/apt/state";
Dir::State::status "$place/apt/status";
Dir::Cache "$place/apt/cache";
Dir::Etc "$place/apt/etc";
APT::Architecture "amd64";
APT::Architectures { $(printf '"%s"; ' "${architectures[@]}")};
APT::Sandbox::User "root";
Acquire::Languages "none";
CONFIG
}

unpack() {
    local archives=$place/apt/cache/archives archive
    export APT_CONFIG=$place/apt/apt.conf
    apt-get update -qq &&
        apt-get install -qq -y --no-install-recommends --download-only "${packages[@]}" &&
        (cd "$archives" && apt-get download -qq "${foreign[@]}") || return
    rm -rf "$root"
    mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root/root" && for folder in bin sbin lib lib64; do
        ln -s "usr/$folder" "$root/$folder" || return
    done
    for archive in "$archives"/*.deb; do
        dpkg-deb -x "$archive" "$root" || return
    done
    # What the packages' scripts would do, which do not run.
    ln -s gcc "$root/usr/bin/cc" && mkdir -p "$root"/{qspin,target,root/.cargo/registry} && rm "$archives"/*.deb
}

# Runs a command in the root, with this folder as /qspin and what is compiled in /target.
inside() {
    ROOT=$root STATIC=$static TARGET=$place/target REGISTRY=${CARGO_HOME:-$HOME/.cargo}/registry \
        unshare --user --map-root-user --mount --pid --fork --kill-child bash -c '
        set -e
        for folder in proc sys dev; do mount --rbind /$folder "$ROOT/$folder"; done
        mount -t proc proc "$ROOT/proc"
        mount --bind . "$ROOT/qspin"
        mount --bind "$TARGET" "$ROOT/target"
        mount --bind "$REGISTRY" "$ROOT/root/.cargo/registry"
        # An instance of the user namespace: the machine does not learn of it.
        mount -t binfmt_misc binfmt_misc "$ROOT/proc/sys/fs/binfmt_misc"
        any="\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00"
        for each in aarch64:b7 ppc64le:15 riscv64:f3; do
            magic="\\x7fELF\\x02\\x01$any\\x${each#*:}\\x00" mask="\\xff\\xff\\xff\\xff\\xff\\xff$any\\xff\\xff"
            printf %s ":qspin-${each%:*}:M::$magic:$mask:$ROOT/usr/bin/qemu-${each%:*}$STATIC:F" \
                >"$ROOT/proc/sys/fs/binfmt_misc/register"
        done
        variables=(PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 CARGO_TARGET_DIR=/target CARGO_NET_OFFLINE=true)
        for each in AARCH64:aarch64 POWERPC64LE:powerpc64le RISCV64GC:riscv64; do
            variables+=("CARGO_TARGET_${each%:*}_UNKNOWN_LINUX_GNU_LINKER=${each#*:}-linux-gnu-gcc")
        done
        exec chroot "$ROOT" /usr/bin/env -i "${variables[@]}" bash -c "cd /qspin && exec \"\$@\"" - "$@"
    ' - "$@"
}

# It also finds the C library of the machine, and its compiler by the name `gcc`.
on() {
    local machine=$1
    shift
    inside env QEMU_LD_PREFIX="/usr/$machine-linux-gnu" PATH="/usr/cross/$machine:/usr/bin:/bin" "$@"
}

[ "$(uname -sm)" = "Linux x86_64" ] || skip "the packages are those of an x86-64 Linux"
for tool in apt-get dpkg-deb unshare chroot; do
    command -v $tool >/dev/null || skip "there is no $tool here"
done
suites=(trixie bookworm)
for suite in "${suites[@]}" none; do
    choose "$suite"
    [ -e "$place/$suite" ] && break
done
if [ "$suite" = none ]; then
    for suite in "${suites[@]}"; do
        choose "$suite"
        # `unpack` tells apt where its files are, and no other call of it.
        (apt_config && unpack) >"$log" 2>&1 && break
        suite=none
    done
    [ "$suite" = none ] && skip "packages of Debian's ${suites[*]} are not to be had here: see $log"
    touch "$place/$suite"
fi
machines=("${chosen[@]}")
[ ${#left[@]} -eq 0 ] || echo "skipped: ${left[*]} (Debian's $suite has no Rust library for them)"
[ ${#machines[@]} -gt 0 ] || exit 0
mkdir -p "$place/target"
cargo fetch --locked --quiet || skip "the crates are not to be had here"

# A program that says where it runs, on each of them.
cat >"$place/target/probe.rs" <<'PROBE'
fn main() {
    println!("{}", std::env::consts::ARCH);
}
PROBE
ln -sf bash "$root/usr/bin/sh"
for machine in "${machines[@]}"; do
    mkdir -p "$root/usr/cross/$machine"
    for tool in gcc objdump; do ln -sf "/usr/bin/$machine-linux-gnu-$tool" "$root/usr/cross/$machine/$tool"; done
    probe() {
        inside rustc --target "$(triple "$machine")" -C "linker=$machine-linux-gnu-gcc" -o /target/probe \
            /target/probe.rs && [ "$(on "$machine" /target/probe)" = "${machine%le}" ]
    }
    probe >"$log" 2>&1 || skip "a program for $machine does not run here, which takes user namespaces with a \
binfmt_misc of their own (Linux 6.7): see $log"
done

# Not all tests: an emulator is slow.
tests=(--lib --test exclusion --test adaptive --test features --test mutex --test sleeping --test statistics)
targets=()
for machine in "${machines[@]}"; do targets+=(--target "$(triple "$machine")"); done
# What a test is left out for.
#   the_lock_hangs_without_the_barrier: a store that is late, which only a processor's store buffer makes
left_out=(--skip the_lock_hangs_without_the_barrier)
#   fork::: children of a process with threads, which Debian 12's emulator ends
[ "$suite" = trixie ] || left_out+=(--skip fork::)

# Of the library for programs that cannot be changed:
#   programs of this machine's processor, which cannot load a library for another
foreign_programs=(a_child_can_use a_child_writes a_lock_or_tunable by_hand programs_of_the_system)
#   locks that count their waiters in their word: a child makes them anew if it has one thread, and the emulator has a
#   second one
foreign_programs+=(children_that_no_handler)
without_foreign=()
for each in "${foreign_programs[@]}"; do without_foreign+=(--skip "$each"); done

failed=0
compiled=$place/compiled.json

# compile NAME CARGO'S ARGUMENTS…: what cargo makes of them is named in the file.
compile() {
    local name=$1
    shift
    inside cargo "$@" --locked --quiet --message-format json >"$compiled" 2>"$log" && return
    cat "$log"
    echo "FAILED: the build of $name"
    failed=1
    return 1
}

# The programs of the last build for a machine.
programs() {
    grep -o '"executable":"[^"]*"' "$compiled" | cut -d '"' -f 4 | grep "/$(triple "$1")/"
}

# run MACHINE FOLDER PROGRAM ARGUMENTS…: runs the tests, which look for files beside their crate.
run() {
    local machine=$1 folder=$2 program=$3
    shift 3
    if on "$machine" env -C "/qspin/crates/$folder" timeout 900 "$program" "$@" >"$log" 2>&1 </dev/null; then
        passed=$((passed + $(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$log" | tail -n 1)))
    else
        failed=1
        cat "$log"
        echo "FAILED: $machine: ${program##*/}"
    fi
}

# C's library and its programs, with a machine's compiler, as calls and with the first attempt in the program.
c_programs() {
    local machine=$1 begun=$SECONDS many=0 source how library
    library=/target/$(triple "$machine")/checked/libqspin_capi.a
    compile "C's library" rustc --profile checked --package qspin-capi --lib --crate-type staticlib \
        --target "$(triple "$machine")" || return
    for source in tests/c/{locks,defaults,names}.c examples/{counter,readers,statistics,choose}.c; do
        for how in QSPIN_CALLS QSPIN_INLINE; do
            if on "$machine" env -C /qspin/crates/qspin-capi gcc -std=c11 -D_DEFAULT_SOURCE -D$how -Wall -Wextra \
                -Werror -O2 -Iinclude -pthread "$source" "$library" -lm -ldl -o /tmp/program >"$log" 2>&1 &&
                on "$machine" timeout 100 /tmp/program >"$log" 2>&1; then
                many=$((many + 1))
            else
                failed=1
                cat "$log"
                echo "FAILED: $machine: $source, $how"
            fi
        done
    done
    echo "passed: $machine: $many programs in C in $((SECONDS - begun)) s"
}

# The simulator's tests; then a measurement, a simulation, and where there is an interposer an unchanged program.
laboratory_on() {
    local machine=$1 begun=$SECONDS passed=0 program qspin=/target/$(triple "$1")/checked/qspin
    if compile "the simulator" test --profile checked --package qspin-sim --lib --test simulator \
        --target "$(triple "$machine")" --no-run; then
        while read -r program; do run "$machine" qspin-sim "$program"; done < <(programs "$machine")
    fi
    compile "the laboratory" build --profile checked --package qspin-lab --package qspin-preload \
        --target "$(triple "$machine")" || return
    # expect TEXT ARGUMENTS…: the command says that.
    expect() {
        local text=$1
        shift
        if on "$machine" timeout 300 "$qspin" "$@" >"$log" 2>&1 </dev/null && grep -q "$text" "$log"; then
            passed=$((passed + 1))
        else
            failed=1
            cat "$log"
            echo "FAILED: $machine: qspin $*"
        fi
    }
    expect '^ mutex .*M' bench --locks mutex,native,std --threads 1,2 --rounds 3 --seconds 0.05
    expect 'SIMULATED' simulate scenarios/evidence/remedies.toml --seeds 1
    if [ "$machine" = aarch64 ]; then
        on "$machine" gcc -D_GNU_SOURCE -O1 -g crates/qspin-preload/tests/c/counts.c -o /tmp/counts -pthread >"$log" 2>&1
        expect 'contended .*80044 .*takes (counts.c:[0-9]*)' run --stats /tmp/counts
    fi
    echo "passed: $machine: $passed tests of simulator and laboratory in $((SECONDS - begun)) s"
}

if [ $laboratory = yes ]; then
    mkdir -p "$root/tmp"
    for machine in "${machines[@]}"; do laboratory_on "$machine"; done
    exit $failed
fi

if compile "${machines[*]}" test --profile checked --package qspin-core --package qspin \
    --features qspin/arc_lock,qspin/serde "${tests[@]}" "${targets[@]}" --no-run; then
    for machine in "${machines[@]}"; do
        begun=$SECONDS passed=0
        while read -r program; do run "$machine" qspin "$program" "${left_out[@]}"; done < <(programs "$machine")
        echo "passed: $machine: $passed tests in $((SECONDS - begun)) s"
    done
fi
if [[ " ${machines[*]} " == *" aarch64 "* ]]; then
    mkdir -p "$root/tmp"
    c_programs aarch64
    if compile "the interposer" test --profile checked --package qspin-preload --test conformance \
        --target "$(triple aarch64)" --no-run; then
        begun=$SECONDS passed=0
        while read -r program; do
            run aarch64 qspin-preload "$program" "${without_foreign[@]}"
        done < <(programs aarch64)
        echo "passed: aarch64: $passed tests of the interposer in $((SECONDS - begun)) s"
    fi
fi
exit $failed
