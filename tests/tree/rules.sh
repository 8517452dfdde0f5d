#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# rules.sh SOURCE: checks the rules of CONTRIBUTING.md that a machine can check: licence lines,
# which room includes which, size of files, pages for plug-ins.
set -u
cd "${1:?the source folder}" || exit 1
failed=0
tmp=$(mktemp)
rooms=$(mktemp)
trap 'rm -f "$tmp" "$rooms"' EXIT

complain() {
	echo "failed: $*"
	failed=1
}

sources() {
	find src lib tests examples man scripts .ci Makefile meson.build \
		-name node_modules -prune -o -type f ! -name '*.md' ! -name '.*' -print 2>/dev/null
}

# Text data for tests and lists that are read line by line have no comments.
sources | grep -v -E '\.(csv|json|human|log|dat|scd|pyc)$' |
	xargs grep -L 'SPDX-License-Identifier: BSD-2-Clause' >"$tmp"
while read -r file; do
	complain "$file has no SPDX line"
done <"$tmp"

# rooms_of FILE: the keys of its dictionary of rooms, in their order.
rooms_of() {
	sed -n "s|^  '\([a-z_/]*\)': \[.*|\1|p" "$1" | tr '\n' ' '
}
# named_in FILE: the folders beside FILE, in the order in which FILE first names them.
named_in() {
	folder=$(dirname "$1")
	grep -v '^#' "$1" | grep -oE "'[a-z]+[/']" | tr -d "'/" | awk '!seen[$0]++' |
		while read -r name; do
			[ -d "$folder/$name" ] && echo "$name"
		done | tr '\n' ' '
}

# The rooms that a room may include besides itself, from the bottom up: of meson.build.
sed -n "s|^  'src/\([a-z]*\)': '\([a-z ]*\)',.*|\1 \2|p" meson.build >"$rooms"
[ "$(wc -l <"$rooms")" -ge 15 ] || complain 'meson.build has no list of rooms'
find src -name '*.[ch]' | xargs awk -v list="$rooms" '
	BEGIN {
		while ((getline line <list) > 0) {
			count = split(line, name, " ")
			may[name[1]] = line
			for (i = 2; i <= count; i++)
				if (!(name[i] in may))
					print "meson.build: " name[1] " may include " name[i] ", which is not below it"
		}
	}
	FNR == 1 && split(FILENAME, part, "/") && !(part[2] in may) {
		print FILENAME " is in no room of meson.build"
	}
	FNR == 1 {
		split(FILENAME, part, "/")
		room = part[2]
	}
	# Works in a simulation without the adapter.
	FILENAME ~ /^src\/transport\/carrier\// && /^#include "(hca\/|transport\/[^c])/ {
		print FILENAME " is below hca and includes " $2
	}
	FNR == 1001 { print FILENAME " has more than 1000 lines" }
	# A table and structures to print, no part of the adapter.
	room == "cli" && /"hca\/(host\/settings|view\/inspect).h"/ { next }
	# The rendezvous is the whole of a command.
	FILENAME == "src/cli/ripc_rendezvous.c" && /"ripc\/find\/resolver.h"/ { next }
	/^#include "[a-z]*\// {
		split($2, part, "[\"/]")
		if (index(" " may[room] " ", " " part[2] " ") == 0)
			print FILENAME " includes the room " part[2] ", allowed: " may[room]
	}' >"$tmp"
while read -r line; do
	complain "$line"
done <"$tmp"

# The rooms of the adapter: what the rule above cannot see.
# An include that does not name its room.
grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"(\.|[^"]*/\.\.)' \
	$(find $(awk '$1 == "rdmacm" { for (i = 1; i <= NF; i++) print "src/" $i }' "$rooms") \
	-name '*.[ch]') >"$tmp"
while read -r line; do
	complain "an include that is not seen from src: $line"
done <"$tmp"

