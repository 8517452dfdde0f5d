# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# Gateways for the tests in this folder, which source this; see ../gateways.sh.
FOLDER=nodes
. "$(dirname "$0")/../gateways.sh"

# needs TYPE: skips where the node-type is not in this build.
needs() {
	cat >"$tmp/needs.conf" <<-CONF
		nodes = { n = { type = "$1"; }; };
		paths = ( );
	CONF
	! "$BUSBAR" check "$tmp/needs.conf" 2>&1 | grep -q "no node-type '$1'" || skip "no node-type $1"
}

# start NAME: a gateway with $tmp/NAME.conf; sets $last to the process.
start() {
	run "$1" -q --summary=none
}

# figure FILE KEY: of the results in its last line.
figure() {
	tail -n 1 "$1" | grep -o "\"$2\":[^,}]*" | head -n 1 | cut -d: -f2-
}

# is FILE KEY VALUE
is() {
	[ "$(figure "$1" "$2")" = "$3" ] ||
		fail "$2 of $(basename "$1") is $(figure "$1" "$2"), not $3"
}

# holds FILE COUNT: whether it has so many samples and ends with its results.
holds() {
	[ -f "$1" ] || fail "there is no $(basename "$1")"
	[ "$(grep -vc '^#' "$1")" -eq "$2" ] ||
		fail "$(basename "$1") has $(grep -vc '^#' "$1") samples, not $2"
	tail -n 1 "$1" | grep -q '^# {.*}$' ||
		fail "$(basename "$1") does not end with its results"
}
