"""Counts the requests that each SDK sends for a hundred point reads and a hundred writes, as the server sees them.

Each program opens a client, makes a database and a container, reads and writes one item, and says `ready`: that is its
start. Then it does what it is told, `reads` or `writes`, a hundred of them one after the other, and says `done`. An SDK
that sends more than one request for each has misunderstood something that we told it, and is that much slower.

A program that cannot be told has a number behind its name: so many requests are all that it may send from its start to
its end.

Usage: main.py URL NAME=COMMAND... NAME:MOST=COMMAND...
"""

import re
import subprocess
import sys
import urllib.request

OPERATIONS = 100
PATIENCE_SECONDS = 120


def requests_so_far(url):
    """All requests that the server has answered. That of this function itself is not among them."""
    with urllib.request.urlopen(url + "metrics", timeout=30) as answer:
        text = answer.read().decode()
    return sum(int(count) for count in re.findall(r"^orrery_requests_total\{[^}]*\} (\d+)$", text, re.MULTILINE))


class Program:
    """One SDK's program, which is told what to do line by line."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, shell=True, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait_for(self, word):
        for line in self.process.stdout:
            if line.strip() == word:
                return
        sys.exit(f"requests: {self.name} ended before it was {word}")

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        if self.process.wait(PATIENCE_SECONDS) != 0:
            sys.exit(f"requests: {self.name} ended with {self.process.returncode}")


def count(url, name, command):
    """The requests of the start, of the reads and of the writes."""
    counts = [requests_so_far(url)]
    program = Program(name, command)
    try:
        program.wait_for("ready")
        counts.append(requests_so_far(url))
        for word in ("reads", "writes"):
            program.tell(word)
            program.wait_for("done")
            counts.append(requests_so_far(url))
        program.end()
    finally:
        program.process.kill()
    return [after - before for before, after in zip(counts, counts[1:])]


def count_all(url, name, command):
    """All requests of a program that cannot be told."""
    before = requests_so_far(url)
    done = subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_SECONDS)
    if done.returncode != 0:
        sys.exit(f"requests: {name} ended with {done.returncode}")
    return requests_so_far(url) - before


def main(url, programs):
    idle = [requests_so_far(url) for _ in range(2)]
    own = idle[1] - idle[0]
    failed = False
    for text in programs:
        name, command = text.split("=", 1)
        if ":" in name:
            name, most = name.split(":")
            sent = count_all(url, name, command) - own
            verdict = "ok" if sent <= int(most) else "FAILED"
            failed = failed or verdict != "ok"
            print(f"requests: {name}: {sent} of {most} from start to end: {verdict}", flush=True)
            continue
        start, reads, writes = (counted - own for counted in count(url, name, command))
        verdict = "ok" if reads == OPERATIONS and writes == OPERATIONS else "FAILED"
        failed = failed or verdict != "ok"
        print(f"requests: {name}: {start} to start, {reads} for {OPERATIONS} reads, {writes} for {OPERATIONS} writes: {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
