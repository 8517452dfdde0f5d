#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# `busbar exec`: what the program gets and how failures to start it look. The
# programs here do not use verbs.
set -u
: "${BUSBAR:?set it to the busbar executable}"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-exec.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
failed=0

check() {
	what=$1 want=$2 pattern=$3
	shift 3
	output=$("$@" 2>&1)
	got=$?
	if [ "$got" -ne "$want" ] || ! echo "$output" | grep -q -e "$pattern"; then
		echo "failed: $what: status $got (want $want), output (want '$pattern'):"
		echo "$output"
		failed=1
	fi
}

libs=$("$BUSBAR" version | sed -n 's/^ *drop-in libraries *//p')
if [ "$libs" = "not found" ]; then
	echo "skipped: this build has no drop-in libraries"
	exit 77
fi

check "the exit status is the program's" 7 '' "$BUSBAR" exec -- sh -c 'exit 7'
check "the libraries come first" 0 "^$libs\$" \
	env -u LD_LIBRARY_PATH "$BUSBAR" exec -- sh -c 'echo "$LD_LIBRARY_PATH"'
check "what was set before stays behind them" 0 "^$libs:/elsewhere\$" \
	env LD_LIBRARY_PATH=/elsewhere "$BUSBAR" exec -- sh -c 'echo "$LD_LIBRARY_PATH"'
check "nested calls add them once" 0 "^$libs\$" \
	env -u LD_LIBRARY_PATH "$BUSBAR" exec -- "$BUSBAR" exec -- sh -c 'echo "$LD_LIBRARY_PATH"'
check "--preload names both libraries" 0 "^$libs/libibverbs.so.1:$libs/librdmacm.so.1" \
	"$BUSBAR" exec --preload -- sh -c 'echo "$LD_PRELOAD"'
check "--rsockets names its library" 0 "^$libs/librspreload.so" \
	"$BUSBAR" exec --rsockets -- sh -c 'echo "$LD_PRELOAD"'
check "--rsockets keeps libuv from io_uring" 0 "^0\$" \
	env -u UV_USE_IO_URING "$BUSBAR" exec --rsockets -- sh -c 'echo "$UV_USE_IO_URING"'
check "--rsockets is not for iWARP alone" 2 'BUSBAR_DEVICES=all' \
	env BUSBAR_DEVICES=iwarp "$BUSBAR" exec --rsockets -- true
check "options behind the program are the program's" 0 '^-p$' \
	"$BUSBAR" exec printf '%s\n' -p
check "--capture sets the file, seen from the root" 0 "^$tmp/a%p.pcapng 10m 3 \.\$" \
	sh -c 'cd "$1" && exec "$BUSBAR" exec --capture "a%p.pcapng,size=10m,files=3" -- \
		sh -c "echo \$BUSBAR_CAPTURE \$BUSBAR_CAPTURE_SIZE \$BUSBAR_CAPTURE_FILES \$BUSBAR_CAPTURE_SNAP."' \
	sh "$tmp"
check "--capture names a limit that is none" 2 "'huge' is no value for size" \
	"$BUSBAR" exec --capture "$tmp/x,size=huge" -- true
check "--capture knows its keys" 2 "none of size=BYTES" \
	"$BUSBAR" exec --capture "$tmp/x,length=1" -- true
check "--capture needs a file" 2 'a file or a pipe is needed' \
	"$BUSBAR" exec --capture ,size=1m -- true
check "a program that is not there is 127" 127 "'no-such-program' not found in PATH" \
	"$BUSBAR" exec -- no-such-program
: >"$tmp/plain"
check "a file that is not executable is 126" 126 'not executable' \
	"$BUSBAR" exec -- "$tmp/plain"
check "a folder is 126" 126 'not executable' "$BUSBAR" exec -- "$tmp"
printf '#!/no/such/interpreter\n' >"$tmp/script"
chmod +x "$tmp/script"
check "a script without its interpreter is reported" 126 "$tmp/script" \
	"$BUSBAR" exec -- "$tmp/script"
printf 'exit 5\n' >"$tmp/bare"
chmod +x "$tmp/bare"
check "a script without a first line goes to the shell" 5 '' \
	"$BUSBAR" exec -- "$tmp/bare"
check "no program is a usage error" 2 'usage: busbar exec' "$BUSBAR" exec
cp /bin/true "$tmp/true"
chmod u+s "$tmp/true"
check "a set-user-id program is warned about" 0 'set-user-id' \
	"$BUSBAR" exec -- "$tmp/true"
if command -v cc >/dev/null && echo 'int main(void){return 0;}' >"$tmp/s.c" &&
	cc -static -o "$tmp/static" "$tmp/s.c" 2>/dev/null; then
	check "a static program is warned about" 0 'statically linked' \
		"$BUSBAR" exec -- "$tmp/static"
fi
if cc -Wl,--disable-new-dtags -Wl,-rpath,/nowhere -o "$tmp/rpath" "$tmp/s.c" 2>/dev/null; then
	check "an RPATH is warned about" 0 'RPATH' "$BUSBAR" exec -- "$tmp/rpath"
fi
exit "$failed"
