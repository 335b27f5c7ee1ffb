"""The lists kept with the harness, and the verdict they give over a suite's results.

`expected/<suite>.txt`: one failing test per line, `test id | reason`.
`client_only/<suite>.txt`: tests that pass with no server at all. They say nothing about a server
and are never counted.
A test on the expected list that passes must leave the list: the run fails and names it. Only a reason
that starts with `unstable:` allows both, for tests whose outcome depends on speed and not on answers.
A failure that is not listed counts when the test fails alone as well.
"""

import dataclasses
import json

from . import workspace

UNSTABLE = "unstable:"
PASSED, FAILED, SKIPPED, MISSING = "passed", "failed", "skipped", "no result"
PASSED_ALONE = "passed alone"
# More failures than this at once are no accident of timing, and to run them again would take too long.
ALONE_LIMIT = 40


@dataclasses.dataclass
class Verdict:
    suite: str
    counted: int = 0
    passed: int = 0
    skipped: int = 0
    passed_alone: list = dataclasses.field(default_factory=list)
    expected_failures: list = dataclasses.field(default_factory=list)
    new_passes: list = dataclasses.field(default_factory=list)
    unexpected: list = dataclasses.field(default_factory=list)
    unknown: list = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    notes: list = dataclasses.field(default_factory=list)

    @property
    def good(self):
        return not (self.new_passes or self.unexpected or self.unknown)


@dataclasses.dataclass
class Result:
    id: str
    outcome: str
    message: str = ""


def expected_failures(suite):
    path = workspace.CONFORMANCE / "expected" / f"{suite}.txt"
    listed = {}
    for number, line in enumerate(_lines(path), start=1):
        test, bar, reason = line.partition(" | ")
        if not bar or not reason.strip():
            raise ValueError(f"{path.name}:{number}: every expected failure needs ` | reason`")
        if test.strip() in listed:
            raise ValueError(f"{path.name}:{number}: {test.strip()} is listed twice")
        listed[test.strip()] = reason.strip()
    return listed


def client_only(suite):
    return set(_lines(workspace.CONFORMANCE / "client_only" / f"{suite}.txt"))


def write_client_only(suite, ids):
    path = workspace.CONFORMANCE / "client_only" / f"{suite}.txt"
    path.parent.mkdir(exist_ok=True)
    head = "# Tests that pass with no server (measured by `run.sh --measure-client-only`).\n"
    path.write_text(head + "".join(f"{test}\n" for test in sorted(ids)))


def _lines(path):
    if not path.exists():
        return []
    stripped = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def judge(suite, results):
    """Sorts results by the lists. Skipped tests are shown apart and count neither way."""
    expected = expected_failures(suite)
    uncounted = client_only(suite)
    verdict = Verdict(suite)
    for result in results:
        if result.id in uncounted:
            continue
        if result.outcome == SKIPPED:
            verdict.skipped += 1
            if result.id in expected:
                verdict.expected_failures.append(result.id)
            continue
        verdict.counted += 1
        if result.outcome in (PASSED, PASSED_ALONE):
            verdict.passed += 1
            if result.outcome == PASSED_ALONE:
                verdict.passed_alone.append(result)
            if result.id in expected and not expected[result.id].startswith(UNSTABLE):
                verdict.new_passes.append(result.id)
        elif result.id in expected:
            verdict.expected_failures.append(result.id)
        else:
            verdict.unexpected.append(result)
    verdict.unknown = unknown_ids(expected, results)
    return verdict


def judge_twice(suite, results, run_alone):
    """The verdict after tests that failed, and should not have, have run a second time.

    Outside tests have bounds on time that a busy machine may miss. `run_alone` takes ids, runs these tests one after
    the other on a fresh server with nothing beside them, and returns results. Only a pass changes anything.
    """
    doubtful = judge(suite, results).unexpected
    if 0 < len(doubtful) <= ALONE_LIMIT:
        again = run_alone([result.id for result in doubtful])
        passed = {result.id for result in again if result.outcome == PASSED}
        for result in doubtful:
            if result.id in passed:
                result.message = result.message or result.outcome
                result.outcome = PASSED_ALONE
    save(suite, results)
    return judge(suite, results)


def unknown_ids(listed, results):
    """Listed tests that do not exist. Only files that ran can tell: a quick run has fewer."""
    seen = {result.id for result in results}
    files = {test.partition("::")[0] for test in seen}
    return [test for test in listed if test not in seen and test.partition("::")[0] in files]


def save(suite, results):
    """All results of the last run, for reading after it."""
    workspace.LOGS.mkdir(parents=True, exist_ok=True)
    with open(workspace.LOGS / f"{suite}.results.jsonl", "w", encoding="utf-8") as out:
        for result in results:
            out.write(json.dumps(dataclasses.asdict(result)) + "\n")
