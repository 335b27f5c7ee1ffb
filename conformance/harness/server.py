"""One server of ours, started for a suite and stopped by its process id."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request

from . import workspace

# The suites decide "this is an emulator" by exactly this address.
PORT = 8081
START_LIMIT_SECONDS = 120
ANSWER_LIMIT_SECONDS = 60
STOP_LIMIT_SECONDS = 20


class ServerFailed(Exception):
    """The server did not start, or something else holds its port."""


def binary():
    default = workspace.REPOSITORY / "target" / "release" / "orrery"
    path = pathlib.Path(os.environ.get("ORRERY_BIN", default))
    if not path.exists():
        raise ServerFailed(
            f"no server at {path}: build it (cargo build --release) or set ORRERY_BIN"
        )
    return path


class Server:
    def __init__(self, name, flags=(), port=PORT):
        self._name = name
        self._flags = list(flags)
        # With 0 the server takes any, and says which.
        self.port = port
        self._process = None
        self._restart = threading.Lock()
        # Where the server answers for tables, if it does.
        self.table_port = None
        self.log = workspace.LOGS / f"{name}.server.log"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_unused):
        self.stop()

    def start(self):
        _require_free_port(self.port)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        ready = threading.Event()
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [str(binary()), "serve", "--in-memory", "--nosql-port", str(self.port), *self._flags],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        threading.Thread(target=self._copy_output, args=(ready,), daemon=True).start()
        if not ready.wait(START_LIMIT_SECONDS):
            self.stop()
            raise ServerFailed(f"the server printed no ready line; see {self.log}")
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ready", timeout=ANSWER_LIMIT_SECONDS) as answer:
            if answer.status != 200:
                raise ServerFailed(f"GET /ready answered {answer.status}")

    def _copy_output(self, ready):
        with open(self.log, "ab") as log:
            for line in self._process.stdout:
                log.write(line)
                log.flush()
                if line.startswith(b"ORRERY READY"):
                    self.port = int(re.search(rb"port=(\d+)", line)[1])
                    table = re.search(rb"table=\S+:(\d+)/", line)
                    self.table_port = int(table[1]) if table else None
                    ready.set()

    def certificate(self):
        """The server's own certificate authority, saved where a client can be told to trust it."""
        path = workspace.CACHE / "server-ca.pem"
        address = f"http://127.0.0.1:{self.port}/_explorer/emulator.pem"
        with urllib.request.urlopen(address, timeout=ANSWER_LIMIT_SECONDS) as answer:
            path.write_bytes(answer.read())
        return path

    def alive(self):
        return self._process is not None and self._process.poll() is None

    def restart_if_dead(self):
        """A crash must cost the tests of one group, not of all that follow."""
        with self._restart:
            if self.alive():
                return False
            self.start()
            return True

    def stop(self):
        if not self.alive():
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            workspace.say(f"{self._name}: the server ignored SIGTERM, killing it")
            self._process.kill()
            self._process.wait()


def _require_free_port(port):
    if port == 0:
        return
    deadline = time.monotonic() + 5
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return
        if time.monotonic() > deadline:
            raise ServerFailed(f"port {port} is taken; the suites insist on it, so stop its owner")
        time.sleep(0.2)
