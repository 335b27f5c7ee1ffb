"""The harness judged by itself: run.sh runs these before any suite."""

import collections
import pathlib
import tempfile
import unittest
from unittest import mock

from harness import expectations, pytest_runs, rust_suite
from harness.expectations import FAILED, MISSING, PASSED, SKIPPED, Result


class Judging(unittest.TestCase):
    def judge(self, expected, client_only, results):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for kind, text in (("expected", expected), ("client_only", client_only)):
                (folder / kind).mkdir()
                (folder / kind / "suite.txt").write_text(text)
            with mock.patch.object(expectations.workspace, "CONFORMANCE", folder):
                return expectations.judge("suite", results)

    def test_known_failures_are_fine_and_others_are_not(self):
        results = [Result("f::a", FAILED), Result("f::b", FAILED), Result("f::c", MISSING)]
        verdict = self.judge("f::a | a reason\n", "", results)
        self.assertEqual(verdict.expected_failures, ["f::a"])
        self.assertEqual([result.id for result in verdict.unexpected], ["f::b", "f::c"])
        self.assertFalse(verdict.good)

    def test_a_listed_test_that_passes_must_leave_the_list(self):
        verdict = self.judge("f::a | a reason\n", "", [Result("f::a", PASSED)])
        self.assertEqual(verdict.new_passes, ["f::a"])
        self.assertFalse(verdict.good)

    def test_an_unstable_test_may_pass_and_may_fail(self):
        for outcome in (PASSED, FAILED):
            self.assertTrue(self.judge("f::a | unstable: speed\n", "", [Result("f::a", outcome)]).good)

    def test_client_only_and_skipped_tests_do_not_count(self):
        results = [Result("f::a", PASSED), Result("f::b", SKIPPED), Result("f::c", PASSED)]
        verdict = self.judge("", "f::a\n", results)
        self.assertEqual((verdict.counted, verdict.passed, verdict.skipped), (1, 1, 1))

    def test_a_listed_test_that_does_not_exist_is_named(self):
        verdict = self.judge("f::gone | why\nother::x | why\n", "", [Result("f::a", PASSED)])
        self.assertEqual(verdict.unknown, ["f::gone"])
        self.assertFalse(verdict.good)

    def judge_twice(self, expected, results, second):
        """The verdict, and the ids that ran again; `second` has the outcomes of that."""
        asked = []

        def run_alone(ids):
            asked.extend(ids)
            return [Result(test, outcome) for test, outcome in second.items()]

        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "expected").mkdir()
            (folder / "expected" / "suite.txt").write_text(expected)
            changes = {"CONFORMANCE": folder, "LOGS": folder / "logs"}
            with mock.patch.multiple(expectations.workspace, **changes):
                return expectations.judge_twice("suite", results, run_alone), asked

    def test_only_a_second_failure_counts(self):
        first = [Result("f::a", FAILED, "slow")]
        first += [Result("f::b", FAILED), Result("f::c", MISSING), Result("f::d", MISSING)]
        second = {"f::a": PASSED, "f::b": FAILED, "f::c": PASSED, "f::d": SKIPPED}
        verdict, asked = self.judge_twice("", first, second)
        self.assertEqual(asked, ["f::a", "f::b", "f::c", "f::d"])
        alone = [(result.id, result.message) for result in verdict.passed_alone]
        self.assertEqual(alone, [("f::a", "slow"), ("f::c", MISSING)])
        self.assertEqual([result.id for result in verdict.unexpected], ["f::b", "f::d"])
        self.assertEqual((verdict.counted, verdict.passed), (4, 2))
        self.assertFalse(verdict.good)

    def test_listed_tests_are_judged_by_their_first_run(self):
        first = [Result("f::a", FAILED), Result("f::b", PASSED), Result("f::c", FAILED)]
        second = {"f::a": PASSED, "f::b": FAILED, "f::c": PASSED}
        verdict, asked = self.judge_twice("f::a | why\nf::b | why\n", first, second)
        self.assertEqual(asked, ["f::c"])
        self.assertEqual((verdict.expected_failures, verdict.new_passes), (["f::a"], ["f::b"]))

    def test_nothing_runs_again_when_all_is_well_or_nothing_is(self):
        many = [Result(f"f::{number}", FAILED) for number in range(expectations.ALONE_LIMIT + 1)]
        for first in ([Result("f::a", PASSED)], many):
            self.assertEqual(self.judge_twice("", first, {"f::1": PASSED})[1], [])

    def test_a_reason_is_required(self):
        with self.assertRaises(ValueError):
            self.judge("f::a\n", "", [])


class Reading(unittest.TestCase):
    def test_random_parameters_become_constant(self):
        seen = collections.Counter()
        raw = "tests/test_x.py::T::t[box-138b2dbf-837e-489b-9299-b7abb0ad6dfe]"
        self.assertEqual(pytest_runs.stable_id(raw, seen), "test_x.py::T::t[box-{uuid}]")
        self.assertEqual(pytest_runs.stable_id(raw, seen), "test_x.py::T::t[box-{uuid}]#2")

    def test_tests_are_selected_without_their_parameters(self):
        ids = ["test_x.py::T::t[a-1]", "test_x.py::T::t[b-{uuid}]#2", "test_y.py::U::u#2", "group quick-sync"]
        self.assertEqual(pytest_runs.selectors(ids), ["tests/test_x.py::T::t", "tests/test_y.py::U::u"])

    def test_the_reason_why_nothing_was_collected_is_found(self):
        lines = ["E   ImportError: no x", "ERROR tests/a.py - ImportError: no x", "!!! Interrupted !!!", "1 error in 0.2s"]
        self.assertEqual(pytest_runs.collection_error(lines), lines[1])
        self.assertEqual(pytest_runs.collection_error(["killed", ""]), "killed")
        self.assertEqual(pytest_runs.collection_error([]), "no output")

    def test_libtest_output_is_understood(self):
        text = (
            "test m::a ... ok\nnoise test m::b ... FAILED\ntest m::c - should panic ... ok\n"
            "test m::d ... ignored, why\n---- m::b stdout ----\nboom\n\nfailures:\n    m::b\n"
        )
        results = rust_suite.read_log(text, ["m::a", "m::b", "m::c", "m::d", "m::e"])
        found = {result.id: result.outcome for result in results}
        self.assertEqual(
            found, {"m::a": PASSED, "m::b": FAILED, "m::c": PASSED, "m::e": MISSING}
        )
        self.assertEqual(results[1].message, "boom")


if __name__ == "__main__":
    unittest.main()
