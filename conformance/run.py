"""Command line of the conformance harness: runs suites, judges them, prints one table."""

import argparse
import sys
import time

from harness import python_suite, rust_suite, tables_suite, workspace
from harness.expectations import MISSING
from harness.server import ServerFailed, binary

# Where only the end of an output is seen, the first complaints must still be in it.
SHOWN_MAX = 15
PYTEST_SUITES = [python_suite, tables_suite]


def suites():
    """Name -> how to run it (given: quick or not, and the builds of Rust suites)."""
    table = {suite.NAME: lambda quick, _builds, suite=suite: suite.run_suite(quick) for suite in PYTEST_SUITES}
    for suite in rust_suite.SUITES:
        table[suite.name] = lambda _quick, builds, suite=suite: rust_suite.run_suite(suite, builds)
    return table


def measures():
    table = {suite.NAME: suite.measure_client_only for suite in PYTEST_SUITES}
    for suite in rust_suite.SUITES:
        table[suite.name] = lambda suite=suite: rust_suite.measure_client_only(suite)
    return table


def arguments():
    parser = argparse.ArgumentParser(prog="conformance/run.sh", description=__doc__)
    parser.add_argument("mode", nargs="?", choices=["quick", "full"], default="full")
    parser.add_argument("--suite", action="append", choices=sorted(suites()), help="only this one")
    parser.add_argument(
        "--record", action="store_true",
        help="print unexpected failures as candidates for the expected lists (writes nothing)",
    )
    parser.add_argument(
        "--measure-client-only", action="store_true",
        help="run without a server and write the lists of tests that need none",
    )
    return parser.parse_args()


def print_table(verdicts):
    head = ("suite", "tests that count", "passed", "of these alone", "expected failures", "new passes",
            "unexpected failures", "skipped", "seconds")
    rows = [head]
    for verdict in verdicts:
        rows.append((
            verdict.suite, verdict.counted, verdict.passed, len(verdict.passed_alone),
            len(verdict.expected_failures), len(verdict.new_passes), len(verdict.unexpected), verdict.skipped,
            f"{verdict.seconds:.0f}",
        ))
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(head))]
    print()
    for row in rows:
        cells = (str(cell).ljust(width) for cell, width in zip(row, widths))
        print("| " + " | ".join(cells) + " |")
        if row is head:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print()


def print_details(verdicts, record):
    for verdict in verdicts:
        for note in verdict.notes:
            print(f"{verdict.suite}: {note}")
        for result in verdict.passed_alone:
            print(f"{verdict.suite}: passed alone: {result.id}: at first: {first_words(result)}")
    lines = [line for verdict in verdicts for line in complaints(verdict, record)]
    shown = lines if record else lines[:SHOWN_MAX]
    for line in shown:
        print(line)
    if len(lines) > len(shown):
        print(f"and {len(lines) - len(shown)} more")


def complaints(verdict, record):
    """A line for everything that fails the run."""
    for test in verdict.unknown:
        yield f"{verdict.suite}: NO SUCH TEST, take it off expected/{verdict.suite}.txt: {test}"
    for test in verdict.new_passes:
        yield f"{verdict.suite}: PASSES NOW, take it off expected/{verdict.suite}.txt: {test}"
    if record and verdict.unexpected:
        yield f"\ncandidates for expected/{verdict.suite}.txt (each needs a reason):"
    for result in verdict.unexpected:
        label = "NO RESULT" if result.outcome == MISSING else "FAILED"
        failure = f"{verdict.suite}: {label} {result.id}: {first_words(result)}"
        yield f"{result.id} | " if record else failure


def first_words(result):
    """The first line that says something; Rust puts the place of a panic before its message."""
    lines = (line.strip() for line in result.message.splitlines())
    telling = (line for line in lines if line and not line.startswith("thread '"))
    return next(telling, result.outcome)[:220]


def main():
    options = arguments()
    chosen = options.suite or list(suites())
    if options.measure_client_only:
        for name in chosen:
            measures()[name]()
        return 0
    started = time.monotonic()
    verdicts = []
    try:
        binary()
        with rust_suite.Builds([suite for suite in rust_suite.SUITES if suite.name in chosen]) as builds:
            for name in chosen:
                verdicts.append(suites()[name](options.mode == "quick", builds))
    except (ServerFailed, workspace.PreparationFailed) as problem:
        print(f"conformance: {problem}", file=sys.stderr)
        return 2
    print_table(verdicts)
    print_details(verdicts, options.record)
    print(f"conformance: {time.monotonic() - started:.0f} s, logs in .cache/conformance/logs")
    return 0 if all(verdict.good for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
