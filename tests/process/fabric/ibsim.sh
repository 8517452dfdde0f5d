#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# ibsim.sh DESCRIBE EXAMPLES: ibsim as the referee of topology files. It reads what we write, and
# ibnetdiscover finds in it the subnet that we meant; what ibnetdiscover prints is read by us.
# ibsim listens at names that are the same for all, so each has a network namespace.
set -u
describe=${1:?fabric-describe}
examples=${2:?folder of topology files}
for program in ibsim ibsim-run ibnetdiscover unshare; do
	command -v "$program" >/dev/null || {
		echo "skipped: no $program"
		exit 77
	}
done
[ "$(id -u)" = 0 ] && user= || user=--map-root-user
unshare --net --pid --fork --kill-child $user true 2>/dev/null || {
	echo 'skipped: no network namespace'
	exit 77
}
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-ibsim.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/commands"
failed=0

# discover FILE: a subnet of ibsim from the file, and ibnetdiscover in it. The program is started as a
# file, because it needs to be told when to end: its input.
cat >"$dir/discover" <<'END'
#!/bin/sh
exec 3<>"$2/commands"
ibsim -s "$1" <&3 >"$2/ibsim" 2>&1 3<&- &
pid=$!
waited=0
until grep -qs 'Network simulator ready' "$2/ibsim" || ! kill -0 "$pid" 2>/dev/null || [ "$waited" -ge 200 ]; do
	sleep 0.05
	waited=$((waited + 1))
done
timeout 60 ibsim-run ibnetdiscover >"$2/found" 2>"$2/errors"
status=$?
echo quit >&3
wait "$pid" || status=1
exit "$status"
END
chmod +x "$dir/discover"

try() {
	timeout 90 unshare --net --pid --fork --kill-child $user "$dir/discover" "$2" "$dir" &&
		"$describe" discovered "$2" "$dir/found" || {
		echo "failed: $1"
		tail -n 20 "$dir/ibsim" "$dir/errors"
		failed=1
	}
}

for text in ring:8,delay=300,ber=1e-12 mesh:3x3,width=12x,speed=QDR fat-tree:6x4 single:40 dragonfly:3x1x1; do
	"$describe" generate "$text" >"$dir/generated" || failed=1
	try "$text" "$dir/generated"
done
for file in "$examples"/*.topo; do
	[ -f "$file" ] || {
		echo "failed: no examples in $examples"
		failed=1
		continue
	}
	"$describe" copy "$file" >"$dir/copied" || failed=1
	try "$file" "$file"
	try "copy of $file" "$dir/copied"
done
exit "$failed"
