#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# at_host.sh PROGRAM ARGUMENTS: runs the program at the port of the first host of a fabric, which has LID 1, and
# ends as it does. BUSBAR is the command.
set -u
name=adapter-$$
"$BUSBAR" fabric run single:2 --name "$name" >"/tmp/$name" 2>&1 &
fabric=$!
trap 'kill "$fabric" 2>/dev/null; wait "$fabric" 2>/dev/null; rm -f "/tmp/$name"' EXIT
for _ in $(seq 300); do
	grep -q '^fabric ' "/tmp/$name" && break
	kill -0 "$fabric" 2>/dev/null || break
	sleep 0.1
done
grep -q '^fabric ' "/tmp/$name" || { cat "/tmp/$name"; exit 1; }
# Names of fabrics belong to the network namespace.
IN_NETWORK=1 BUSBAR_FABRIC=$name/host-1 ADAPTER_TRANSPORT=fabric "$@"
