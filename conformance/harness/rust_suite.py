"""The tests that ship with the Rust crates azure_data_cosmos and azure_data_cosmos_driver."""

import concurrent.futures
import dataclasses
import json
import os
import re
import subprocess
import time

from . import expectations, workspace
from .expectations import Result
from .server import Server

RUN_LIMIT_SECONDS = 20 * 60
TEST_THREADS = "4"
_LINE = re.compile(r"\btest (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)")


@dataclasses.dataclass(frozen=True)
class RustSuite:
    name: str
    crate: str
    target: str
    features: str
    server_flags: tuple = ("--no-throttle",)


# Only the features that the tests need: the others want OpenSSL on the machine.
_SDK = "key_auth,control_plane,fault_injection,unstable_patch"
_DRIVER = "fault_injection,unstable_patch,__internal_testing"
SUITES = [
    RustSuite("rust-sdk", "azure_data_cosmos", "emulator", _SDK),
    RustSuite("rust-split", "azure_data_cosmos", "split", _SDK),
    RustSuite("rust-driver", "azure_data_cosmos_driver", "emulator", _DRIVER),
    RustSuite(
        "rust-query-plan", "azure_data_cosmos_driver", "gateway_query_plan_comparison", _DRIVER
    ),
]


class Builds:
    """Compiles suites in the background, one after the other: a suite that runs mostly waits.

    Their priority is the lowest, so that they take nothing from it.
    """

    def __init__(self, suites):
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        self._built = {suite.name: self._pool.submit(prepare, suite) for suite in suites}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pool.shutdown(cancel_futures=True)

    def of(self, suite):
        """The suite's folder and its executable."""
        return self._built[suite.name].result()


def prepare(suite):
    folder = workspace.crate_folder(suite.crate)
    return folder, build(folder, suite)


def run_suite(suite, builds):
    folder, executable = builds.of(suite)
    started = time.monotonic()
    notes = []

    def run_alone(names):
        # A server that dies is a fault, whatever the tests do on the next one.
        if notes:
            return []
        workspace.say(f"{suite.name}: running {len(names)} tests again, alone")
        command = [executable, "--test-threads", "1", "--exact", *names]
        with Server(suite.name, suite.server_flags) as server:
            again = execute(folder, f"{suite.name}.alone", command, names, trust(server))
            return again if server.alive() else []

    with Server(suite.name, suite.server_flags) as server:
        results = run_tests(folder, suite, executable, trust(server))
        if not server.alive():
            notes.append(f"the server died; see {server.log.name}")
    verdict = expectations.judge_twice(suite.name, results, run_alone)
    verdict.seconds = time.monotonic() - started
    verdict.notes = notes
    return verdict


def trust(server):
    """A few tests check certificates: on an emulator's machine its authority is installed."""
    return {"SSL_CERT_FILE": str(server.certificate())}


def measure_client_only(suite):
    folder, executable = prepare(suite)
    results = run_tests(folder, suite, executable)
    passing = {result.id for result in results if result.outcome == expectations.PASSED}
    expectations.write_client_only(suite.name, passing)


def environment():
    """Without the category every test is ignored; without `Required` a missing server passes."""
    return dict(
        os.environ,
        CARGO_TARGET_DIR=str(workspace.RUST_TARGET),
        CARGO_INCREMENTAL="0",
        CARGO_PROFILE_DEV_DEBUG="0",
        RUSTC_WORKSPACE_WRAPPER=str(workspace.CONFORMANCE / "rustc-emulator.sh"),
        AZURE_COSMOS_CONNECTION_STRING="emulator",
        AZURE_COSMOS_ALLOW_INVALID_CERT="true",
        AZURE_COSMOS_TEST_MODE="Required",
        RUST_BACKTRACE="0",
    )


def build(folder, suite):
    """Compiles the test target and returns its path, which cargo names in its messages."""
    started = time.monotonic()
    workspace.say(f"{suite.name}: building (first time: some minutes)")
    output = workspace.run(
        ["nice", "-n", "19", "cargo", "test", "--locked", "--features", suite.features, "--no-run",
         "--test", suite.target, "--message-format", "json-render-diagnostics"],
        f"building {suite.name}",
        cwd=folder,
        env=environment(),
    )
    workspace.say(f"{suite.name}: built in {time.monotonic() - started:.0f} s")
    for line in reversed(output.splitlines()):
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == suite.target:
            return message["executable"]
    raise workspace.PreparationFailed(f"cargo named no executable for {suite.name}")


def run_tests(folder, suite, executable, extra=None):
    listed = subprocess.run(
        [executable, "--list", "--format", "terse"],
        cwd=folder, env=environment(), capture_output=True, text=True, check=True,
    ).stdout
    names = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
    workspace.say(f"{suite.name}: running {len(names)} tests")
    return execute(folder, suite.name, [executable, "--test-threads", TEST_THREADS], names, extra)


def execute(folder, name, command, names, extra):
    """Runs these tests and reads what became of them; `name` is that of the log."""
    workspace.LOGS.mkdir(parents=True, exist_ok=True)
    log_path = workspace.LOGS / f"{name}.log"
    with open(log_path, "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            cwd=folder, env=environment() | (extra or {}), stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(RUN_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            workspace.say(f"{name}: ran over its limit and was stopped")
            process.kill()
            process.wait()
    return read_log(log_path.read_text(encoding="utf-8", errors="replace"), names)


def read_log(text, names):
    words = {"ok": expectations.PASSED, "FAILED": expectations.FAILED, "ignored": None}
    outcomes = {name: words[word] for name, word in _LINE.findall(text)}
    results = []
    for name in names:
        outcome = outcomes.get(name, expectations.MISSING)
        # Ignored tests belong to other categories of servers: they are not part of this run.
        if outcome is not None:
            results.append(Result(name, outcome, failure_text(text, name)))
    return results


def failure_text(text, name):
    """What libtest printed for one failed test, shortened."""
    mark = f"---- {name} stdout ----"
    start = text.find(mark)
    if start < 0:
        return ""
    rest = text[start + len(mark) :]
    ends = [end for end in (rest.find("\n---- "), rest.find("\nfailures:\n")) if end >= 0]
    return rest[: min(ends, default=len(rest))].strip()[:2000]