# The rooms of hca, from the ground up, as src/hca/meson.build lists them: a file includes its
# own room and those before it, so structures (object) lie below all that works on them. hca.h
# and limits.h are in no room: every room may include them, and they include none.
hca_rooms=$(rooms_of src/hca/meson.build)
find src/hca -name '*.[ch]' | xargs awk -v hca_rooms="$hca_rooms" '
	function room_of(path,   part) {
		split(path, part, "/")
		return part[3] == "" ? 0 : part[2] in level ? level[part[2]] : -1
	}
	BEGIN {
		rooms = split(hca_rooms, room, " ")
		for (i = 1; i <= rooms; i++)
			level[room[i]] = i
	}
	FNR == 1 {
		mine = room_of(substr(FILENAME, 5))
		if (mine < 0)
			print FILENAME " is in no room"
	}
	/^[ \t]*#[ \t]*include[ \t]+"hca\// {
		split($0, text, "\"")
		other = room_of(text[2])
		if (other < 0 || other > mine)
			print FILENAME " includes " text[2] ", which is above it"
	}' >"$tmp"
while read -r line; do
	complain "$line"
done <"$tmp"

# A header of structures declares no function of a file above it: only functions of the file
# beside it, which has its name.
for header in src/hca/object/*.h; do
	[ -f "${header%.h}.c" ] ||
		grep -HnE '^[a-z].*\(.*[,;]$' "$header" | grep -vE ':(static|typedef|_Static) '
done >"$tmp"
while read -r line; do
	complain "a function in a header of structures: $line"
done <"$tmp"

# A transport includes itself, and of the others only the layers that they share; a layer
# only those below it. src/transport/list.c knows them all; list.h declares the table that
# each transport defines.
# The layers are the folders that meson.build names before the libraries of the transports.
transports=$(sed -n 's/.*link_with: \[\(.*_lib\)\].*/\1/p' src/transport/meson.build | tr -d ',' | sed 's/_lib//g')
[ -n "$transports" ] || complain 'src/transport/meson.build links no transports'
layers=$(for name in $(named_in src/transport/meson.build); do
	case " $transports " in *" $name "*) ;; *) echo "$name" ;; esac
done | tr '\n' ' ')
find src/transport -mindepth 2 -name '*.[ch]' | xargs awk -v layers="$layers" '
	BEGIN { layers = split(layers, layer, " ") }
	function level(name,   i) {
		for (i = 1; i <= layers; i++)
			if (layer[i] == name)
				return i
		return layers + 1
	}
	FNR == 1 {
		split(FILENAME, part, "/")
		mine = part[3]
	}
	/^[ \t]*#[ \t]*include[ \t]+"transport\// {
		split($0, text, "\"")
		count = split(text[2], part, "/")
		other = count > 2 ? part[2] : ""
		if (text[2] == "transport/list.h" && level(mine) > layers)
			next
		if (other != mine && (other == "" || level(other) >= level(mine)))
			print FILENAME " includes " text[2] ", which is not below it"
	}' >"$tmp"
while read -r line; do
	complain "$line"
done <"$tmp"

