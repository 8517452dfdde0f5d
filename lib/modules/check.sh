#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# check.sh EXECUTABLE [MODULE SYMBOLS]...: fails when a module needs a symbol that
# neither the executable shows (src/gateway/module.list) nor a library has, does not
# have one of those that it is loaded for (SYMBOLS, with commas between), or does not
# say its version.
#
# It is the dynamic linker that looks, as for ldd -r, with the module put before the
# executable and nothing run: what it does not find here it would not find in dlopen().
set -u
exe=$1
shift
failed=0

complain() {
	echo "$*" >&2
	failed=1
}

while [ $# -ge 2 ]; do
	module=$(realpath "$1")
	found=$(LD_TRACE_LOADED_OBJECTS=1 LD_WARN=yes LD_BIND_NOW=yes LC_ALL=C \
		LD_PRELOAD=$module "$exe" 2>&1)
	case $found in
	*"$module ("*) ;;
	*) complain "$1 cannot be loaded: $found" ;;
	esac
	for symbol in $(echo "$found" | sed -n \
		-e 's/^undefined symbol: *\([^[:space:],]*\).*/\1/p' \
		-e 's/.*symbol lookup error: .*undefined symbol: *\([^[:space:],]*\).*/\1/p' \
		-e 's/^symbol \([^,]*\), version .* not defined .*/\1/p' | sort -u); do
		complain "$1 needs $symbol, which src/gateway/module.list does not show to modules and no library of the module has"
	done
	for symbol in busbar_plugin_interface $(echo "$2" | tr , ' '); do
		nm -D --defined-only "$module" | grep -q " $symbol\$" ||
			complain "$1 has no symbol $symbol"
	done
	shift 2
done
exit "$failed"
