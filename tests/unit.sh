#!/bin/sh
# Runs the Rust tests, those with a real server included. Options go to cargo: tests/unit.sh --package orrery-store
# BESIDE is a command to run meanwhile, at the lowest priority: many tests only wait. Whether it succeeds is for others to see.
# Every test runs, though others have failed. Those are named once more at the end, with the reason: what went wrong in
# the middle of a long output is hard to find, and where only its end is shown, impossible.
set -eu

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
# One folder per run, so that two runs at once do not read each other's results.
mkdir -p .cache
work=$(mktemp -d .cache/unit-XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

[ $# -gt 0 ] || set -- --workspace
beside=
if [ -n "${BESIDE:-}" ]; then
    cargo test --locked --no-run "$@"
    # The variable holds a list of words.
    # shellcheck disable=SC2086
    nice -n 19 $BESIDE >"$work/beside" 2>&1 &
    beside=$!
fi
{
    status=0
    cargo test --locked --no-fail-fast "$@" 2>&1 || status=$?
    echo "$status" >"$work/status"
} | tee "$work/output"
[ -z "$beside" ] || wait "$beside" || true

status=$(cat "$work/status")
if [ "$status" -ne 0 ]; then
    awk -f tests/libtest-failures.awk "$work/output" >"$work/failures"
    printf '\nunit: %s failed:\n' "$(wc -l <"$work/failures")"
    head -n 15 "$work/failures"
    more=$(($(wc -l <"$work/failures") - 15))
    [ "$more" -le 0 ] || echo "and $more more"
fi
exit "$status"
