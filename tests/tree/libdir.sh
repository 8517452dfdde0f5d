#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# libdir.sh SOURCE: libraries are installed where the system's loader looks, also where
# there is no dpkg-architecture to ask.
set -eu
script=${1:?the source folder}/scripts/libdir.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# expect WANTED ROOT: what is printed with the compiler of the test.
expect() {
	got=$(CC="$tmp/cc" PATH="$tmp/bin" /bin/sh "$script" "$2")
	[ "$got" = "$1" ] && return
	echo "failed: \"$got\" and not \"$1\" where $3"
	exit 1
}

mkdir -p "$tmp/bin" "$tmp/debian/usr/lib/some-linux-gnu" "$tmp/fedora/usr/lib64"
printf '#!/bin/sh\necho some-linux-gnu\n' >"$tmp/cc"
chmod +x "$tmp/cc"
expect lib/some-linux-gnu "$tmp/debian" "the system has folders for architectures"
expect '' "$tmp/fedora" "the compiler knows one, the system has none"
printf '#!/bin/sh\necho\n' >"$tmp/cc"
expect '' "$tmp/debian" "the compiler knows none"
rm "$tmp/cc"
expect '' "$tmp/debian" "there is no compiler"
