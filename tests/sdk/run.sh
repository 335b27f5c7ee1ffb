#!/bin/sh
# Runs one real scenario with each official SDK, unmodified, against a server of ours.
# Usage: tests/sdk/run.sh [python] [tables] [javascript] [rust] [go] [java] [dotnet] [elastic] [guides] [documents] [requests]
# Without names it runs all. `requests` counts how many requests the SDKs send for their reads and writes.
# `dotnet` needs a client that is not part of this project; where it is missing the step says so and is left out.
# `guides` runs the examples of docs/guides, against a server whose logical partitions are soon full.
# `documents` runs the programs and commands of README.md and docs as they stand there.
# ORRERY_BIN names another server binary. What is installed lands in .cache/sdk and is announced.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
cache=$root/.cache/sdk
# One folder per run, so that two runs at once do not read each other's ports.
logs=$cache/logs/run-$$
failed=0
summary=
reasons=

say() { printf 'sdk scenarios: %s\n' "$*"; }

. "$root/tests/server.sh"

# A server with throttling on and unchecked tokens of Entra ID. The first argument names its log.
start() {
    name=$1
    shift
    start_server "$logs/$name.server.log" --entra-development "$@"
}

# The same with the Table API, on any free port.
start_with_tables() {
    start "$@" --table-port 0
    table_port=$(sed -n 's/^ORRERY READY.* table=[^ ]*:\([0-9][0-9]*\)\/ .*/\1/p' "$logs/$1.server.log" | head -n 1)
}

# Runs a command, keeps its output, and notes the verdict for one language.
judge() {
    language=$1
    shift
    if "$@" >"$logs/$language.log" 2>&1; then verdict=ok; else verdict=FAILED; failed=1; fi
    counts=$(count_"$language")
    summary="$summary$(printf '%-11s %-7s %s' "$language" "$verdict" "$counts")
"
    if [ "$verdict" = FAILED ]; then
        reasons="$reasons$(why_"$language" "$logs/$language.log" | cut -c 1-300 | head -n 6 | sed "s/^/$language: /")
"
        say "$language failed; the end of its output (all of it: ${logs#"$root"/}/$language.log):"
        tail -n 80 "$logs/$language.log"
    fi
}

count_python() { tail -n 1 "$logs/python.log" | tr -d '='; }
count_tables() { tail -n 1 "$logs/tables.log" | tr -d '='; }
count_guides() { tail -n 1 "$logs/guides.log" | tr -d '='; }
count_documents() { tail -n 1 "$logs/documents.log" | tr -d '='; }
count_javascript() { sed -n 's/^# \(tests\|pass\|fail\|skipped\) /\1 /p' "$logs/javascript.log" | tr '\n' ' '; }
count_elastic() { grep '^elastic: [0-9]' "$logs/elastic.log" | tr '\n' ' '; }
count_requests() { grep -c '^requests: .*: ok$' "$logs/requests.log" | sed 's/$/ SDKs send one request for each read and write/'; }
count_go() {
    awk '/^--- PASS/ { passed++ } /^--- FAIL/ { failed++ } END { print passed + 0, "passed,", failed + 0, "failed" }' "$logs/go.log"
}
count_java() { sed -n 's/^\[ *\([0-9]*\) tests \(successful\|failed\).*/\1 \2/p' "$logs/java.log" | tr '\n' ' '; }
count_dotnet() { grep '^dotnet: [0-9]' "$logs/dotnet.log" | sed 's/^dotnet: //' | tr '\n' ';'; }
count_rust() {
    sed -n 's/^test result: [A-Za-z]*\. \([0-9]*\) passed; \([0-9]*\) failed; \([0-9]*\) ignored.*/\1 \2 \3/p' "$logs/rust.log" |
        awk '{ passed += $1; failed += $2; ignored += $3 } END { print passed + 0, "passed,", failed + 0, "failed,", ignored + 0, "ignored" }'
}

