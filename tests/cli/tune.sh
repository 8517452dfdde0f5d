#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# `busbar tune`: its command line, on a copy of /proc and /sys. Nothing of this host is set.
set -u
: "${BUSBAR:?set it to the busbar executable}"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-tune.XXXXXX")
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

put() {
	mkdir -p "$tmp$(dirname "$1")"
	printf '%s\n' "$2" >"$tmp$1"
}
put /sys/devices/system/cpu/online 0-3
put /proc/sys/vm/swappiness 60
put /proc/meminfo 'SwapTotal: 1000 kB'
put /proc/sys/kernel/timer_migration 1
put /proc/self/mounts 'cgroup2 /sys/fs/cgroup cgroup2 rw 0 0'
put /sys/fs/cgroup/cgroup.controllers 'cpuset cpu'
put /sys/fs/cgroup/cgroup.subtree_control cpuset
put /dev/cpu_dma_latency ''
mkdir "$tmp/run"
cp -r "$tmp" "$tmp.before"
trap 'rm -rf "$tmp" "$tmp.before"' EXIT

tune="$BUSBAR tune"
check "help" 0 'usage: busbar tune' $tune --help
check "an unknown action" 2 "no 'aply'" $tune aply
check "an option of another action" 2 'no option --force' $tune apply --force --root "$tmp"
check "a word too many" 2 "does not take 'now'" $tune undo now
check "an unknown setting" 1 "no setting 'swop'" $tune check --only swop --root "$tmp"
check "no list" 1 'no list of processors' $tune apply --cpus x --root "$tmp"
check "offline processors" 1 'not online' $tune apply --cpus 9 --root "$tmp"
check "all processors" 1 'leaves no processor' $tune apply --cpus 0-3 --root "$tmp"
check "no tree" 1 'copy of /sys' $tune check --root "$tmp/run"
check "the list" 0 '^swap .*apply' $tune list
check "check without options" 0 'swap  *60' $tune --root "$tmp"
check "a hint at apply" 0 "busbar tune apply" $tune check --root "$tmp"
check "nothing applied" 1 'nothing is applied' $tune undo --root "$tmp"

check "a dry run" 0 'would.*swappiness: 60 -> 10' $tune apply -n --root "$tmp"
diff -r "$tmp" "$tmp.before" || { echo "failed: a dry run changed this"; failed=1; }
check "apply" 0 'done.*swappiness: 60 -> 10' $tune apply --cpus 2-3 --root "$tmp"
[ "$(cat "$tmp/proc/sys/vm/swappiness")" = 10 ] || { echo "failed: not set"; failed=1; }
[ "$(cat "$tmp/sys/fs/cgroup/busbar-rt/cpuset.cpus.partition")" = isolated ] ||
	{ echo "failed: no partition"; failed=1; }
echo 1 >"$tmp/proc/sys/kernel/timer_migration"
check "twice" 1 'applied before' $tune apply --root "$tmp"

: >"$tmp/sys/fs/cgroup/busbar-rt/cgroup.procs"
check "exec" 7 '^here$' $tune exec --root "$tmp" -- sh -c 'echo here; exit 7'
[ -s "$tmp/sys/fs/cgroup/busbar-rt/cgroup.procs" ] || { echo "failed: not moved"; failed=1; }
check "an unknown program" 127 'No such file' $tune exec --root "$tmp" -- ./no-such-program
rm "$tmp/sys/fs/cgroup/busbar-rt/cgroup.procs"
check "hold" 5 '^here$' $tune hold --latency 3 --root "$tmp" sh -c 'echo here; exit 5'
[ "$(od -An -tu4 "$tmp/dev/cpu_dma_latency" | tr -d ' ')" = 3 ] ||
	{ echo "failed: hold wrote something else"; failed=1; }
cp "$tmp.before/dev/cpu_dma_latency" "$tmp/dev/cpu_dma_latency"
check "a signal" 143 '' $tune hold --root "$tmp" -- sh -c 'kill -TERM $$'
cp "$tmp.before/dev/cpu_dma_latency" "$tmp/dev/cpu_dma_latency"
check "no program" 2 'needs a program' $tune hold --root "$tmp"

check "undo" 0 'undone.*swappiness: 60' $tune undo --root "$tmp"
rmdir "$tmp/run/busbar"
diff -r "$tmp" "$tmp.before" || { echo "failed: undo left this"; failed=1; }
check "exec without a partition" 1 'busbar tune apply --cpus' \
	$tune exec --root "$tmp" -- true

# JSON, on the copy and (measured shortly, nothing set) on this host.
if command -v python3 >/dev/null; then
	for options in "--root $tmp" "--time 0.05"; do
		$tune check --json $options | python3 -c '
import json, sys
c = json.load(sys.stdin)
names = [s["name"] for s in c["settings"]]
assert len(names) == len(set(names)) and len(names) > 20, names
assert all(s["why"] and s["verdict"] in ("good", "better", "limit", "absent")
           for s in c["settings"])
assert ("gaps" in c) == ("cpu_dma_latency" in c)
if len(sys.argv) > 1:
    assert len(c["findings"]) == 2 and c["cpu_dma_latency"]["timer"]["median_ns"] > 0
' $(echo "$options" | grep -o time) || { echo "failed: JSON of check $options"; failed=1; }
	done
fi
exit "$failed"
