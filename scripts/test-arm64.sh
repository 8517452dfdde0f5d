#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# test-arm64.sh [TEST...]: builds the adapter for 64-bit ARM beside the usual build and
# runs its programs under qemu-user.
#
# It checks that the code compiles and which ways it takes there: no time-stamp counter,
# exchanges that are no fences, other system calls. It does not check the order of memory
# accesses: on an x86 host qemu's threads have that of x86. For the order there are the
# programs interleave-*, on any machine: they run the same sources in the memory of C.
# It is slow; qemu-user has no process_vm_readv and no robust lists, so peers' memory
# is reached by other ways and a sudden end is noticed later. Programs that stop a peer
# early may fail on a busy machine: run them again.
#
# Needs (Debian): gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user, and what the usual
# build needs; libraries for ARM are not needed, as the gateway is not built.
# BUILD_DIR: where to build, "build-arm64" if not set.
set -eu

cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build-arm64}
root=/usr/aarch64-linux-gnu
run="qemu-aarch64 -L $root"

if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
	sed -n '4,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
	exit 0
fi
for tool in aarch64-linux-gnu-gcc qemu-aarch64 meson ninja; do
	command -v "$tool" >/dev/null || {
		echo "$tool is missing: see \"$0 --help\"" >&2
		exit 77
	}
done

if [ ! -f "$build/build.ninja" ]; then
	mkdir -p "$build"
	cat >"$build/cross.txt" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '$root']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
	meson setup "$build" --cross-file "$build/cross.txt" >"$build/setup.log" ||
		{ tail -n 20 "$build/setup.log" >&2; exit 1; }
fi

if [ $# -eq 0 ]; then
	set -- hca-elide hca-elide-window interleave-hazard interleave-elision \
		adapter-data adapter-promise adapter-retry adapter-status adapter-states \
		adapter-atomic adapter-uc adapter-ud adapter-srq \
		adapter-events adapter-death adapter-threads
fi
targets="lib/libibverbs.so.1"
for test in "$@"; do
	case $test in
	hca-*) targets="$targets tests/unit/hca/$test" ;;
	interleave-*) targets="$targets tests/unit/interleave/$test" ;;
	*) targets="$targets tests/process/adapter/$test" ;;
	esac
done
# shellcheck disable=SC2086 # a list
ninja -C "$build" --quiet $targets

failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for target in $targets; do
	[ "$target" = lib/libibverbs.so.1 ] && continue
	if BUSBAR_DEVICES=soft ADAPTER_TRANSPORT=shm $run "$build/$target" >"$log" 2>&1; then
		echo "ok: $target"
	else
		echo "failed: $target"
		grep -v '^ok' "$log" | tail -n 20
		failed=1
	fi
done
exit "$failed"