# Which tests failed and why, in a few lines: often the end of an output is all that is seen of it.
why_python() { grep -E '^(FAILED|ERROR) ' "$1" || tail -n 3 "$1"; }
why_tables() { why_python "$1"; }
why_guides() { why_python "$1"; }
why_documents() { why_python "$1"; }
why_javascript() { awk -f "$root/tests/tap-failures.awk" "$1" | grep . || tail -n 3 "$1"; }
why_rust() { awk -f "$root/tests/libtest-failures.awk" "$1" | grep . || tail -n 3 "$1"; }
why_requests() { grep '^requests: ' "$1" | grep -v ': ok$' || tail -n 3 "$1"; }
why_go() { grep -E '^( +[a-z_]+\.go:|--- FAIL)' "$1" || tail -n 3 "$1"; }
why_java() { grep '✘' "$1" | sed 's/^[^A-Za-z]*//' || tail -n 3 "$1"; }
why_dotnet() { grep '^dotnet: \(failed\|passes\|missing\)' "$1" || tail -n 3 "$1"; }
# The SDK tells of each split that it notices, which is no failure.
why_elastic() { grep -v 'Partition split retry' "$1" | tail -n 3; }

install_python() {
    venv=$cache/venv
    if ! cmp -s "$here/python/requirements.txt" "$venv/installed.txt"; then
        say "installing $(tr '\n' ' ' <"$here/python/requirements.txt")into .cache/sdk/venv"
        "${PYTHON:-python3}" -m venv --clear "$venv"
        "$venv/bin/python" -m pip install -q -r "$here/python/requirements.txt"
        cp "$here/python/requirements.txt" "$venv/installed.txt"
    fi
}

# Pytest shortens the reasons in its summary to the width of the screen, so that is made wide.
run_python() {
    install_python
    start python
    say "python: azure-cosmos over https on port $port"
    judge python env COLUMNS=300 ORRERY_ENDPOINT="https://localhost:$port/" ORRERY_KEY="$key" PYTHONDONTWRITEBYTECODE=1 \
        "$venv/bin/python" -W ignore -m pytest -q -p no:cacheprovider -W ignore "$here/python"
    stop_server
}

# The Table API, beside the NoSQL API that reads the same items.
run_tables() {
    install_python
    start_with_tables tables
    say "tables: azure-data-tables for Python on port $table_port"
    judge tables env COLUMNS=300 ORRERY_ENDPOINT="http://localhost:$port/" ORRERY_TABLE_PORT="$table_port" ORRERY_KEY="$key" \
        PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -W ignore -m pytest -q -p no:cacheprovider -W ignore "$here/tables"
    stop_server
}

