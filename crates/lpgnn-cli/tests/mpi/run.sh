#!/bin/sh
# Tests training and experiments over MPI: run.sh CARGO [--if-there]
#
# Without --if-there, the SLURM scripts of the book are then run on three simulated hosts, where root may make them (hosts.sh).
# An MPI library and libclang are installed by apt where that is possible. With --if-there, nothing is installed, and what is
# missing skips the tests instead of failing them.
set -eu
cargo=$1 lenient=${2:-}

missing() {
    if [ -n "$lenient" ]; then
        echo "skipped: tests over MPI, because $1"
        exit 0
    fi
    echo "tests over MPI need more: $1" >&2
    exit 1
}

have_all() {
    command -v mpirun >/dev/null && command -v mpicc >/dev/null || return 1
    for file in "${LIBCLANG_PATH:-}" /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* /usr/lib64/libclang*.so*; do
        if [ -e "$file" ]; then return 0; fi
    done
    return 1
}

if ! have_all; then
    [ -z "$lenient" ] || missing "an MPI library or libclang is not here"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq libopenmpi-dev openmpi-bin libclang-dev >/dev/null || missing "apt-get cannot install them"
    else
        missing "an MPI library or libclang is not here, and only root can install them by apt-get"
    fi
    have_all || missing "apt-get has installed no MPI library or no libclang"
fi
"$cargo" test --locked -p lpgnn-cli --features mpi --test mpi
[ -n "$lenient" ] || exec "$(dirname "$0")/hosts.sh" "${CARGO_TARGET_DIR:-target}/debug/lpgnn"
