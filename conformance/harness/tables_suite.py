"""The tests for Cosmos DB that ship with azure-data-tables for Python, synchronous and asynchronous.

The SDK takes an account for one of Cosmos DB by its host name. So the tests use the name that an account has in the
cloud, and `tables_plugin` leads it to our server, whose certificate has it too. After each test all tables are
deleted, so nothing runs beside it.
"""

import time

from . import expectations, pytest_runs, workspace
from .server import Server

NAME = "tables"
ACCOUNT = "conformancesuite"
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
HOSTS = [f"{account}.table.cosmos.azure.com" for account in (ACCOUNT, f"{ACCOUNT}-secondary")]
SERVER_FLAGS = [
    "--no-throttle", "--entra-development", "--table-port", "0",
    *(flag for host in HOSTS for flag in ("--tls-name", host)),
]
QUICK_STEMS = ["test_table_cosmos", "test_table_entity_cosmos", "test_table_batch_cosmos", "test_retry_cosmos"]
# A port at which nothing listens.
NO_SERVER = {"TABLES_PORT": "1"}


def run_suite(quick):
    python = workspace.venv_python()
    folder = workspace.tables_suite_folder(python)
    files = [f"tests/{stem}.py" for stem in QUICK_STEMS] if quick else all_files(folder)
    notes = []
    started = time.monotonic()

    def run_group(name, tests):
        with Server(NAME, SERVER_FLAGS, port=0) as server:
            certificate = str(server.certificate())
            variables = {
                "TABLES_PORT": str(server.table_port),
                # What the synchronous client and the asynchronous one read.
                "REQUESTS_CA_BUNDLE": certificate,
                "SSL_CERT_FILE": certificate,
            }
            workspace.say(f"{NAME}: group {name}")
            results = run_tests(python, folder, name, tests, variables)
            if not server.alive():
                notes.append(f"the server died in group {name}; see {server.log.name}")
            return results

    def run_alone(ids):
        return [] if notes else run_group("alone", pytest_runs.selectors(ids))

    verdict = expectations.judge_twice(NAME, run_group("quick" if quick else "all", files), run_alone)
    verdict.seconds = time.monotonic() - started
    verdict.notes = notes
    return verdict


def all_files(folder):
    files = sorted((folder / "tests").glob("test_*_cosmos*.py"))
    return [str(path.relative_to(folder)) for path in files]


def run_tests(python, folder, name, tests, variables):
    # The suite's own fixtures are about recordings.
    options = ["--noconftest", "-p", "tables_plugin", *tests]
    account = {"TABLES_COSMOS_ACCOUNT_NAME": ACCOUNT, "TABLES_PRIMARY_COSMOS_ACCOUNT_KEY": KEY}
    return pytest_runs.run(NAME, python, folder, name, options, {**account, **variables})


def measure_client_only():
    """Runs everything with no server and keeps what passes."""
    python = workspace.venv_python()
    folder = workspace.tables_suite_folder(python)
    results = run_tests(python, folder, "no-server", all_files(folder), NO_SERVER)
    passing = {result.id for result in results if result.outcome == expectations.PASSED}
    expectations.write_client_only(NAME, passing)
