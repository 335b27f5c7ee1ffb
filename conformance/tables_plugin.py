"""pytest plugin for the suite of tables: leads it to our server, and does not let it wait for a cloud.

`TABLES_PORT` says where the server answers.
"""

import os
import socket
import time

import azure.identity

from development_token import DevelopmentCredential

SUFFIX = ".table.cosmos.azure.com"
# A few tests dial an account of Azure Storage. Nothing is sent to the cloud.
FOREIGN_SUFFIX = ".table.core.windows.net"
# Tests wait for a second region to follow, and clients before they try again.
SLEEP_MAX_SECONDS = 0.05

_look_up = socket.getaddrinfo
_sleep = time.sleep


def _look_up_ours(host, port, *arguments, **options):
    name = host.decode() if isinstance(host, bytes) else host
    if name is not None and name.endswith(SUFFIX):
        host, port = "127.0.0.1", int(os.environ["TABLES_PORT"])
    if name is not None and name.endswith(FOREIGN_SUFFIX):
        raise socket.gaierror(socket.EAI_NONAME, f"{name} leads nowhere")
    return _look_up(host, port, *arguments, **options)


def _sleep_briefly(seconds):
    _sleep(min(seconds, SLEEP_MAX_SECONDS))


def pytest_configure():
    socket.getaddrinfo = _look_up_ours
    time.sleep = _sleep_briefly
    azure.identity.DefaultAzureCredential = DevelopmentCredential
