#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# `busbar tune`: its command line, on a copy of /proc, /sys and /etc/tuned with a tuned-adm of
# its own, which does what tuned does with the profile. Nothing of this host is set.
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
put /etc/tuned/active_profile balanced
put /etc/tuned/profile_mode manual
mkdir "$tmp/run"

# Writes the values of the profile "busbar" and restores them; calls.txt has the arguments.
mkdir -p "$tmp/usr/sbin"
cat >"$tmp/usr/sbin/tuned-adm" <<'END'
#!/bin/sh
root=${0%/usr/sbin/tuned-adm} word=$1
echo "$*" >>"$root.calls"
shift
old=$(echo "$root"/etc/tuned/busbar "$root"/etc/tuned/profiles/busbar | tr ' ' '\n' |
	while read -r d; do [ -d "$d" ] && echo "$d"; done)
if [ -e "$root.fails" ]; then
	echo "no such thing" >&2
	exit 1
fi
if grep -qx busbar "$root/etc/tuned/active_profile" && [ -e "$root.saved" ]; then
	cat "$root.saved" >"$root/proc/sys/vm/swappiness"
	rm "$root.saved"
	if [ -x "$old/partition.sh" ]; then
		rm -f "$root"/sys/fs/cgroup/busbar-rt/cpuset.*
		"$old/partition.sh" stop
		echo cpuset >"$root/sys/fs/cgroup/cgroup.subtree_control"
	fi
fi
if [ "$word $*" = "profile busbar" ] && [ ! -e "$root.refuses" ]; then
	cat "$root/proc/sys/vm/swappiness" >"$root.saved"
	sed -n 's/^vm.swappiness=//p' "$old/tuned.conf" >"$root/proc/sys/vm/swappiness"
	sed -n 's/^kernel.timer_migration=//p' "$old/tuned.conf" \
		>"$root/proc/sys/kernel/timer_migration"
	if [ -x "$old/partition.sh" ]; then
		"$old/partition.sh" start
	fi
fi
echo "$*" >"$root/etc/tuned/active_profile"
END
chmod +x "$tmp/usr/sbin/tuned-adm"
cp -r "$tmp" "$tmp.before"
trap 'rm -rf "$tmp" "$tmp".*' EXIT

tune="$BUSBAR tune"
check "help" 0 'usage: busbar tune' $tune --help
check "an unknown action" 2 "no 'aply'" $tune aply
check "an option of another action" 2 'no option --latency' $tune apply --latency 3 --root "$tmp"
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

called() {
	[ "$(tail -n 1 "$tmp.calls")" = "$1" ] || {
		echo "failed: tuned-adm was called with '$(tail -n 1 "$tmp.calls")', not '$1'"
		failed=1
	}
}
unchanged() {
	diff -r "$tmp" "$tmp.before" || { echo "failed: $1 left this"; failed=1; }
}

check "a dry run" 0 '^vm.swappiness=10$' $tune apply -n --root "$tmp"
check "a dry run of the script" 0 'echo 2-3 >' $tune apply -n -c 2-3 --root "$tmp"
check "what a profile cannot set" 0 '^# memlock: a profile cannot' \
	$tune apply -n -o memlock,swap --root "$tmp"
unchanged "a dry run"
check "the same without tuned" 1 "the package 'tuned'.*'hold' and 'exec' work" sh -c \
	"mv $tmp/usr/sbin/tuned-adm $tmp.adm; $tune apply --root $tmp; s=\$?
	mv $tmp.adm $tmp/usr/sbin/tuned-adm; exit \$s"
unchanged "apply without tuned"

: >"$tmp.fails"
check "tuned-adm fails" 1 "tuned-adm profile' ended with status 1" $tune apply --root "$tmp"
rm "$tmp.fails"
unchanged "apply that failed"
mkdir "$tmp/etc/tuned/busbar"
check "somebody's profile" 1 'was not made by' $tune apply --root "$tmp"
check "undo of somebody's profile" 1 'nothing is applied' $tune undo --root "$tmp"
rmdir "$tmp/etc/tuned/busbar"

# A value that did not come is no success.
: >"$tmp.refuses"
check "tuned sets nothing" 1 '^FAILED  swap  *60' $tune apply --root "$tmp" --only swap
rm "$tmp.refuses"
check "its undo" 0 '^removed' $tune undo --root "$tmp"
unchanged "undo of nothing"

check "apply" 0 '^done *swap *10' $tune apply --cpus 2-3 --root "$tmp"
called "profile busbar"
[ "$(cat "$tmp/sys/fs/cgroup/busbar-rt/cpuset.cpus.partition")" = isolated ] ||
	{ echo "failed: no partition"; failed=1; }
"$tmp/etc/tuned/busbar/partition.sh" verify || { echo "failed: verify"; failed=1; }
check "twice" 0 '^done *cpuset' $tune apply --cpus 2-3 --root "$tmp"

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

echo 1 >"$tmp/proc/sys/kernel/timer_migration"
check "a dry undo" 0 "would switch back to 'manual balanced'" $tune undo -n --root "$tmp"
check "undo" 0 '^removed' $tune undo --root "$tmp"
called "profile balanced"
unchanged "undo"

# Where another profile is active by now, that one stays; newer versions have another folder.
mkdir -p "$tmp/usr/lib/tuned/profiles"
put /etc/tuned/profile_mode auto
check "apply with tuned 2.23" 0 "^installed .*/etc/tuned/profiles/busbar" \
	$tune apply --only swap --root "$tmp"
check "undo to the recommended one" 0 "switching back to 'auto'" $tune undo --root "$tmp"
called "auto_profile"
put /etc/tuned/active_profile ''
check "apply without a profile" 0 '^done' $tune apply --only swap --root "$tmp"
put /etc/tuned/active_profile powersave
check "undo after another switch" 0 'another profile' $tune undo --root "$tmp"
called "profile busbar"
check "apply without a profile again" 0 '^done' $tune apply --only swap --root "$tmp"
printf 'manual --loglevel x' >"$tmp/etc/tuned/profiles/busbar/former"
check "a former profile that is an option" 1 'name is an option' $tune undo --root "$tmp"
printf 'manual a\nb' >"$tmp/etc/tuned/profiles/busbar/former"
check "a damaged note" 1 "expected 'manual NAMES'" $tune undo --root "$tmp"
printf off >"$tmp/etc/tuned/profiles/busbar/former"
mkdir "$tmp/sys/fs/cgroup/busbar-rt"
check "a partition that stays" 1 'FAILED  cpuset .*rmdir' $tune undo --root "$tmp"
called "off"
rmdir "$tmp/sys/fs/cgroup/busbar-rt"
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
