"""The tests that ship with azure-cosmos for Python, synchronous and asynchronous.

Files run in groups, one pytest process each, so that a hang or a crash costs a bounded time. Two
groups run at once: each makes databases of its own, and many tests only sleep.
"""

import collections
import concurrent.futures
import json
import os
import re
import subprocess
import time

from . import expectations, workspace
from .expectations import Result
from .server import PORT, Server

NAME = "python"
MARKERS = "cosmosEmulator or cosmosQuery or cosmosLong or cosmosSearchQuery or cosmosSplit"
QUICK_STEMS = [
    "test_crud_database",
    "test_crud_container",
    "test_crud_subpartition",
    "test_crud",
    "test_transactional_batch",
    "test_partition_key",
    "test_auto_scale",
    "test_headers",
    "test_query",
    "test_query_cross_partition",
    "test_query_feed_range",
    "test_query_response_headers",
    "test_computed_properties",
    "test_read_items",
    "test_change_feed",
    "test_change_feed_all_versions",
    "test_changefeed_partition_key_variation",
    "test_change_feed_split",
    "test_partition_split_query",
    "test_read_items_partition_split",
]
# These have no asynchronous twin.
QUICK_STEMS_SYNC = ["test_aggregate", "test_orderby", "test_multi_orderby", "test_ttl"]
# Files that never talk to a server.
CLIENT_ONLY_FILES = [
    "routing/*",
    "test_aio_extras_packaging_unit.py",
    "test_base_unit.py",
    "test_compact_utf8_resilience.py",
    "test_content_length_encoding.py",
    "test_cosmos_paged_unit*.py",
    "test_diagnostics.py",
    "test_hybrid_search_aggregator.py",
    "test_item_body_serialization.py",
    "test_location_cache*.py",
    "test_murmurhash3.py",
    "test_partition_key_undefined_unit.py",
    "test_partition_split_retry_unit*.py",
    "test_pk_range_drain*.py",
    "test_proxy.py",
    "test_query_aggregate_utils_unit_async.py",
    "test_response_decoding_paged.py",
    "test_routing_map_provider_unit*.py",
    "test_session_token_unit.py",
    "test_transport_body_encoding.py",
]
# Tests of failing regions tell two addresses apart: the one they dial and the one they are told to dial.
SERVER_FLAGS = ["--no-throttle", "--advertised-host", "127.0.0.1", "--entra-development"]
GROUP_LIMIT_SECONDS = 20 * 60
TEST_LIMIT_SECONDS = 300
FILES_PER_GROUP = 12
GROUPS_AT_ONCE = 2
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def run_suite(quick):
    python = workspace.venv_python()
    folder = workspace.python_suite_folder(python)
    groups = quick_groups() if quick else quick_groups() + other_groups(folder)
    notes = []
    started = time.monotonic()

    def run_one(group):
        name, files = group
        if server.restart_if_dead():
            notes.append(f"the server died before group {name}; see {server.log.name}")
        workspace.say(f"python: group {name} ({len(files)} files)")
        return run_group(python, folder, name, files)

    def run_alone(ids):
        # A server that dies is a fault, whatever the tests do on the next one.
        if notes:
            return []
        workspace.say(f"python: running {len(ids)} tests again, alone")
        with Server(NAME, SERVER_FLAGS) as fresh:
            again = run_group(python, folder, "alone", selectors(ids))
            return again if fresh.alive() else []

    with Server(NAME, SERVER_FLAGS) as server:
        with concurrent.futures.ThreadPoolExecutor(GROUPS_AT_ONCE) as pool:
            results = [result for group in pool.map(run_one, groups) for result in group]
        if not server.alive():
            notes.append(f"the server died in the last group; see {server.log.name}")
    verdict = expectations.judge_twice(NAME, results, run_alone)
    verdict.seconds = time.monotonic() - started
    verdict.notes = notes
    return verdict


def quick_groups():
    return [
        ("quick-sync", [f"tests/{stem}.py" for stem in QUICK_STEMS + QUICK_STEMS_SYNC]),
        ("quick-async", [f"tests/{stem}_async.py" for stem in QUICK_STEMS]),
    ]


