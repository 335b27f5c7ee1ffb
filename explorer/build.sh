#!/bin/sh
# Builds the explorer into explorer/dist, from where `cargo build` embeds it, if its sources are newer than that.
# Without Node it says so and changes nothing: the server then serves a page that tells how to get it.
set -eu
cd "$(dirname -- "$0")"

say() { printf 'explorer: %s\n' "$*"; }

if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
    say "Node 20 with npm is not installed; the server is built without the explorer"
    exit 0
fi
if ! cmp -s package-lock.json node_modules/installed.json; then
    say "installing what it is built with, with npm into explorer/node_modules"
    if ! npm ci --ignore-scripts --no-audit --no-fund --silent; then
        say "npm could not install it; the server is built with the explorer as it was, or without"
        exit 0
    fi
    cp package-lock.json node_modules/installed.json
fi
if [ -f dist/index.html ] &&
    [ -z "$(find . \( -name node_modules -o -name dist \) -prune -o -type f -newer dist/index.html -print)" ]; then
    exit 0
fi
node build.mjs
