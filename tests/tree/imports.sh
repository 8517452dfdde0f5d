#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# imports.sh LIBRARY...: none of them calls the C library's functions on sockets and other
# descriptors, or its mremap(), which a preloaded library may have replaced:
# src/util/kernel_calls.c has all that they need.
set -u
failed=0
names='socket|bind|connect|listen|accept4?|(__)?(send|recv)(to|from|m?msg)?(_chk)?|sendfile(64)?
(__)?(read|write)v?(_chk)?|(__)?p?poll(_chk)?|p?select|epoll_.*|fcntl(64)?|ioctl
close|close_range|shutdown|dup[23]?|[gs]etsockopt|getsockname|getpeername|mremap'
for library; do
	imported=$(nm -D --undefined-only "$library" |
		awk '{ sub(/@.*/, "", $2); print $2 }' | grep -xE "$names" | tr '\n' ' ')
	[ -n "$(nm -D --undefined-only "$library")" ] || imported="(nm shows nothing)"
	[ -z "$imported" ] || {
		echo "failed: $library imports $imported"
		failed=1
	}
done
exit "$failed"
