#!/bin/sh
# Measures this machine: builds the benchmark, finds or installs PostgreSQL, and runs.
# Options go to the benchmark: `bench/run.sh --only reads`, `bench/run.sh --items 10000000`.
set -eu
cd "$(dirname "$0")/.."

if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "bench: installing postgresql, the database that creates and reads are held against"
        apt-get install -y -qq postgresql >/dev/null || echo "bench: that failed; its lines will say so"
    else
        echo "bench: PostgreSQL is not installed; its lines will say so (apt-get install postgresql)"
    fi
fi

cargo build --release --locked --package orrery --package orrery-bench
exec target/release/orrery-bench "$@"
