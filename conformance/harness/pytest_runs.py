"""One pytest process over some files of a suite, and what it reported."""

import collections
import json
import os
import re
import subprocess

from . import expectations, workspace
from .expectations import Result

GROUP_LIMIT_SECONDS = 20 * 60
TEST_LIMIT_SECONDS = 300
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def run(suite, python, folder, name, options, variables):
    """Runs the tests that the options name; those it never reported have no result."""
    workspace.LOGS.mkdir(parents=True, exist_ok=True)
    report = workspace.LOGS / f"{suite}.{name}.jsonl"
    report.unlink(missing_ok=True)
    log_path = workspace.LOGS / f"{suite}.{name}.log"
    environment = dict(
        os.environ,
        CONFORMANCE_RESULTS=str(report),
        PYTHONPATH=f"{workspace.CONFORMANCE / 'standin'}{os.pathsep}{workspace.CONFORMANCE}",
        PYTHONDONTWRITEBYTECODE="1",
        # Pytest shortens the reasons in its summary to the width of the screen.
        COLUMNS="300",
        **variables,
    )
    command = [
        str(python), "-m", "pytest", "-q", "--tb=native", "-p", "results_plugin",
        "--timeout", str(TEST_LIMIT_SECONDS), *options,
    ]
    with open(log_path, "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(GROUP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            workspace.say(f"{suite}: group {name} ran over its limit and was stopped")
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
