"""Runs every program and command of README.md and docs as it stands there, in its order, with one server and in one folder.

A block of a language that is run must run, or be marked with a reason in a comment above it: `<!-- not run: why -->`. Blocks
without a language show output and may not begin a line with a command, and those called golden are held against the code by other tests. The only change is the port, since the server of a test takes any free one.
"""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PORT = os.environ["ORRERY_PORT"]
# README.md first: what it makes is there for the others.
DOCUMENTS = ["README.md", "docs/command-line.md"] + sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/guides/*.md"), *ROOT.glob("conformance/*.md")]
    if path.name not in {"README.md", "command-line.md"} or path.parent.name in {"guides", "conformance"}
)
SHOWN_ONLY = {"", "text", "json", "golden", "golden-text"}
FENCE = re.compile(r"^(?:<!-- not run: (?P<why>[^>]+) -->\n)?```(?P<language>\S*)[^\n]*\n(?P<body>.*?)^```$", re.M | re.S)


def blocks(document):
    text = (ROOT / document).read_text()
    found = []
    for match in FENCE.finditer(text):
        line = text[: match.start("body")].count("\n") + 1
        found.append((f"{document}:{line}", match["language"], match["body"], match["why"]))
    return found


ALL = [block for document in DOCUMENTS for block in blocks(document)]
RUN = [block for block in ALL if block[1] not in SHOWN_ONLY and block[3] is None]
MARKED = [block for block in ALL if block[3] is not None]
COMMAND = re.compile(r"^(?:orrery|pip|python|curl|npm|make|cargo) .*", re.M)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the commands are run: the documents are there, as in a clone."""
    place = tmp_path_factory.mktemp("clone")
    (place / "docs").symlink_to(ROOT / "docs")
    (place / "node_modules").symlink_to(pathlib.Path(os.environ["ORRERY_NODE"]) / "node_modules")
    # The modules that the scenario of Go has.
    (place / "module").mkdir()
    for name in ["go.mod", "go.sum"]:
        (place / "module" / name).write_bytes((ROOT / "tests/sdk/go" / name).read_bytes())
    (place / "orrery").symlink_to(pathlib.Path(os.environ["ORRERY_BIN"]).resolve())
    return place


def run(folder, language, body):
    body = body.replace("localhost:8081", f"localhost:{PORT}")
    names = {"sh": "block.sh", "python": "block.py", "js": "block.mjs", "java": "Block.java", "go": "module/main.go"}
    assert language in names, f"nothing here runs {language}: mark the block with a reason"
    (folder / names[language]).write_text(body)
    commands = {
        "sh": ["bash", "-e", "-o", "pipefail"],
        "python": [os.environ["ORRERY_PYTHON"]],
        "js": ["node"],
        # With the SDK among its classes, and trust in the server.
        "java": os.environ["ORRERY_JAVA"].split(),
        "go": ["go", "run", "-C", str(folder / "module"), "-mod=readonly"],
    }
    environment = os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "ORRERY_ENDPOINT": f"http://localhost:{PORT}/",
    }
    command = commands[language] + ["." if language == "go" else names[language]]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("place", "language", "body", "_"), RUN, ids=[block[0] for block in RUN])
def test_block(folder, place, language, body, _):
    done = run(folder, language, body)
    assert done.returncode == 0, f"{place}\n{done.stdout}\n{done.stderr}"
    assert '"code":' not in done.stdout, f"{place}: {done.stdout}"


def test_commands_are_in_blocks_that_are_run_or_marked():
    shown = [(place, COMMAND.search(body)) for place, language, body, _ in ALL if language in {"", "text"}]
    assert [(place, found[0]) for place, found in shown if found] == []


def test_what_is_not_run_says_why_and_is_counted():
    # Another marked block changes these numbers, so that its author sees how many there are.
    marked = [(block[0].split(":")[0], block[1]) for block in MARKED]
    assert {document: [name for where, name in marked if where == document] for document, _ in marked} == {
        "CONTRIBUTING.md": ["sh", "sh"],
        "README.md": ["sh", "csharp", "sh", "java", "python"],
        "conformance/README.md": ["sh"],
        "docs/access.md": ["sh"],
        "docs/advisor.md": ["sh"],
        "docs/bench.md": ["sh"],
        "docs/guides/README.md": ["sh"],
        "docs/guides/circular-buffer.md": ["python"],
        "docs/guides/linked-list-suffix.md": ["python"],
        "docs/guides/synthetic-keys.md": ["python", "python", "python"],
        "docs/management-api.md": ["sh", "sh"],
        "docs/telemetry.md": ["sh"],
        "docs/testcontainers.md": ["python", "js", "java", "go", "csharp", "csharp"],
        "docs/ways-in.md": ["sh", "sh", "sh", "sh", "yaml", "yaml"],
    }
    run = [block[0].split(":")[0] for block in RUN]
    assert {document: run.count(document) for document in run} == {
        "README.md": 5,
        "docs/advisor.md": 1,
        "docs/command-line.md": 3,
        "docs/management-api.md": 1,
        "docs/testcontainers.md": 4,
    }
