# What the packaging scripts share; they source this file with the binary in $1 and the output folder in $2.

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
binary=${1:?usage: $0 BINARY OUTPUT-FOLDER}
out=${2:?usage: $0 BINARY OUTPUT-FOLDER}
mkdir -p "$out"
out=$(CDPATH= cd -- "$out" && pwd)

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
case $(readelf -h "$binary" | sed -n 's/^ *Machine: *//p') in
    *X86-64*) arch=x64 deb_arch=amd64 machine=x86_64 ;;
    *AArch64*) arch=arm64 deb_arch=arm64 machine=aarch64 ;;
    *) echo "packaging: $binary is for no machine that is known here" >&2; exit 2 ;;
esac
# The newest libc that the binary asks for; nothing where it is static.
libc=$(readelf -V "$binary" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)
# The same commit makes the same files.
moment=$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy of the binary without what debuggers need. The tool of this machine knows no other machine's binaries.
stripped() {
    tool=strip
    [ "$(uname -m)" = "$machine" ] || tool=$machine-linux-gnu-strip
    command -v "$tool" >/dev/null || { echo "packaging: $tool is missing; install binutils-$machine-linux-gnu" >&2; exit 2; }
    "$tool" -o "$1" "$binary"
    chmod 755 "$1"
}

# What shells and manuals need to know, told by the binary itself, or where this machine cannot run it by its own build.
extras() {
    teller=$binary
    "$teller" version >/dev/null 2>&1 || teller=$root/target/release/orrery
    "$teller" version >/dev/null 2>&1 || { echo "packaging: $binary does not run here, and there is no build that does: no completions and manual pages" >&2; exit 2; }
    mkdir -p "$1/completions" "$1/man"
    for shell in bash zsh fish; do
        "$teller" completions "$shell" >"$1/completions/orrery.$shell"
    done
    "$teller" man --out "$1/man"
}
