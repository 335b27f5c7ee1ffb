#!/bin/sh
# Makes a Debian package with a systemd unit from a binary. Data lies in /var/lib/orrery, options in /etc/default/orrery.
# Usage: packaging/deb.sh BINARY OUTPUT-FOLDER
set -eu
. "$(dirname -- "$0")/common.sh"

tree=$work/tree
install -d "$tree/DEBIAN" "$tree/usr/bin" "$tree/lib/systemd/system" "$tree/etc/default" "$tree/usr/share/doc/orrery"
stripped "$tree/usr/bin/orrery"
install -m 644 "$root/packaging/orrery.service" "$tree/lib/systemd/system/"
install -D -m 644 "$root/packaging/orrery.sysusers" "$tree/usr/lib/sysusers.d/orrery.conf"
install -m 644 "$root/packaging/orrery.default" "$tree/etc/default/orrery"
install -m 644 "$root/README.md" "$root/CHANGELOG.md" "$tree/usr/share/doc/orrery/"
cat "$root/LICENSE-MIT" "$root/LICENSE-APACHE" >"$tree/usr/share/doc/orrery/copyright"
extras "$work/extras"
install -d "$tree/usr/share/man/man1" "$tree/usr/share/bash-completion/completions" \
    "$tree/usr/share/zsh/vendor-completions" "$tree/usr/share/fish/vendor_completions.d"
for page in "$work"/extras/man/*.1; do
    gzip -9n <"$page" >"$tree/usr/share/man/man1/${page##*/}.gz"
done
install -m 644 "$work/extras/completions/orrery.bash" "$tree/usr/share/bash-completion/completions/orrery"
install -m 644 "$work/extras/completions/orrery.zsh" "$tree/usr/share/zsh/vendor-completions/_orrery"
install -m 644 "$work/extras/completions/orrery.fish" "$tree/usr/share/fish/vendor_completions.d/orrery.fish"
echo /etc/default/orrery >"$tree/DEBIAN/conffiles"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: orrery
Version: $version
Architecture: $deb_arch
Maintainer: the Orrery project
Section: database
Priority: optional
Installed-Size: $(du -sk "$tree" | cut -f 1)
${libc:+Depends: libc6 (>= $libc), libgcc-s1
}Description: partitioned database that speaks the Azure Cosmos DB protocol
 One binary: on a laptop or in CI it replaces the emulators, and it is built to be
 the open server for applications written for Cosmos DB.
CONTROL
for script in postinst prerm postrm; do
    install -m 755 "$root/packaging/$script" "$tree/DEBIAN/$script"
done
package=$out/orrery_${version}_$deb_arch.deb
SOURCE_DATE_EPOCH=$moment dpkg-deb --root-owner-group --build "$tree" "$package" >/dev/null
(cd "$out" && sha256sum "${package##*/}" >"${package##*/}.sha256")
echo "$package: $(wc -c <"$package") bytes"
