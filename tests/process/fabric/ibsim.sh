#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# ibsim.sh DESCRIBE EXAMPLES: ibsim as the referee of topology files. It reads what we write, and
# ibnetdiscover finds in it the subnet that we meant; what ibnetdiscover prints is read by us.
set -u
describe=${1:?fabric-describe}
examples=${2:?folder of topology files}
for program in ibsim ibsim-run ibnetdiscover; do
	command -v "$program" >/dev/null || {
		echo "skipped: no $program"
		exit 77
	}
done
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-ibsim.XXXXXX") || exit 1
# Where ibsim listens.
IBSIM_SOCKNAME=busbar-topology-$$
export IBSIM_SOCKNAME
pid=
failed=0

end() {
	[ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 1' INT TERM
# ibsim may have ended when it is told to.
trap '' PIPE

# Whether ibsim has read its file; false, too, when it has ended.
is_ready() {
	waited=0
	until grep -qs 'Network simulator ready' "$dir/ibsim"; do
		[ "$waited" -lt 400 ] && kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.05
		waited=$((waited + 1))
	done
}

# discover FILE: what ibnetdiscover finds in a subnet that ibsim makes of the file.
discover() {
	rm -f "$dir/commands" "$dir/ibsim" "$dir/found"
	mkfifo "$dir/commands" || return 1
	ibsim -s "$1" <"$dir/commands" >"$dir/ibsim" 2>&1 &
	pid=$!
	exec 3>"$dir/commands"
	is_ready && timeout 60 ibsim-run ibnetdiscover >"$dir/found" 2>"$dir/errors" 3>&-
	status=$?
	echo quit >&3 2>/dev/null
	exec 3>&-
	wait "$pid" || status=1
	pid=
	return "$status"
}

# try NAME FILE
try() {
	discover "$2" && "$describe" discovered "$2" "$dir/found" || {
		echo "failed: $1"
		tail -n 20 "$dir/ibsim" "$dir/errors"
		failed=1
	}
}

# ibsim knows no NDR, and takes FDR10 for QDR.
for text in ring:8,delay=300,ber=1e-12 mesh:3x3,width=12x,speed=QDR fat-tree:6x4,speed=HDR,width=2x \
	single:40,speed=DDR,width=8x dragonfly:3x1x1,speed=FDR,width=1x; do
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
