#!/bin/sh
# Makes orrery-VERSION-linux-ARCH.tar.gz and its checksum from a binary.
# Usage: packaging/archive.sh BINARY OUTPUT-FOLDER
set -eu
. "$(dirname -- "$0")/common.sh"

name=orrery-$version-linux-$arch
mkdir "$work/$name"
stripped "$work/$name/orrery"
cp "$root/README.md" "$root/CHANGELOG.md" "$root/COMPAT.md" "$root/SECURITY.md" "$root"/LICENSE-* "$work/$name/"
cp -R "$root/docs" "$work/$name/docs"
extras "$work/$name"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$moment" -C "$work" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$out/$name.tar.gz: $(wc -c <"$out/$name.tar.gz") bytes, $([ -n "$libc" ] && echo "needs glibc $libc" || echo static)"
