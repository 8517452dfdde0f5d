# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2034
#
# Sourced by the tests of the tools: a folder to work in, the tools by the names
# that laboratories call them by, and what the tests ask. Sets `dir`.
set -u
: "${BUSBAR:?set it to the busbar executable}"
[ -x "$BUSBAR" ] || {
	echo "$BUSBAR is no executable"
	exit 1
}
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-tools.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
mkdir bin
for name in villas villas-node villas-pipe villas-signal villas-hook villas-convert \
	villas-compare villas-test-config villas-conf2json villas-graph villas-relay \
	villas-zmq-keygen; do
	ln -s "$BUSBAR" "bin/$name"
done
PATH=$dir/bin:$PATH
unset BUSBAR_LOG VILLAS_LOG_PREFIX
failed=0

fail() {
	echo "failed: $*"
	failed=1
}

# expect STATUS WHAT COMMAND...: standard output in `out`, the log in `log`.
expect() {
	wanted=$1 what=$2
	shift 2
	"$@" >out 2>log </dev/null
	check_status $?
}

# The same with standard input from file `in`.
expect_in() {
	wanted=$1 what=$2
	shift 2
	"$@" >out 2>log <in
	check_status $?
}

check_status() {
	[ "$1" -eq "$wanted" ] && return
	fail "$what: exit status $1, expected $wanted"
	head -n 5 log
}

# says WHAT PATTERN [FILE]: a line of the log (or of FILE).
says() {
	grep -q -e "$2" "${3:-log}" && return
	fail "$1: no '$2' in"
	head -n 5 "${3:-log}"
}

# samples WHAT COUNT FILE: lines that are no comments.
samples() {
	count=$(grep -vc '^#' "$3")
	[ "$count" -eq "$2" ] || fail "$1: $count samples, expected $2"
}

# equal WHAT FILE FILE: but for comments, to the byte.
equal() {
	grep -v '^#' "$2" >equal.a
	grep -v '^#' "$3" >equal.b
	cmp -s equal.a equal.b && return
	fail "$1:"
	diff equal.a equal.b | head -n 4 | cut -c 1-120
}

# has KIND NAME: whether this build has the hook, node-type or format.
has() {
	villas-node -C | villas-conf2json - >capabilities
	awk -v kind="\"$1\":" -v name="\"$2\"" '
		$1 == kind { inside = 1; next }
		/\]/ { inside = 0 }
		inside && ($1 == name || $1 == name ",") { found = 1 }
		END { exit !found }' capabilities
}

# wait_for PID COMMAND...: until it succeeds, while the process runs.
wait_for() {
	waited_pid=$1 tries=0
	shift
	until "$@"; do
		tries=$((tries + 1))
		if [ "$tries" -gt 500 ] || ! kill -0 "$waited_pid" 2>/dev/null; then
			fail "waited in vain for: $*"
			return 1
		fi
		sleep 0.02
	done
}
