#!/bin/sh
# What action.yml runs: unpacks a release, starts the server, waits until it is ready, and tells later steps where it is.
#   VERSION, REPOSITORY   which release, of which repository of GitHub; not looked at where ARCHIVE names a file that is there
#   ARCHIVE               an archive as `make release` makes it, instead of a release
#   PORT, SEED, OPTIONS   of the server; port 0 takes any free one
# GitHub sets RUNNER_TEMP, GITHUB_OUTPUT, GITHUB_ENV and GITHUB_PATH.
set -eu
# It is public: every emulator has it.
key='C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=='
home=${RUNNER_TEMP:?it is set by GitHub}/orrery
mkdir -p "$home/server"
stop() { echo "::error::orrery: $*" >&2; exit 1; }

archive=${ARCHIVE:-}
if [ -z "$archive" ]; then
    [ -n "${VERSION:-}" ] || stop 'name a version, or an archive that is there'
    case $(uname -sm) in
        'Linux x86_64') platform=linux-x64 ;;
        'Linux aarch64') platform=linux-arm64 ;;
        *) stop "there is no release for $(uname -sm); runners of Linux have one" ;;
    esac
    name=orrery-$VERSION-$platform.tar.gz
    archive=$home/$name
    url=https://github.com/${REPOSITORY:?it is set by GitHub}/releases/download/v$VERSION
    for file in "$name" "$name.sha256"; do
        curl -fsSL --retry 3 -o "$home/$file" "$url/$file" || stop "cannot fetch $url/$file"
    done
    (cd "$home" && sha256sum --quiet -c "$name.sha256") || stop "$name is not what was released"
fi
[ -f "$archive" ] || stop "there is no archive $archive"
tar -xzf "$archive" -C "$home/server" --strip-components=1

set -- serve --in-memory --ready-line --nosql-port "${PORT:-8081}"
[ -z "${SEED:-}" ] || set -- "$@" --seed "$SEED"
# The options are several words.
# shellcheck disable=SC2086
: >"$home/orrery.out"
nohup "$home/server/orrery" "$@" ${OPTIONS:-} >"$home/orrery.out" 2>"$home/orrery.log" </dev/null &
server=$!
waited=0
until grep -q '^ORRERY READY' "$home/orrery.out"; do
    waited=$((waited + 1))
    if ! kill -0 "$server" 2>/dev/null || [ "$waited" -gt 600 ]; then
        cat "$home/orrery.log" >&2
        stop 'the server did not become ready; what it said stands above'
    fi
    sleep 0.1
done
port=$(sed -n 's/^ORRERY READY.* port=\([0-9][0-9]*\).*/\1/p' "$home/orrery.out")
endpoint=http://localhost:$port/
connection="AccountEndpoint=$endpoint;AccountKey=$key;"
{
    echo "endpoint=$endpoint"
    echo "key=$key"
    echo "connection-string=$connection"
    echo "log=$home/orrery.log"
    echo "pid=$server"
} >>"$GITHUB_OUTPUT"
{
    echo "ORRERY_ENDPOINT=$endpoint"
    echo "ORRERY_KEY=$key"
    echo "AZURE_COSMOS_CONNECTION_STRING=$connection"
} >>"$GITHUB_ENV"
echo "$home/server" >>"$GITHUB_PATH"
echo "orrery serves at $endpoint, in memory; its log is $home/orrery.log"
