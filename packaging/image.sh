#!/bin/sh
# Puts together the file tree of the image (see Dockerfile) from an archive, without a container engine: for other builders, and
# to run it in a chroot. Usage: packaging/image.sh ARCHIVE FOLDER
set -eu
archive=${1:?usage: $0 ARCHIVE FOLDER}
tree=${2:?usage: $0 ARCHIVE FOLDER}
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT

mkdir -p "$tree/data" "$tree/tmp"
tar -xzf "$archive" -C "$unpacked" --strip-components=1
if readelf -l "$unpacked/orrery" | grep -q INTERP; then
    echo "packaging: the binary of $archive is not static, and the image has no libc" >&2
    exit 2
fi
cp "$unpacked/orrery" "$unpacked"/LICENSE-* "$tree/"
chmod 1777 "$tree/tmp"
chmod 700 "$tree/data"
# Only root can give files away; elsewhere the builder of the image does it.
[ "$(id -u)" -ne 0 ] || chown 65532:65532 "$tree/data"
echo "$tree: $(du -sk "$tree" | cut -f 1) KiB"
