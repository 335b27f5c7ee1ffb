# What the packaging scripts share; they source this file with the binary in $1 and the output folder in $2.

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
binary=${1:?usage: $0 BINARY OUTPUT-FOLDER}
out=${2:?usage: $0 BINARY OUTPUT-FOLDER}
mkdir -p "$out"
out=$(CDPATH= cd -- "$out" && pwd)

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
case $(readelf -h "$binary" | sed -n 's/^ *Machine: *//p') in
    *X86-64*) arch=x64 deb_arch=amd64 ;;
    *AArch64*) arch=arm64 deb_arch=arm64 ;;
    *) echo "packaging: $binary is for no machine that is known here" >&2; exit 2 ;;
esac
# The newest libc that the binary asks for; nothing where it is static.
libc=$(readelf -V "$binary" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)
# The same commit makes the same files.
moment=$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy of the binary without what debuggers need.
stripped() {
    strip -o "$1" "$binary"
    chmod 755 "$1"
}

# What shells and manuals need to know, told by the binary itself; nothing where this machine cannot run it.
extras() {
    "$binary" version >/dev/null 2>&1 || { echo "packaging: $binary does not run here: no completions and manual pages" >&2; return 0; }
    mkdir -p "$1/completions" "$1/man"
    for shell in bash zsh fish; do
        "$binary" completions "$shell" >"$1/completions/orrery.$shell"
    done
    "$binary" man --out "$1/man"
}
