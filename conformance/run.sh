#!/bin/sh
# Runs the outside suites against a server of ours. Usage: conformance/run.sh [quick|full] [options]
# Everything that is downloaded or built lands in .cache/conformance of this repository.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
exec "${PYTHON:-python3}" "$here/run.py" "$@"
