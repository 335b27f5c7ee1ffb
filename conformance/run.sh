#!/bin/sh
# Runs the outside suites against a server of ours. Usage: conformance/run.sh [quick|full] [options]
# Everything that is downloaded or built lands in .cache/conformance of this repository.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
python=${PYTHON:-python3}
"$python" "$here/test_harness.py" 2>/dev/null || { "$python" "$here/test_harness.py"; exit 2; }
exec "$python" "$here/run.py" "$@"
