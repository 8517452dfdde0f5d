#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# entries.sh PROGRAM...: what `busbar exec` shows of soft0 below /sys and /dev (the
# PROGRAMs are entries.c), how long, and what it says at the end.
set -u
: "${BUSBAR:?set it to the busbar executable}"
BUSBAR=$(realpath "$BUSBAR")
# Below a `busbar exec` there would be entries already.
unset BUSBAR_EXEC_DIR BUSBAR_LOG LD_PRELOAD UCX_TLS OMPI_MCA_pml
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-entries.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
# Folders are made here, so that those of others are none of ours.
export TMPDIR="$tmp" XDG_RUNTIME_DIR="$tmp"
failed=0

fail() {
	echo "failed: $*"
	failed=1
}

left() {
	ls -d "$tmp"/busbar-exec-* 2>/dev/null
}

# The keeper removes a folder after the end; how soon, nobody has promised.
wait_removed() {
	tries=0
	while [ -n "$(left)" ]; do
		tries=$((tries + 1))
		if [ "$tries" -gt 3000 ]; then
			fail "$1: the folder is still there"
			return
		fi
		sleep 0.01
	done
}

# says PATTERN COMMAND...: its standard error, which the keeper has too.
says() {
	pattern=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/log"
	# Until the keeper has closed it.
	wait_removed "$*"
	grep -q -e "$pattern" "$tmp/log" || {
		fail "$*: no '$pattern' in"
		cat "$tmp/log"
	}
}

silent() {
	"$@" >"$tmp/out" 2>"$tmp/log"
	wait_removed "$*"
	grep -q 'did not open' "$tmp/log" && fail "$*: $(cat "$tmp/log")"
}

for program; do
	"$BUSBAR" exec -q -- "$program" || fail "$program"
done
"$BUSBAR" exec -q -- sh -c "'$1'; exit \$?" || fail "in a shell"
"$BUSBAR" exec -q -- "$BUSBAR" exec -q -- "$1" || fail "in two layers"
# In a namespace that does not map the user, others have the same number.
if unshare -U true 2>/dev/null; then
	unshare -U "$BUSBAR" exec -q -- "$BUSBAR" exec -q -- "$1" || fail "in two layers, not mapped"
fi
"$BUSBAR" exec -q --bare -- "$1" none || fail "--bare"
BUSBAR_DEVICES=system "$BUSBAR" exec -q -- "$1" none || fail "without soft0"
wait_removed "programs that end"

# A caller that ignores the end of its children hands that on.
(trap '' CHLD && exec "$BUSBAR" exec -q -- "$1") || fail "SIGCHLD is ignored"

"$BUSBAR" exec -q -- sh -c 'kill -9 $$' 2>/dev/null
wait_removed "a program that is killed"

# What it started keeps them, though the program itself has ended.
mkfifo "$tmp/go"
"$BUSBAR" exec -q -- sh -c "{ read -r word <'$tmp/go'; '$1'; echo \$? >'$tmp/status'; } &"
[ -n "$(left)" ] || fail "the folder is gone while something uses it"
echo go >"$tmp/go"
wait_removed "a program that leaves one behind"
[ "$(cat "$tmp/status")" = 0 ] || fail "what was left behind lost the entries"

# One whose keeper was killed is removed by the next call's.
mkdir "$tmp/busbar-exec-aaaaaa" "$tmp/busbar-exec-aaaaaa/sys"
touch -d '1 hour ago' "$tmp/busbar-exec-aaaaaa"
"$BUSBAR" exec -q -- true
wait_removed "a folder that was left"

"$BUSBAR" exec -q -- "$tmp/no-such-program" 2>/dev/null && fail "it started nothing"
wait_removed "a program that is not there"

# Where no folder can be made the program runs all the same.
if [ "$(id -u)" != 0 ]; then
	env -u XDG_RUNTIME_DIR TMPDIR=/proc "$BUSBAR" exec -q -- true ||
		fail "no place for the folder"
fi

says "'true' did not open an RDMA device: neither" "$BUSBAR" exec -- true
says "'sh' did not open an RDMA device: what it started" \
	"$BUSBAR" exec -- sh -c 'cat /sys/class/infiniband/soft0/fw_ver; exit 0'
silent "$BUSBAR" exec -q -- true
silent env BUSBAR_LOG=error "$BUSBAR" exec -- true
silent "$BUSBAR" exec -- "$BUSBAR" devices soft0
silent "$BUSBAR" exec -- sh -c "'$BUSBAR' devices soft0; exit 0"
# One that shows the list and wants no more than that.
silent "$BUSBAR" exec -- cat /sys/class/infiniband/soft0/fw_ver

# has DEVICES NAME TYPE: with that setting the device has entries, of this type; `none`: it has none.
has() {
	got=$(BUSBAR_DEVICES=$1 "$BUSBAR" exec -q -- cat "/sys/class/infiniband/$2/node_type" 2>/dev/null)
	[ "${got:-none}" = "$3" ] || fail "BUSBAR_DEVICES=$1: $2 is '$got', not '$3'"
}
has both soft0 '1: CA'
has both soft1 none
has iwarp soft0 none
has iwarp soft1 '4: RNIC'
has all soft0 '1: CA'
has all soft1 '4: RNIC'
has soft soft1 none

# setting NAME WANTED COMMAND...: what the program has in its environment.
setting() {
	name=$1
	want=$2
	shift 2
	got=$("$@" printenv "$name")
	[ "$got" = "$want" ] || fail "$*: $name is '$got', not '$want'"
}
setting UCX_TLS '^sm' "$BUSBAR" exec -q --
setting OMPI_MCA_pml '' "$BUSBAR" exec -q --
setting UCX_USE_MT_MUTEX y "$BUSBAR" exec -q --
setting UCX_USE_MT_MUTEX n env UCX_USE_MT_MUTEX=n "$BUSBAR" exec -q --
setting UCX_TLS tcp env UCX_TLS=tcp "$BUSBAR" exec -q --
setting UCX_TLS '' "$BUSBAR" exec -q --bare --
setting UCX_TLS '' env BUSBAR_DEVICES=system "$BUSBAR" exec -q --
wait_removed "all"
exit "$failed"