install_javascript() {
    work=$cache/javascript
    mkdir -p "$work"
    cp "$here"/javascript/*.json "$here"/javascript/*.mjs "$here"/elastic/*.mjs "$here"/requests/*.mjs "$work/"
    if ! cmp -s "$work/package-lock.json" "$work/installed.json"; then
        say "installing @azure/cosmos and @azure/data-tables with npm into .cache/sdk/javascript"
        (cd "$work" && npm ci --no-audit --no-fund --silent)
        cp "$work/package-lock.json" "$work/installed.json"
    fi
}

run_guides() {
    install_python
    start guides --logical-partition-bytes 64KiB
    say "guides: their examples with azure-cosmos on port $port"
    judge guides env COLUMNS=300 ORRERY_ENDPOINT="http://localhost:$port/" ORRERY_KEY="$key" PYTHONDONTWRITEBYTECODE=1 \
        "$venv/bin/python" -W ignore -m pytest -q -p no:cacheprovider "$here/guides"
    stop_server
}

run_documents() {
    install_python
    install_javascript
    finish_build java
    finish_build go
    start documents
    trust_in_java
    say "documents: the blocks of README.md and docs on port $port"
    judge documents env COLUMNS=300 ORRERY_PORT="$port" ORRERY_BIN="$binary" ORRERY_NODE="$work" \
        ORRERY_PYTHON="$venv/bin/python" ORRERY_JAVA="java $java_options -cp $java_classes" PYTHONDONTWRITEBYTECODE=1 \
        "$venv/bin/python" -W ignore -m pytest -q -p no:cacheprovider "$here/documents"
    stop_server
}

run_javascript() {
    install_javascript
    start_with_tables javascript
    say "javascript: @azure/cosmos and @azure/data-tables over https on ports $port and $table_port, trusting the server's own certificate"
    fetch_authority "$work/ca.pem"
    judge javascript env ORRERY_ENDPOINT="https://localhost:$port/" ORRERY_TABLES="https://localhost:$table_port/" ORRERY_KEY="$key" \
        NODE_EXTRA_CA_CERTS="$work/ca.pem" \
        sh -c 'cd "$1" && exec node --test --test-reporter=tap' sh "$work"
    stop_server
}

# Splits and merges under clients of three SDKs at once, Java in both modes; ELASTIC makes it longer: ELASTIC="--splits 20 --merges 5".
# Its data lies in the folder of this run: the folder for temporary files may be a small one in memory.
run_elastic() {
    install_python
    install_javascript
    finish_build java
    java_classes=$java_target/test-classes:$(cat "$java_target/classpath")
    say "elastic: clients of azure-cosmos (Python, and Java in both modes) and @azure/cosmos while partitions split and merge and the server is killed"
    judge elastic env TMPDIR="$logs" ORRERY_KEY="$key" ORRERY_BIN="$binary" PYTHONDONTWRITEBYTECODE=1 ELASTIC="${ELASTIC:-}" \
        COSMOS_EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED=true sh -c '
        python=$1; folder=$2; node=$3; java="java -Xmx200m -cp $4 scenario.Worker"
        "$python" -W ignore "$folder/main.py" --node-folder "$node" --java "$java" --seconds 8 --splits 6 --merges 2 $ELASTIC &&
            "$python" -W ignore "$folder/main.py" --node-folder "$node" --java "$java" --seconds 8 --splits 2 --merges 0 --kills 4 $ELASTIC
        ' sh "$venv/bin/python" "$here/elastic" "$work" "$java_classes"
}

# Compilers work beside the scenarios that come first: those mostly wait, and at its priority a compiler takes nothing from
# them. The first argument names what is built, the others are the command.
begin_build() {
    name=$1
    shift
    (
        nice -n 19 "$@" && status=0 || status=$?
        echo "$status" >"$logs/$name.built"
    ) >"$logs/$name.build.log" 2>&1 &
    echo $! >"$logs/$name.builder"
}

# Waits for a build, once or more often.
finish_build() {
    wait "$(cat "$logs/$1.builder")" 2>/dev/null || true
    if [ "$(cat "$logs/$1.built")" != 0 ]; then
        tail -n 60 "$logs/$1.build.log"
        exit 2
    fi
}

manifest=$here/rust/Cargo.toml
build_rust() {
    say "building the Rust scenario (azure_data_cosmos from crates.io) in .cache/rust-target"
    begin_build rust cargo test --locked --quiet --no-run --manifest-path "$manifest"
}

run_rust() {
    finish_build rust
    start rust
    say "rust: azure_data_cosmos over https on port $port"
    judge rust env ORRERY_ENDPOINT="https://127.0.0.1:$port/" ORRERY_KEY="$key" \
        cargo test --locked --no-fail-fast --manifest-path "$manifest"
    stop_server
}

# Modules and what was compiled of them stay in .cache/go.
export GOMODCACHE="$root/.cache/go/mod" GOCACHE="$root/.cache/go/build"
build_go() {
    say "building the Go scenario (azcosmos, aztables) in .cache/go"
    begin_build go sh -c 'cd "$1" && go test -c -o "$2/go.test" . && go test -c -tags requests -o "$2/go.requests" .' \
        sh "$here/go" "$cache"
}

run_go() {
    finish_build go
    start_with_tables go
    say "go: azcosmos and aztables on ports $port and $table_port"
    judge go env ORRERY_ENDPOINT="http://localhost:$port/" ORRERY_TABLES="http://localhost:$table_port/" ORRERY_KEY="$key" "$cache/go.test" -test.v
    stop_server
}

java_target=$root/.cache/java-target
build_java() {
    say "building the Java scenario (azure-cosmos, azure-data-tables) with Maven in .cache/java-target"
    begin_build java mvn -B -q -f "$here/java/pom.xml" -Dmaven.repo.local="$root/.cache/maven" \
        -Dorrery.target="$java_target" test-compile dependency:build-classpath -Dmdep.outputFile="$java_target/classpath"
}

# The SDK trusts the server's own certificate, as users of an emulator are told to make it.
trust_in_java() {
    fetch_authority "$cache/java.pem"
    rm -f "$cache/java.p12"
    keytool -importcert -noprompt -alias orrery -file "$cache/java.pem" -keystore "$cache/java.p12" \
        -storetype PKCS12 -storepass changeit >/dev/null 2>&1
    java_options="-Djavax.net.ssl.trustStore=$cache/java.p12 -Djavax.net.ssl.trustStorePassword=changeit"
    java_classes=$java_target/test-classes:$(cat "$java_target/classpath")
}

run_java() {
    finish_build java
    # All levels of consistency are those that an account at the strongest allows.
    start_with_tables java --consistency Strong
    say "java: azure-cosmos and azure-data-tables over https on ports $port and $table_port, trusting the server's own certificate, in gateway mode and in its default one"
    trust_in_java
    judge java java_modes
    stop_server
}

java_modes() {
    verdicts=0
    for mode in gateway direct; do
        # The options are several words.
        # shellcheck disable=SC2086
        ORRERY_ENDPOINT="https://localhost:$port/" ORRERY_TABLES="https://localhost:$table_port/" ORRERY_KEY="$key" ORRERY_MODE=$mode \
            java $java_options -cp "$java_classes" org.junit.platform.console.ConsoleLauncher execute \
            --disable-banner --disable-ansi-colors --details=tree --scan-classpath "$java_target/test-classes" || verdicts=1
    done
    return "$verdicts"
}

# One SDK after the other, alone with a server: it counts all requests, whoever sent them.
run_requests() {
    install_python
    install_javascript
    finish_build go
    finish_build java
    finish_build rust
    start requests
    say "requests: how many the SDKs send for 100 reads and 100 writes on port $port"
    trust_in_java
    dotnet_counted=
    if unpack_dotnet; then
        export DOTNET_BUNDLE_EXTRACT_BASE_DIR="$cache/dotnet"
        dotnet_counted="dotnet:$dotnet_requests=exec '$cache/dotnet-client' --key '$key' --endpoint 'http://localhost:$port/' --only crud.typed"
    else
        say "requests: .NET is left out, its client is not beside this project"
    fi
    judge requests env ORRERY_ENDPOINT="http://localhost:$port/" ORRERY_KEY="$key" "$venv/bin/python" "$here/requests/main.py" \
        "http://127.0.0.1:$port/" \
        "python=exec '$venv/bin/python' '$here/requests/python_client.py'" \
        "javascript=exec node '$work/javascript_client.mjs'" \
        "rust=ORRERY_ENDPOINT=https://127.0.0.1:$port/ exec '$CARGO_TARGET_DIR/debug/examples/requests'" \
        "go=exec '$cache/go.requests' -test.run TestRequests" \
        "java=ORRERY_ENDPOINT=https://localhost:$port/ exec java $java_options -cp '$java_classes' scenario.Requests" \
        ${dotnet_counted:+"$dotnet_counted"}
    stop_server
}

# A program built on the published .NET SDK, kept beside this project. Each run has a fresh server with throttling on.
dotnet_client=$root/../shared/tools/dotnet/orrery-dotnet-client.xz
# What it sends for `crud.typed`: sixteen operations, each once, and to start with the account document, the container, and
# the container's ranges until nothing of them is new.
dotnet_requests=20
unpack_dotnet() {
    [ -e "$dotnet_client" ] || return 1
    if [ ! -x "$cache/dotnet-client" ] || [ "$dotnet_client" -nt "$cache/dotnet-client" ]; then
        say "unpacking the .NET client into .cache/sdk"
        xz -dc "$dotnet_client" >"$cache/dotnet-client.part"
        chmod +x "$cache/dotnet-client.part"
        mv "$cache/dotnet-client.part" "$cache/dotnet-client"
    fi
}

run_dotnet() {
    if ! unpack_dotnet; then
        say "dotnet: left out, its client is not beside this project"
        summary="$summary$(printf '%-11s %-7s %s' dotnet 'left out' 'no client beside this project')
"
        return
    fi
    install_python
    say "dotnet: Microsoft.Azure.Cosmos in gateway mode, over http, over https, and while partitions split, and the same in direct mode"
    judge dotnet dotnet_runs
}

dotnet_runs() {
    export DOTNET_BUNDLE_EXTRACT_BASE_DIR="$cache/dotnet"
    verdicts=0 dotnet_mode=
    dotnet_once http 'over http' '' || verdicts=1
    dotnet_once https 'over https' '' || verdicts=1
    dotnet_mode=--direct
    dotnet_once https 'in direct mode' '' || verdicts=1
    dotnet_mode=
    dotnet_once http 'among splits' 'crud batch bulk query linq processor.two processor.estimator' "$venv/bin/python" -W ignore \
        "$here/dotnet/splits.py" || verdicts=1
    dotnet_tries http 'of changes among splits' 'change-feed processor.manual' "$venv/bin/python" \
        -W ignore "$here/dotnet/splits.py" || verdicts=1
    dotnet_mode=--direct
    dotnet_once https 'in direct mode among splits' 'crud batch bulk query linq processor.two processor.estimator' "$venv/bin/python" -W ignore \
        "$here/dotnet/splits.py" || verdicts=1
    dotnet_tries https 'of changes in direct mode among splits' 'change-feed processor.manual' "$venv/bin/python" \
        -W ignore "$here/dotnet/splits.py" || verdicts=1
    dotnet_mode=
    return "$verdicts"
}

# `dotnet_mode` is an option of the client. Arguments: the scheme, what the run is called, the families of scenarios, and what runs the client, if anything.
dotnet_once() {
    scheme=$1 how=$2 families=$3
    shift 3
    output=$logs/$(dotnet_name).log
    dotnet_client "$families" "$@" >"$output"
    dotnet_verdict
}

# The same for scenarios of which each must pass in one of three tries. Those of the change feed end at the first 304, and
# among splits this SDK says 304 before it has read the parts of a range that was split on its way (COMPAT.md says how). No
# server can prevent it; mostly they pass at once, since the splits are over by then. Readers that go on are followed
# through splits by "elastic" and by the processors. And the processor with checkpoints by hand: when its range splits, this SDK writes into
# the leases of the parts how far it has handed out changes, checkpointed or not, and so does not hand them out again.
dotnet_tries() {
    scheme=$1 how=$2 families=$3
    shift 3
    output=$logs/$(dotnet_name).log
    left=$families
    : >"$output"
    for try in 1 2 3; do
        dotnet_client "$left" "$@" >"$output.$try"
        left=$(sed -n 's/^not ok \([^: ]*\).*/\1/p' "$output.$try" | tr '\n' ' ')
        if [ -z "$left" ] || [ "$try" = 3 ]; then
            cat "$output.$try" >>"$output"
            break
        fi
        echo "dotnet: again $how: $left"
        sed '/^not ok /d' "$output.$try" >>"$output"
    done
    dotnet_verdict
}