# What the adapter is made of serves every transport, and knows none by name.
for folder in src/transport/*/; do
	name=$(basename "$folder")
	pattern="transport/$name/"
	case " $layers " in
	*" $name "*) ;; # the words have other meanings, too
	*) pattern="$pattern|(^|[^A-Za-z0-9_])($name|$(echo "$name" | tr a-z A-Z))_[A-Za-z]" ;;
	esac
	grep -nE "$pattern" $(find src/hca -name '*.[ch]')
done >"$tmp"
while read -r line; do
	complain "a transport by its name: $line"
done <"$tmp"

# The rooms of the gateway, from the ground up, as its meson.build lists them: a file includes
# its own room and those before it. A node-type, a hook and a format do not include each other.
find src/gateway -name '*.[ch]' | xargs awk -v gateway_rooms="$(rooms_of src/gateway/meson.build)" '
	function room_of(path,   i, best) {
		best = 0
		for (i = 1; i <= rooms; i++)
			if (index(path, "gateway/" room[i] "/") == 1 &&
			    (!best || length(room[i]) > length(room[best])))
				best = i
		return best
	}
	function folder(path) { sub("/[^/]*$", "", path); return path }
	function stem(path) { sub(/[.][ch]$/, "", path); return path }
	BEGIN {
		rooms = split(gateway_rooms, room, " ")
	}
	FNR == 1 {
		self = substr(FILENAME, 5)
		mine = room_of(self)
		if (!mine)
			print FILENAME " is in no room"
	}
	/^#include "gateway\// {
		split($2, part, "\"")
		other = room_of(part[2])
		if (!other || other > mine)
			print FILENAME " includes " part[2] ", which is above it"
		else if (room[mine] == "node" && other == mine && folder(self) != folder(part[2]))
			print FILENAME " includes " part[2] " of another node-type"
		else if (mine == other && room[mine] ~ /^(hook|format)$/ &&
			 index(part[2], stem(self)) != 1 && index(stem(self), stem(part[2])) != 1)
			print FILENAME " includes " part[2] " of another " room[mine]
	}' >"$tmp"
while read -r line; do
	complain "$line"
done <"$tmp"

# rooms_in_order FOLDER PEERS: of src/FOLDER, from the ground up, as its meson.build names them;
# PEERS include nothing of each other.
rooms_in_order() {
	find "src/$1" -mindepth 2 -name '*.[ch]' | xargs awk -v peers="$2" -v folder="$1" \
		-v names="$(named_in "src/$1/meson.build")" '
		BEGIN {
			depth = split(folder, part, "/") + 2
			rooms = split(names, room, " ")
			for (i = 1; i <= rooms; i++)
				level[room[i]] = i
			count = split(peers, peer, " ")
			for (i = 1; i <= count; i++)
				kind[peer[i]] = 1
		}
		FNR == 1 {
			split(FILENAME, part, "/")
			mine = part[depth]
			if (!level[mine])
				print FILENAME " is in no room"
		}
		# Generated, of no room.
		$2 == "\"bench/version.h\"" || $2 == "\"rdmacm/abi-calls.h\"" { next }
		index($0, "#include \"" folder "/") == 1 {
			split($2, part, "[\"/]")
			if (!level[part[depth]] || level[part[depth]] > level[mine])
				print FILENAME " includes " $2 ", which is above it"
			else if (kind[mine] && kind[part[depth]] && part[depth] != mine)
				print FILENAME " includes " $2 " of another kind"
		}' >"$tmp"
	while read -r line; do
		complain "$line"
	done <"$tmp"
}
# Kinds of benchmarks, each with a module or file that the others do not need.
rooms_in_order bench "$(grep -rl 'const struct bench_kind bench_kind_' src/bench/*/ | grep -v '^src/bench/suite/' |
	cut -d/ -f3 | sort -u | tr '\n' ' ')"
rooms_in_order ripc "memory find"
rooms_in_order transport/shm ""
rooms_in_order transport/packet ""
rooms_in_order rdmacm ""
# The files of the folder itself are above its rooms. The table of calls is generated.
grep -nE '^#include "(transport/packet|rdmacm)/[a-z_]*\.h"' src/transport/packet/*/*.[ch] \
	src/rdmacm/*/*.[ch] >"$tmp"
while read -r line; do
	complain "an include of a file above: $line"
done <"$tmp"

# Somebody may set the wall clock while a thread waits: times to wait until are
# CLOCK_MONOTONIC's, by the calls that say so.
find src lib -name '*.[ch]' | xargs grep -nE \
	'pthread_(cond_timedwait|(mutex|rwlock)_timed[a-z]*lock|timedjoin_np)|sem_timedwait|[a-z]_clock(wait|lock|join_np)\(.*CLOCK_REALTIME' >"$tmp"
while read -r line; do
	complain "a wait by the wall clock: $line"
done <"$tmp"

# One name, one header.
for half in gateway hca; do
	find "src/$half" -name '*.h' |
		awk -F/ '{ if (seen[$NF]) print $0 " and " seen[$NF]; seen[$NF] = $0 }'
done >"$tmp"
while read -r line; do
	complain "two headers of one name: $line"
done <"$tmp"

# A folder is called after its type, or has several, which its meson.build names.
for node in src/gateway/node/*/; do
	[ -d "$node" ] || continue
	types=$(sed -n "s/^device_names = \[\(.*\)\]/\1/p" "$node/meson.build" | tr -d "',")
	for type in ${types:-$(basename "$node")}; do
		page=man/busbar-node-$type.7.scd
		[ -f "$page" ] || complain "$node has no manual page $page"
	done
done
for page in man/*.scd; do
	name=$(basename "$page" .scd)
	# man/meson.build has the pages of node-types from src/gateway/node/meson.build.
	node=${name#busbar-node-}
	grep -q "^  '${node%.7}',$" src/gateway/node/meson.build && continue
	grep -q "'$name'" man/meson.build ||
		complain "$page is not in man/meson.build"
done
exit "$failed"
