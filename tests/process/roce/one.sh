#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# one.sh MTU IP-VERSION some|none|any PROGRAM [ARGUMENT...]: a program on a host of its own,
# whose interfaces have this MTU, and whether IP fragments were made.
. "$(dirname "$0")/network.sh"
own_network "$@"
mtu=$1 version=$2 cut=$3
shift 3
one_host "$mtu" "$version"
"$@"
[ "$cut" = any ] || expect_fragments "$cut"
