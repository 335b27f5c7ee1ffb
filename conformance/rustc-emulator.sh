#!/bin/sh
# Used by cargo as RUSTC_WORKSPACE_WRAPPER: switches the suite's emulator tests on. A flag in RUSTFLAGS
# would do the same, but would rebuild every dependency that the SDK scenarios have built already.
exec "$@" --cfg 'test_category="emulator"'