def other_groups(folder):
    """Every other file that may touch a server, a dozen at a time."""
    taken = {file for _, files in quick_groups() for file in files}
    silent = {path for glob in CLIENT_ONLY_FILES for path in (folder / "tests").glob(glob)}
    files = [
        str(path.relative_to(folder))
        for path in sorted((folder / "tests").glob("test_*.py"))
        if path not in silent and path.name != "test_config.py"
    ]
    files = [file for file in files if file not in taken]
    return [
        (f"rest-{start // FILES_PER_GROUP + 1}", files[start : start + FILES_PER_GROUP])
        for start in range(0, len(files), FILES_PER_GROUP)
    ]


def run_group(python, folder, name, files, extra=()):
    """One pytest process over some files; tests it never reported have no result."""
    workspace.LOGS.mkdir(parents=True, exist_ok=True)
    report = workspace.LOGS / f"python.{name}.jsonl"
    report.unlink(missing_ok=True)
    log_path = workspace.LOGS / f"python.{name}.log"
    environment = dict(
        os.environ,
        ACCOUNT_HOST=f"https://localhost:{PORT}/",
        CONFORMANCE_RESULTS=str(report),
        PYTHONPATH=f"{workspace.CONFORMANCE / 'standin'}{os.pathsep}{workspace.CONFORMANCE}",
        PYTHONDONTWRITEBYTECODE="1",
        # Pytest shortens the reasons in its summary to the width of the screen.
        COLUMNS="300",
    )
    command = [
        str(python), "-m", "pytest", "-q", "--tb=native", "-p", "results_plugin", "-m", MARKERS,
        "--timeout", str(TEST_LIMIT_SECONDS), *extra, *files,
    ]
    with open(log_path, "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(GROUP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            workspace.say(f"python: group {name} ran over its limit and was stopped")
            process.kill()
            process.wait()
    return read_report(report, log_path, name)


def read_report(report, log_path, name):
    collected, outcomes = [], {}
    if report.exists():
        for line in report.read_text(encoding="utf-8").splitlines():
            value = json.loads(line)
            if "collected" in value:
                collected = value["collected"]
            else:
                outcomes[value["id"]] = value
    if not collected:
        lines = log_path.read_text(errors="replace").splitlines()[-25:]
        message = "\n".join([f"nothing was collected: {collection_error(lines)}", *lines])
        return [Result(f"group {name}", expectations.FAILED, message)]
    seen = collections.Counter()
    results = []
    for raw in collected:
        found = outcomes.get(raw, {"outcome": expectations.MISSING, "message": ""})
        results.append(Result(stable_id(raw, seen), found["outcome"], found["message"]))
    return results


def collection_error(lines):
    """The line that says why; the very last one only counts errors."""
    lines = [line for line in lines if line.strip()] or ["no output"]
    telling = [line for line in lines if re.match(r"ERROR|E  |\w+Error", line)]
    return (telling or lines)[-1]


def stable_id(raw, seen):
    """Parameter ids that hold random values differ from run to run; lists need them constant."""
    stable = _UUID.sub("{uuid}", raw.removeprefix("tests/"))
    seen[stable] += 1
    return stable if seen[stable] == 1 else f"{stable}#{seen[stable]}"


def selectors(ids):
    """How pytest is told to run these tests. Parameters may be random, so all those of a test run again."""
    bare = {re.split(r"\[|#", test)[0] for test in ids if "::" in test}
    return sorted(f"tests/{test}" for test in bare)


def measure_client_only():
    """Runs everything with no server and keeps what passes."""
    python = workspace.venv_python()
    folder = workspace.python_suite_folder(python)
    passing = set()
    for name, files in quick_groups() + other_groups(folder):
        workspace.say(f"python: group {name} with no server")
        results = run_group(
            python, folder, f"no-server-{name}", files, ["--noconftest", "--timeout", "20"]
        )
        passing |= {result.id for result in results if result.outcome == expectations.PASSED}
    expectations.write_client_only(NAME, passing)
