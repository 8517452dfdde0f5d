#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Where libraries belong below the prefix, for `meson setup --libdir`: the folder of
# the compiler's architecture where the system has such folders, which is where its
# loader and pkg-config look (Debian: lib/x86_64-linux-gnu). Else nothing: meson knows
# the others. It would ask dpkg-architecture, which is not there on a small Debian.
#
#   libdir.sh [ROOT]   ROOT: the root folder of the system, for the test
arch=$(${CC:-cc} -print-multiarch 2>/dev/null) || exit 0
[ -n "$arch" ] && [ -d "${1:-}/usr/lib/$arch" ] && echo "lib/$arch"
exit 0