dotnet_name() { printf 'dotnet-%s' "$how" | tr ' ' '-'; }

# Runs the client against a server of its own. Its own verdict counts every failure; ours knows which are expected.
dotnet_client() {
    wanted=$1
    shift
    start "$(dotnet_name)" >&2
    # The families are several words.
    # shellcheck disable=SC2086
    ORRERY_ENDPOINT="$scheme://localhost:$port/" ORRERY_KEY="$key" "$@" "$cache/dotnet-client" --key "$key" \
        --endpoint "$scheme://localhost:$port/" $dotnet_mode ${wanted:+--only $wanted} 2>&1 || true
    stop_server >&2
}

dotnet_verdict() {
    sed -n 's/^[0-9]* splits meanwhile/dotnet: &/p' "$output"
    awk -v over="$how" -v families="$families" -f "$here/dotnet/verdict.awk" "$here/dotnet/expected.txt" "$output"
}

fetch_authority() {
    "${PYTHON:-python3}" -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())' \
        "http://127.0.0.1:$port/_explorer/emulator.pem" >"$1"
}

find "$cache/logs" -maxdepth 1 -name "run-*" -mmin +60 -exec rm -rf {} + 2>/dev/null || true
mkdir -p "$logs"
if [ ! -x "$binary" ]; then
    say "no server at $binary: build it (cargo build --release) or set ORRERY_BIN"
    exit 2
fi
[ $# -gt 0 ] || set -- python tables javascript elastic guides documents dotnet go java rust requests
export CARGO_TARGET_DIR="$root/.cache/rust-target" CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
for language in go java rust; do
    case " $* " in *" $language "* | *" requests "*) "build_$language" ;; *" documents "*) [ "$language" = rust ] || "build_$language" ;; *" elastic "*) [ "$language" != java ] || build_java ;; esac
done
for language in "$@"; do
    case $language in
        python | tables | javascript | rust | go | java | dotnet | elastic | guides | documents | requests) "run_$language" ;;
        *) say "unknown language $language"; exit 2 ;;
    esac
done
printf '\n%s\n' "$summary"
[ "$failed" -eq 0 ] || printf '%s' "$reasons"
exit "$failed"
