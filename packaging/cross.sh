#!/bin/sh
# Builds the server for another target than this machine's own, with the C compiler of that target.
# Usage: packaging/cross.sh x86_64-unknown-linux-musl | aarch64-unknown-linux-gnu | aarch64-unknown-linux-musl
set -eu
target=${1:?usage: $0 TARGET}
case $target in
    x86_64-unknown-linux-musl) compiler=musl-gcc package=musl-tools ;;
    aarch64-unknown-linux-gnu) compiler=aarch64-linux-gnu-gcc package=gcc-aarch64-linux-gnu ;;
    aarch64-unknown-linux-musl) compiler=aarch64-linux-musl-gcc package='a cross compiler for musl' ;;
    *) echo "packaging: no way to build for $target is known here" >&2; exit 2 ;;
esac
command -v "$compiler" >/dev/null || { echo "packaging: $compiler is missing; install $package" >&2; exit 2; }
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target"

upper=$(printf %s "$target" | tr 'a-z-' 'A-Z_')
lower=$(printf %s "$target" | tr - _)
export "CC_$lower=$compiler" "CARGO_TARGET_${upper}_LINKER=$compiler"
exec cargo build --release --locked --package orrery --target "$target"
