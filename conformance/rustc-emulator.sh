#!/bin/sh
# Used by cargo as RUSTC_WORKSPACE_WRAPPER: switches the suite's tests for emulators and those of splits on. A flag in RUSTFLAGS
# would do the same, but would rebuild every dependency that the SDK scenarios have built already.
exec "$@" --cfg 'test_category="emulator"' --cfg 'test_category="split"'
