#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# symbols.sh LIBRARY: our libibumad.so.3 has each symbol of the system's, with its version.
set -u
ours=${1:?libibumad.so.3}
system=
for at in /usr/lib/"$(uname -m)"-linux-gnu/libibumad.so.3 /usr/lib64/libibumad.so.3 /usr/lib/libibumad.so.3; do
	[ -z "$system" ] && [ -e "$at" ] && system=$at
done
[ -n "$system" ] || {
	echo 'skipped: no libibumad.so.3 of the system'
	exit 77
}
symbols() {
	nm -D --defined-only --with-symbol-versions "$1" | sed -n 's/.* T //p' | sed 's/@@/@/' | sort
}
missing=$(symbols "$system" | grep -vxF "$(symbols "$ours")")
[ -z "$missing" ] || {
	echo "failed: missing: $missing"
	exit 1
}
