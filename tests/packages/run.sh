#!/bin/sh
# Packs the server that was built as a release is packed, and uses what was packed as a stranger would: the archive from a folder of
# its own, the Debian package's tree, and the image's tree in a chroot.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
say() { printf 'packages: %s\n' "$*"; }
. "$root/tests/server.sh"
work=$(mktemp -d)
trap 'stop_server; rm -rf "$work"' EXIT
passed=0
ok() { passed=$((passed + 1)); say "ok $*"; }
fail() { say "FAILED $*"; exit 1; }

packed=$binary
"$root/packaging/archive.sh" "$packed" "$work/out"
"$root/packaging/deb.sh" "$packed" "$work/out"
(cd "$work/out" && sha256sum --quiet -c -- *.sha256) || fail 'the checksums are not those of the files'
ok 'checksums'

# From the archive to the first answered query.
began=$(date +%s%N)
mkdir "$work/unpacked"
tar -xzf "$work"/out/orrery-*.tar.gz -C "$work/unpacked" --strip-components=1
binary=$work/unpacked/orrery
start_server "$work/archive.log"
export ORRERY_ENDPOINT="http://localhost:$port/" ORRERY_KEY="$key"
"$binary" create database shop >/dev/null
"$binary" create container shop/orders --key-path /customer >/dev/null
printf '{"id":"1","customer":"ada","total":42}\n' >"$work/orders.jsonl"
"$binary" import --database shop --container orders "$work/orders.jsonl" 2>/dev/null
answer=$("$binary" query shop/orders 'SELECT VALUE c.total FROM c' 2>/dev/null)
[ "$answer" = 42 ] || fail "the first query answered $answer"
ok "from the archive to the first query in $((($(date +%s%N) - began) / 1000000)) ms"
"$binary" ready >/dev/null || fail 'orrery ready'
stop_server
for file in README.md LICENSE-MIT LICENSE-APACHE docs/command-line.md completions/orrery.bash man/orrery.1; do
    [ -s "$work/unpacked/$file" ] || fail "the archive has no $file"
done
! readelf -S "$binary" | grep -q '\.debug_info' || fail 'the packed binary is not stripped'
ok 'what the archive holds'

# The script of the GitHub Action, as a runner calls it: later steps read what it leaves in these files.
mkdir "$work/runner"
: >"$work/outputs" && : >"$work/environment" && : >"$work/path"
cat >"$work/seed.json" <<SEED
{"databases": [{"id": "seeded", "containers": [{"id": "c", "partitionKey": "/pk", "items": [{"id": "1", "pk": "a"}]}]}]}
SEED
env -u ORRERY_ENDPOINT -u ORRERY_KEY RUNNER_TEMP="$work/runner" GITHUB_OUTPUT="$work/outputs" GITHUB_ENV="$work/environment" \
    GITHUB_PATH="$work/path" ARCHIVE="$(ls "$work"/out/orrery-*.tar.gz)" PORT=0 SEED="$work/seed.json" OPTIONS="--table-port none" \
    "$root/packaging/action/start.sh" >"$work/action.log" || fail "the action: $(cat "$work/action.log")"
server=$(sed -n 's/^pid=//p' "$work/outputs")
answer=$(
    connection=$(sed -n 's/^AZURE_COSMOS_CONNECTION_STRING=//p' "$work/environment")
    unset ORRERY_ENDPOINT ORRERY_KEY
    AZURE_COSMOS_CONNECTION_STRING=$connection "$(cat "$work/path")/orrery" query seeded/c 'SELECT VALUE c.pk FROM c' 2>/dev/null
)
[ "$answer" = '"a"' ] || fail "what the action has started answered $answer"
grep -q '^connection-string=AccountEndpoint=http://localhost:[0-9]*/;AccountKey=.*;$' "$work/outputs" || fail 'the outputs of the action'
for input in $(sed -n '/^inputs:/,/^outputs:/s/^  \([a-z]*\):$/\1/p' "$root/action.yml"); do
    grep -q "\${{ inputs.$input }}" "$root/action.yml" || fail "the action does not use its input $input"
done
stop_server
if RUNNER_TEMP="$work/runner" GITHUB_OUTPUT=/dev/null GITHUB_ENV=/dev/null GITHUB_PATH=/dev/null ARCHIVE="$work/none" \
    "$root/packaging/action/start.sh" 2>"$work/action.err"; then fail 'the action takes an archive that is not there'; fi
grep -q 'there is no archive' "$work/action.err" || fail "$(cat "$work/action.err")"
ok 'the GitHub Action'

if command -v dpkg-deb >/dev/null; then
    dpkg-deb -x "$work"/out/*.deb "$work/deb"
    for file in usr/bin/orrery lib/systemd/system/orrery.service usr/lib/sysusers.d/orrery.conf etc/default/orrery \
        usr/share/man/man1/orrery.1.gz usr/share/bash-completion/completions/orrery; do
        [ -s "$work/deb/$file" ] || fail "the Debian package has no $file"
    done
    [ "$(dpkg-deb -f "$work"/out/*.deb Package)" = orrery ] || fail 'the Debian package is called otherwise'
    "$work/deb/usr/bin/orrery" version >/dev/null || fail 'the program of the Debian package does not run'
    ok 'what the Debian package holds'
fi

# The tree of the image has no libc, so a binary that needs one is refused; here it gets what it asks for, to be run all the same.
tree=$work/image
if "$root/packaging/image.sh" "$work"/out/orrery-*.tar.gz "$tree" 2>"$work/image.err"; then
    kib=$(du -sk "$tree" | cut -f 1)
    [ "$kib" -lt 40960 ] || fail "the image has $kib KiB"
    ok "the image's tree has $kib KiB"
else
    grep -q 'is not static, and the image has no libc' "$work/image.err" || fail "$(cat "$work/image.err")"
    mkdir -p "$tree/data" "$tree/tmp"
    cp "$binary" "$tree/orrery"
    ldd "$binary" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$tree$(dirname -- "$library")"
        cp -L "$library" "$tree$library"
    done
    ok 'a binary that needs a libc is refused for the image'
fi
if [ "$(id -u)" -eq 0 ]; then
    chown 65532:65532 "$tree/data"
    chmod 1777 "$tree/tmp"
    cat >"$work/in-image" <<IMAGE
#!/bin/sh
exec chroot --userspec=65532:65532 "$tree" /orrery "\$@"
IMAGE
    chmod 755 "$work/in-image" "$work"
    binary=$work/in-image
    # What the image's Dockerfile sets.
    data_dir=/data
    export ORRERY_ALLOW_EMULATOR_KEY=true
    start_server "$work/image.log"
    "$packed" create database shop --endpoint "http://localhost:$port/" >/dev/null || fail 'the image does not answer'
    [ -d "$tree/data/tls" ] || fail 'the image keeps no data in /data'
    stop_server
    ok 'the image as user 65532 in a chroot'
else
    say 'not root: the tree of the image was not run in a chroot'
fi
say "$passed passed, 0 failed"
