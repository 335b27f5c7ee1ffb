"""The examples of the guides do what the guides say, each as a program of its own."""

import pathlib
import re
import subprocess
import sys

import pytest

GUIDES = pathlib.Path(__file__).parents[3] / "docs" / "guides"
EXAMPLES = sorted(path.stem for path in (GUIDES / "examples").glob("*.py") if path.stem != "common")


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs(example):
    script = GUIDES / "examples" / f"{example}.py"
    ran = subprocess.run([sys.executable, "-W", "ignore", script], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # Each says what it saw; nothing to say means that nothing was shown.
    assert ran.stdout.strip(), ran.stderr


def test_each_guide_has_its_example_and_each_link_leads_somewhere():
    guides = [path for path in GUIDES.glob("*.md") if path.name != "README.md"]
    assert sorted(path.stem.replace("-", "_") for path in guides) == EXAMPLES
    for guide in [*guides, GUIDES / "README.md", GUIDES.parent / "advisor.md"]:
        for link in re.findall(r"\]\(([^)#]+)\)", guide.read_text()):
            assert (guide.parent / link).exists(), f"{guide.name}: {link}"
