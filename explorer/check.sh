#!/bin/sh
# Checks the explorer's types and the parts of it that need no browser.
set -eu
cd "$(dirname -- "$0")"
./build.sh
command -v node >/dev/null 2>&1 || exit 0
npx --no-install tsc --noEmit
node --test --test-reporter=tap test/*.test.mjs >test.log 2>&1 || {
    cat test.log
    awk -f ../tests/tap-failures.awk test.log | head -n 15
    exit 1
}
rm -f test.log
