"""pytest plugin: one JSON line per finished test, written at once.

A results file that grows while tests run survives a killed process, which a report written at
the end does not. A test is reported once: its worst phase (set-up, call or tear-down) counts.
"""

import json
import os

import pytest

_RANK = {"passed": 0, "skipped": 1, "failed": 2}


class ResultWriter:
    def __init__(self, path):
        self._out = open(path, "a", encoding="utf-8")
        self._phases = {}

    def pytest_collection_finish(self, session):
        self._write({"collected": [item.nodeid for item in session.items]})

    def pytest_runtest_logreport(self, report):
        worst = self._phases.get(report.nodeid)
        outcome = report.outcome
        if outcome == "passed" and report.when == "setup":
            return
        if worst is None or _RANK[outcome] > _RANK[worst["outcome"]]:
            worst = {
                "id": report.nodeid,
                "outcome": outcome,
                "phase": report.when,
                "message": _last_line(report),
            }
            self._phases[report.nodeid] = worst

    def pytest_runtest_logfinish(self, nodeid):
        result = self._phases.pop(nodeid, None)
        if result is not None:
            self._write(result)

    def pytest_sessionfinish(self):
        for result in self._phases.values():
            self._write(result)
        self._out.close()

    def _write(self, value):
        self._out.write(json.dumps(value) + "\n")
        self._out.flush()


def _last_line(report):
    if report.outcome == "passed" or report.longrepr is None:
        return ""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return text.strip()[:2000]


@pytest.fixture(autouse=True)
def _unpatched_client():
    """Some tests replace the SDK's send function and put it back only when they succeed.

    Without this, one failure would break every later test of the process.
    """
    from azure.cosmos import _retry_utility
    from azure.cosmos.aio import _retry_utility_async

    execute = _retry_utility.ExecuteFunction
    execute_async = _retry_utility_async.ExecuteFunctionAsync
    yield
    _retry_utility.ExecuteFunction = execute
    _retry_utility_async.ExecuteFunctionAsync = execute_async


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    path = os.environ.get("CONFORMANCE_RESULTS")
    if path:
        config.pluginmanager.register(ResultWriter(path), "conformance-results")
