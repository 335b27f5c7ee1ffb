"""The tests that ship with azure-cosmos for Python, synchronous and asynchronous.

Files run in groups, one pytest process each, so that a hang or a crash costs a bounded time. Two
groups run at once: each makes databases of its own, and many tests only sleep.
"""

import concurrent.futures
import time

from . import expectations, pytest_runs, workspace
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
FILES_PER_GROUP = 12
GROUPS_AT_ONCE = 2


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
            again = run_group(python, folder, "alone", pytest_runs.selectors(ids))
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
    options = ["-m", MARKERS, *extra, *files]
    return pytest_runs.run(NAME, python, folder, name, options, {"ACCOUNT_HOST": f"https://localhost:{PORT}/"})


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
