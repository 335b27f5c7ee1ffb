"""Splits and merges under a mixed load of official SDK clients, which must not notice.

Usage: main.py [--seconds S] [--splits N] [--merges N] [--kills K] [--java COMMAND]

Starts the server, the clients (worker.py, worker.mjs, follower.py, and Worker.java in both modes) and meanwhile has partitions split on
request, by size and by throughput, and merge. Each client checks what it sees at once; in the end all models, a
full query, the change feed and `orrery verify` are compared.
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import pathlib
import random
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from email.utils import formatdate

from azure.cosmos import CosmosClient, PartitionKey, exceptions

HERE = pathlib.Path(__file__).parent
KEY = os.environ["ORRERY_KEY"]
PARTITION_BYTES = 400_000
# Seconds until something hangs. What only takes its time on a busy machine is no fault.
PATIENCE = 600
# Systems choose ports above these for connections, so that none of those takes the port of a server that is down.
PORTS = range(20_000, 32_000)
# Attempts to get the port, a second apart.
STARTS = 60


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Server:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.port = next(port for port in random.sample(PORTS, len(PORTS)) if is_free(port))
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.https = f"https://localhost:{self.port}/"
        self.process = None

    def launch(self):
        """The first line that a new process says; nothing when it has ended."""
        command = [self.binary, "serve", "--nosql-port", str(self.port), "--data-dir", self.folder, "--no-throttle"]
        command += ["--partition-bytes", str(PARTITION_BYTES), "--log", "warn", "--merge-after-seconds", "1"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        return self.process.stdout.readline()

    def start(self):
        """Starts it on the port that clients know. Only where another program has that port, it is tried again."""
        for _attempt in range(STARTS):
            line = self.launch()
            if line:
                break
            # Only then another program holds the port.
            self.process.wait()
            if is_free(self.port):
                break
            time.sleep(1)
        assert "READY" in line, f"the server did not start: {line!r}"

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def manage(self, verb, path, body=None):
        """A request of the management API, signed as any other."""
        path, date = f"_orrery/{path}", formatdate(usegmt=True)
        text = f"{verb.lower()}\norrery\n{path}\n{date.lower()}\n\n"
        digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        token = urllib.parse.quote(f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}", safe="")
        data = json.dumps(body).encode() if body is not None else None
        headers = {"authorization": token, "x-ms-date": date, "x-ms-version": "2020-07-15"}
        request = urllib.request.Request(f"{self.endpoint}/{path}", data, headers, method=verb)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)


class Operator:
    """Who splits and merges, and kills."""

    def __init__(self, server, container, chance):
        self.server, self.container, self.chance = server, container, chance
        self.splits = self.merges = self.kills = 0
        self.known = {row["id"] for row in self.ranges()}

    def done(self):
        return f"{self.splits} splits and {self.merges} merges on request, {self.kills} kills"

    def has_more_to_do(self, wanted):
        return self.splits < wanted.splits or self.merges < wanted.merges or self.kills < wanted.kills

    def ranges(self):
        link = self.container.container_link
        rows = list(self.container.client_connection._ReadPartitionKeyRanges(link))
        return sorted(rows, key=lambda row: row["minInclusive"])

    def base(self):
        _, database, _, container = self.container.container_link.split("/")
        return f"dbs/{database}/colls/{container}/partitions"

    def look(self):
        """Counts what others have split or merged since the last look."""
        rows = self.ranges()
        new = [row for row in rows if row["id"] not in self.known]
        self.known |= {row["id"] for row in rows}
        return rows, new

    def step(self):
        rows, _ = self.look()
        if len(rows) > 5 or len(rows) > 2 and self.chance.random() < 0.25:
            place = self.chance.randrange(len(rows) - 1)
            pair = {"left": rows[place]["id"], "right": rows[place + 1]["id"]}
            self.ask("merge", pair)
        else:
            row = self.chance.choice(rows)
            self.ask(f"{row['id']}/split", {"children": self.chance.choice([2, 2, 3])})

    def ask(self, path, body):
        try:
            self.server.manage("POST", f"{self.base()}/{path}", body)
        except urllib.error.HTTPError as error:
            # A partition may be gone, or too full to be merged, by the time that it is asked for.
            if error.code not in (400, 409, 410, 429, 503):
                raise RuntimeError(f"{path}: {error.code} {error.read()}") from error
            return
        self.splits += path.endswith("split")
        self.merges += path == "merge"


def start_clients(server, container, options, started):
    """Adds them to those that are started, whom the caller ends whatever happens."""
    _, database, _, name = container.container_link.split("/")
    mode = "kills" if options.kills else "calm"
    environment = {**os.environ, "ORRERY_ENDPOINT": server.endpoint}
    commands = []
    for number in range(options.java_clients if options.java else 0):
        for connection in ("direct", "gateway"):
            commands.append([*shlex.split(options.java), f"java-{connection}{number}", database, name, mode])
    for number in range(options.clients):
        python = [sys.executable, str(HERE / "worker.py"), f"py{number}", database, name, mode]
        node = ["node", os.path.join(options.node_folder, "worker.mjs"), f"js{number}", database, name, mode]
        commands += [python, node]
    commands.append([sys.executable, str(HERE / "follower.py"), "follower", database, name, mode])
    pipe = subprocess.PIPE
    for command in commands:
        connection = next((word for word in ("direct", "gateway") if f"java-{word}" in command[-4]), None)
        of_java = {"ORRERY_ENDPOINT": server.https, "ORRERY_MODE": connection} if connection else {}
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**environment, **of_java}))
    # Who has never reached the server does not know that it will come back.
    for client in started:
        line = client.stdout.readline()
        assert line.strip() == "ready", f"a client did not begin: {client.args}: {line}"


def gather(client, patience):
    """What a client says in the end; a client that is wrong has said so and ended."""
    out, _ = client.communicate(timeout=patience)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert lines, f"a client said nothing: {client.args}"
    assert "wrong" not in lines[-1], lines[-1]
    return lines[-1]


def compare(container, reports):
    """Everything that clients know against everything that is there."""
    follower = next(report for report in reports if "seen" in report)
    rows = list(container.query_items("SELECT c.pk, c.id, c.n FROM c", enable_cross_partition_query=True))
    there = {f"{row['pk']}|{row['id']}": row["n"] for row in rows}
    assert len(there) == len(rows), f"{len(rows)} rows of {len(there)} items"
    for report in reports:
        for place, allowed in report.get("items", {}).items():
            found = there.pop(place, None)
            assert found in allowed, f"{place} is {found}, and must be one of {allowed}"
            if found is not None:
                assert follower["seen"].get(place) == found, f"the feed ended with {follower['seen'].get(place)} of {place}"
    assert not there, f"nobody wrote {there}"
    return len(rows), follower["ops"]


def run(options):
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.binary, os.path.join(folder, "data"))
        server.start()
        clients = []
        try:
            client = CosmosClient(server.endpoint, KEY)
            database = client.create_database("elastic")
            container = database.create_container("items", PartitionKey("/pk"), offer_throughput=1000)
            operator = Operator(server, container, chance)
            start_clients(server, container, options, clients)
            rounds = 0
            end = time.time() + options.seconds
            while time.time() < end or operator.has_more_to_do(options):
                assert time.time() < end + 2 * PATIENCE, f"{operator.done()} took too long"
                ended = [client for client in clients if client.poll() is not None]
                for client in ended:
                    raise AssertionError(f"a client ended: {client.stdout.read()}")
                rounds += 1
                if operator.kills < options.kills and rounds % 4 == 0:
                    kill_in_a_split(server, operator, chance)
                elif rounds % 6 == 0:
                    scale(container, chance.choice([1000, 11000, 21000, 31000]))
                else:
                    operator.step()
                time.sleep(max(chance.random() * options.pause, calm(container)))
            for client in clients[:-1]:
                client.stdin.close()
            reports = [report(client) for client in clients[:-1]]
            clients[-1].stdin.close()
            reports.append(report(clients[-1]))
            items, changes = compare(container, reports)
            partitions = len(operator.ranges())
            server.stop()
            checked = subprocess.run([options.binary, "verify", "--data-dir", server.folder], capture_output=True, text=True)
            assert checked.returncode == 0, checked.stdout + checked.stderr
            calls = sum(report["ops"] for report in reports[:-1])
            reread = reports[-1]["reread"]
            print(
                f"elastic: {len(clients)} clients, {calls} operations, {operator.done()}, "
                f"{len(operator.known)} partitions were there, {partitions} in the end, "
                f"{items} items, {changes} changes seen; nothing lost, nothing twice; "
                f"{reread} changes that the Python SDK read again by itself; {longest_waits(reports)}"
            )
        finally:
            for process in clients:
                if process.poll() is None:
                    process.kill()
            if server.process.poll() is None:
                server.stop(signal.SIGKILL)


def longest_waits(reports):
    """For each kind of client the longest time in which one of them got nothing done."""
    longest = {}
    for report in reports:
        if "longest_ms" in report:
            kind = report["worker"].rstrip("0123456789")
            longest[kind] = max(longest.get(kind, 0), report["longest_ms"])
    return "the longest time in which nothing succeeded: " + ", ".join(f"{kind} {ms} ms" for kind, ms in longest.items())


def calm(container):
    """Seconds in which every client gets a query done, by a query like theirs.

    The Python SDK gives up a page at its fourth 410. So changes must be further apart than a page takes, and how long
    that is depends on the machine and on what else it does.
    """
    text = "SELECT c.pk, c.id, c.n FROM c WHERE c.owner = 'py0' ORDER BY c.n"
    started = time.monotonic()
    list(container.query_items(text, enable_cross_partition_query=True, max_item_count=7))
    return 4 * (time.monotonic() - started)


def scale(container, throughput):
    """Another change may be in progress, which is no fault."""
    try:
        container.replace_throughput(throughput)
    except exceptions.CosmosHttpResponseError as error:
        if error.status_code != 423:
            raise


def report(client):
    client.stdin = None
    return gather(client, PATIENCE)


def kill_in_a_split(server, operator, chance):
    """Asks for a split and kills the server at some moment of it."""
    rows = operator.ranges()
    row = chance.choice(rows)
    asking = threading.Thread(target=quietly, args=(server, f"{operator.base()}/{row['id']}/split"))
    asking.start()
    time.sleep(chance.random() * 0.03)
    server.stop(signal.SIGKILL)
    asking.join()
    server.start()
    operator.kills += 1


def quietly(server, path):
    try:
        server.manage("POST", path, {"children": 2})
    except (OSError, urllib.error.URLError):
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=os.environ.get("ORRERY_BIN", "target/release/orrery"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--merges", type=int, default=2)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--clients", type=int, default=4, help="of each language")
    parser.add_argument("--java", help="the command of a Java worker")
    parser.add_argument("--java-clients", type=int, default=2, help="in each mode")
    parser.add_argument("--node-folder", default=str(HERE), help="where worker.mjs finds its SDK")
    parser.add_argument("--pause", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args()
    print(f"elastic: --seed {chosen.seed} repeats the choices", flush=True)
    run(chosen)
