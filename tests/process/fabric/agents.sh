#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# agents.sh AGENT_SIM [ROUTING TOPOLOGY]...: opensm and infiniband-diags as the referees of the management
# agents. opensm brings a simulated subnet up, answers the trap of a link that is cut, and the tools read
# and change what the agents keep. With further arguments: opensm alone, with these routing engines.
set -u
sim=$(realpath "${1:?fabric-agent-sim}")
shift
library=$(find /usr/lib /usr/lib64 -name libumad2sim.so 2>/dev/null | head -n 1)
[ -n "$library" ] || { echo 'skipped: no libumad2sim.so'; exit 77; }
for program in opensm ibnetdiscover iblinkinfo ibportstate ibtracert smpquery perfquery ibccquery ibccconfig sminfo; do
	PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
done
PATH=$PATH:/usr/sbin:/sbin
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-agents.XXXXXX") || exit 1
cd "$dir" || exit 1
IBSIM_SOCKNAME=busbar-agents-$$
OSM_TMP_DIR=$dir OSM_CACHE_DIR=$dir
export IBSIM_SOCKNAME OSM_TMP_DIR OSM_CACHE_DIR
sim_pid='' sm_pid=''
failed=0

end() {
	[ -n "$sm_pid" ] && kill -KILL "$sm_pid" 2>/dev/null && wait "$sm_pid" 2>/dev/null
	exec 3>&-
	[ -n "$sim_pid" ] && wait "$sim_pid"
	sm_pid='' sim_pid=''
}
trap 'end; cd /; rm -rf "$dir"' EXIT

fail() {
	echo "failed: $*"
	failed=1
}

# until_true COMMAND...: for 20 seconds at most.
until_true() {
	tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || return 1
		sleep 0.1
	done
}

# begin TOPOLOGY: the agents.
begin() {
	rm -rf "$dir"/*
	mkfifo commands
	"$sim" "$1" <commands >answers 2>&1 &
	sim_pid=$!
	exec 3>commands
	until_true grep -q ready answers && return
	fail "the agents of $1 do not start"
	cat answers
	exit 1
}

# manager OPTION...: opensm; waits for its subnet.
manager() {
	LD_PRELOAD=$library opensm -d2 -f "$dir/log" -D 3 "$@" >"$dir/opensm" 2>&1 &
	sm_pid=$!
	until_true grep -q 'SUBNET UP' log || {
		fail "opensm $*: no subnet"
		tail -n 5 log opensm
	}
}

# ask PROGRAM ARGUMENT...
ask() {
	LD_PRELOAD=$library timeout 20 "$@" 2>>errors
}

# command_of WORD...: to the agents; the answer's line.
command_of() {
	lines=$(wc -l <answers)
	echo "$*" >&3
	tries=0
	while [ "$(wc -l <answers)" -le "$lines" ] && [ "$tries" -lt 200 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	tail -n 1 answers
}

# expect NAME WHAT TEXT...: one of the lines of what is read has the pattern.
expect() {
	name=$1 pattern=$2
	shift 2
	ask "$@" >said
	grep -qE "$pattern" said || {
		fail "$name: no '$pattern' in what $* said:"
		head -n 20 said
		tail -n 3 errors
	}
}

links_up() {
	ask iblinkinfo -l >said
	[ "$(grep -c 'Active/  LinkUp' said)" = "$1" ] && ! grep -q 'Down' said
}

if [ "$#" -gt 0 ]; then
	while [ "$#" -gt 1 ]; do
		begin "$2"
		manager -R "$1"
		grep -E 'ERR' log && fail "opensm -R $1 on $2"
		command_of counts | grep -q 'bad_mad 0 bad_route 0 bad_lid 0 bad_key 0 .* lost 0' ||
			fail "$1: MADs that break rules: $(command_of counts)"
		end
		shift 2
	done
	exit "$failed"
fi

begin fat-tree:4x4
manager
expect 'the manager is master' 'SMINFO_MASTER' sminfo
ask ibnetdiscover >found
[ "$(grep -c '^Switch' found)" = 8 ] && [ "$(grep -c '^Ca' found)" = 16 ] || fail 'ibnetdiscover: 8 switches, 16 hosts'
# 16 + 16 links, each seen from both ends.
links_up 64 || { fail 'links that are not active'; grep -v Active said | head; }

host=$(sed -n '/"host-16"/,/^$/s/.*# lid \([0-9]*\) lmc.*/\1/p' found | head -n 1)
self=$(sed -n '/"host-1"/,/^$/s/.*# lid \([0-9]*\) lmc.*/\1/p' found | head -n 1)
leaf=$(sed -n 's/^Switch.*"leaf-2" .*lid \([0-9]*\) lmc.*/\1/p' found | head -n 1)
expect 'a path from host to host' '"host-16"' ibtracert "$self" "$host"

# A cable: the switch's trap makes the manager find other ways.
[ "$(command_of cut leaf-2 5)" = done ] || fail 'cut'
until_true sh -c "grep -c 'SUBNET UP' log | grep -qv '^1\$'" || fail 'no sweep after the trap'
repressed() {
	command_of counts | grep -qE ' traps [1-9].*repressed [1-9]'
}
until_true repressed || fail "traps: $(command_of counts)"
expect 'a port without a cable' 'LinkState:\.+Down' smpquery portinfo "$leaf" 5
command_of join leaf-2 5 >/dev/null
until_true links_up 64 || fail 'the link is not active again'

# A port that is disabled stays so.
expect 'disable' 'PhysLinkState:\.+Disabled' ibportstate "$leaf" 6 disable
expect 'disabled' 'LinkState:\.+Down' smpquery portinfo "$leaf" 6
command_of cut leaf-2 6 >/dev/null
command_of join leaf-2 6 >/dev/null
expect 'disabled, though the cable is joined' 'PhysLinkState:\.+Disabled' smpquery portinfo "$leaf" 6
expect 'enable' 'PhysLinkState:\.+LinkUp' ibportstate "$leaf" 6 enable
until_true links_up 64 || fail 'the enabled link is not active again'

# Performance and congestion control.
expect 'LinkDowned counts' 'LinkDownedCounter:\.+[1-9]' perfquery "$leaf" 6
ask perfquery -R "$leaf" 6 >/dev/null
expect 'cleared' 'LinkDownedCounter:\.+0' perfquery "$leaf" 6
expect '64 bits' 'PortUnicastXmitPkts' perfquery -x "$leaf" 1
ask ibccconfig SwitchCongestionSetting "$leaf" 0x1f 0x6 0 15 8 0 0:0 10 >/dev/null
expect 'a switch marks' 'Threshold:\.+0x0f' ibccquery SwitchCongestionSetting "$leaf"
expect 'a switch marks' 'Marking_Rate:\.+10' ibccquery SwitchCongestionSetting "$leaf"
ask ibccconfig CongestionControlTable "$host" 1 0 0:0 1:10 >/dev/null
expect 'the table of an adapter' 'CCT_Shift:\.+1' ibccquery CongestionControlTable "$host" 0
ask ibccconfig CACongestionSetting "$host" 0 0x3 150 1 2 0 >/dev/null
expect 'the timer of an adapter' 'CCTI_Timer:\.+150' ibccquery CACongestionSetting "$host"
ask ibccconfig CongestionKeyInfo "$host" 0x42 1 10 0 >/dev/null
expect 'a key' 'CC_Key:\.+0x0000000000000042' ibccquery -c 0x42 CongestionKeyInfo "$host"
ask ibccquery -t 100 CongestionKeyInfo "$host" >said && fail 'the key protects nothing'
end
exit "$failed"
