#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# sanitized-tests.sh SANITIZERS SECONDS [OPTIONS of run-tests.py]: builds with
# SANITIZERS (address,undefined or thread) and runs the tests that choose-tests.py chooses:
# as many as take SECONDS together (0: no limit), by the durations that the last run in the
# folder "build" has measured. Only the programs and libraries of these tests are built.
#
# sanitized-tests.sh SANITIZERS --build: only builds what is needed whatever tests are chosen. It
# may be ended at any moment; the next call goes on with it.
set -e
cd "$(dirname "$0")/.."
what=$1 seconds=$2
shift 2
dir=build-${what%%,*}

# Leaks are part of what ASan finds; the first error ends the test.
# The alternate signal stack of a thread that ends confuses gcc 12's ASan. And gcc 12's sanitizers
# take a thread-local block at the beginning of a page for one with a header of old versions of
# glibc, and read it; such blocks come from malloc(), which they know.
# A check of UBSan that fails ends in SIGILL, whose place in the source ASan prints.
export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:use_sigaltstack=0:intercept_tls_get_addr=0
ASAN_OPTIONS+=:handle_sigill=1
# Without the second of sleep at the end of each process that is there to find races at exit.
export TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=50:intercept_tls_get_addr=0
# Random tests run this long, in place of 20 s.
export RANDOM_SECONDS=${RANDOM_SECONDS:-8}

# Other people's programs are not built with the sanitizers and cannot load
# libraries that are; so their suites are left out, and the suite of the libraries' symbols.
without=programs,peer,abi,qemu,loop,loop-faults
threads=()
# Nothing for ThreadSanitizer to find: programs with one thread, parsers,
# other ways into the memory of another process, and the same threads once more with
# packets that are lost. And libraries with threads that it does not see.
if [ "$what" = thread ]; then
	without=$without,one-thread,fuzz,ways,roce-faults,shm-faults,library-threads
	threads=(--threads-in build)
fi

# -Og compiles in four fifths of the time of -O1, and the programs are as fast. gcc 12 warns
# falsely with the sanitizers; its warnings are errors in the other builds. UBSan's checks trap: its
# library has 6 MB of variables, which LeakSanitizer would read at the end of each process.
trap=-fsanitize-undefined-trap-on-error
options=(-Db_sanitize="$what" -Db_lundef=false -Doptimization=g
	"-Dc_args=-g1 -w $trap" "-Dc_link_args=$trap" -Dwerror=false)

# Until it is gone, a build that goes on in the background keeps others out of the folder.
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
if [ "$(cat "$dir/.configured" 2>/dev/null)" != "${options[*]}" ]; then
	rm -rf "$dir/build.ninja" "$dir/meson-private"
	meson setup "$dir" "${options[@]}" >/dev/null
	echo "${options[*]}" >"$dir/.configured"
fi

# Builds the programs of the tests that the file names.
build_for() {
	scripts/choose-tests.py "$dir" --targets "$1" >"$dir/targets"
	xargs -d '\n' ninja -C "$dir" --quiet <"$dir/targets"
}

if [ "$seconds" = --build ]; then
	scripts/choose-tests.py "$dir" --always --without "$without" "${threads[@]}" \
		>"$dir/always"
	build_for "$dir/always"
	exit
fi
scripts/choose-tests.py "$dir" --durations build/meson-logs/testlog.json \
	--seconds "$seconds" --without "$without" "${threads[@]}" \
	>"$dir/chosen" 2>"$dir/chosen.said"
cat "$dir/chosen.said"
build_for "$dir/chosen"
exec 9>&-
# Newer kernels place memory where gcc 12's TSan does not expect it.
setarch -R scripts/run-tests.py "$dir" --chosen "$dir/chosen" "$@" --setup all \
	--timeout-multiplier 4 --num-processes $(($(nproc) * 2))
