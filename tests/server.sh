# How the scripts of the tests start a server of ours; they source this file.
# `root` names the project's folder, and `say` tells people what happens. Sets `binary`, `key`, `server` and `port`.

binary=${ORRERY_BIN:-$root/target/release/orrery}
# The key that every emulator of this database shares; it is public and opens nothing else.
key='C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=='
server=
data_dir=

stop_server() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=
    fi
}
trap stop_server EXIT
trap 'exit 130' INT TERM

# Starts a server on a free port, in memory unless `data_dir` names a folder. The first argument names its log, the others are
# further options.
start_server() {
    log=$1
    shift
    : >"$log"
    if [ -n "${data_dir:-}" ]; then set -- --data-dir "$data_dir" "$@"; else set -- --in-memory "$@"; fi
    ORRERY_TABLE_PORT=none "$binary" serve --nosql-port 0 "$@" >"$log" 2>"$log.err" &
    server=$!
    port=
    waited=0
    while [ -z "$port" ]; do
        port=$(sed -n 's/^ORRERY READY.* port=\([0-9][0-9]*\).*/\1/p' "$log" | head -n 1)
        if ! kill -0 "$server" 2>/dev/null || [ "$waited" -ge 600 ]; then
            say "the server did not become ready:"
            cat "$log" "$log.err"
            exit 2
        fi
        waited=$((waited + 1))
        [ -n "$port" ] || sleep 0.1
    done
}
