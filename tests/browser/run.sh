#!/bin/sh
# Opens our pages in a real browser. Usage: tests/browser/run.sh [advisor] [explorer]      (default: all there are)
# ORRERY_BIN names another server binary, ORRERY_CHROMIUM another browser. What is installed lands in .cache/browser.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
work=$root/.cache/browser
browser=${ORRERY_CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
say() { printf 'browser tests: %s\n' "$*"; }

. "$root/tests/server.sh"

# Copies the tests beside what they import, so that nothing is installed into the sources.
lay_out() {
    mkdir -p "$work"
    if ! cmp -s "$here/package-lock.json" "$work/installed.json"; then
        say "installing $(sed -n 's/.*"dependencies": { \(.*\) }.*/\1/p' "$here/package.json" | tr -d '"') with npm into .cache/browser"
        cp "$here/package.json" "$here/package-lock.json" "$work/"
        (cd "$work" && npm ci --no-audit --no-fund --silent)
        cp "$here/package-lock.json" "$work/installed.json"
    fi
    for suite in "$here"/*/; do
        suite=$(basename "$suite")
        [ "$suite" != node_modules ] || continue
        rm -rf "${work:?}/$suite"
        cp -r "$here/$suite" "$work/$suite"
    done
}

# The pages of the advisor, one for each workload of the guides.
make_advice() {
    mkdir -p "$work/pages"
    for workload in "$root"/docs/guides/workloads/*.json; do
        "$binary" advise --workload "$workload" --format html --out "$work/pages/$(basename "$workload" .json).html"
    done
}

# The files of the suites, one in each line.
files_of() {
    for suite in "$@"; do
        printf '%s\n' "$suite"/*.test.mjs
    done
}

# What this file measures is the page, so no second browser may run beside it.
alone=weight.test.mjs

# Runs some of the files, the first argument says how many at a time; what they say is added to the log.
run_tests() {
    many=$1
    shift
    [ $# -gt 0 ] || return 0
    ORRERY_ENDPOINT="http://localhost:$port/" ORRERY_KEY="$key" ORRERY_CHROMIUM="$browser" ORRERY_BIN="$binary" \
        ORRERY_SCREENSHOTS="$work/pictures" ORRERY_ADVICE="$work/pages" \
        node --test --test-concurrency="$many" --test-reporter=tap "$@" >>"$work/log" 2>&1
}

if [ ! -x "$binary" ] || [ -z "$browser" ]; then
    say "needed are a server (cargo build --release, or ORRERY_BIN) and a browser (apt-get install chromium, or ORRERY_CHROMIUM)"
    exit 2
fi
lay_out
[ $# -gt 0 ] || set -- $(cd "$here" && for suite in */; do [ "$suite" = node_modules/ ] || printf '%s ' "${suite%/}"; done)
for suite in "$@"; do
    [ "$suite" != advisor ] || make_advice
done
start_server "$work/server.log"
say "$* in $("$browser" --version 2>/dev/null), against port $port"
mkdir -p "$work/pictures"
cd "$work"
: >"$work/log"
failed=
run_tests 2 $(files_of "$@" | grep -v "/$alone\$") || failed=yes
run_tests 1 $(files_of "$@" | grep "/$alone\$") || failed=yes
if [ -n "$failed" ]; then
    tail -n 120 "$work/log"
    say "failed; all of the output is in .cache/browser/log"
    awk -f "$root/tests/tap-failures.awk" "$work/log" | head -n 15
    exit 1
fi
awk '/^# (tests|pass|fail|skipped) / { count[$2] += $3 }
     END { printf "tests %d pass %d fail %d skipped %d\n", count["tests"], count["pass"], count["fail"], count["skipped"] }' "$work/log"
