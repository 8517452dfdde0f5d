#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Makes the version script, the stubs and jumps, the alias macros and the tables
# of libibverbs.so.1 from symbols.list.
# Usage: gen-abi.sh LIST MAP STUBS.c ALIASES.h SYSTEM.h
#
# A name in several nodes is one body with an alias per node. Not .symver alone, because
# the supported assemblers accept one .symver per symbol; not its attribute, because
# clang 14 lacks it. Therefore file-scope assembler, in the file of the body: an
# alias needs a symbol that is defined there.
set -eu

[ $# -eq 5 ] || {
	echo "usage: $0 LIST MAP STUBS.c ALIASES.h SYSTEM.h" >&2
	exit 2
}

exec awk -v map="$2" -v stubs="$3" -v aliases="$4" -v tables="$5" '
function fail(what) {
	printf "%s:%d: %s\n", FILENAME, FNR, what > "/dev/stderr"
	failed = 1
	exit 1
}
# Sorts dotted node numbers ("1.5" before "1.10") into order[1..count].
function sort_nodes(    n, i, j, t) {
	count = 0
	for (n in global) order[++count] = n
	for (i = 2; i <= count; i++)
		for (j = i; j > 1 && minor(order[j - 1]) > minor(order[j]); j--) {
			t = order[j]; order[j] = order[j - 1]; order[j - 1] = t
		}
}
function minor(node,    part) { split(node, part, "."); return part[2] + 0 }

# Assembler that makes name@VERSION an alias of `body`; `sep`: @ or @@ of .symver.
function alias(body, name, version, mark,    label) {
	label = "verbs_at_" name "_" version
	gsub(/[.]/, "_", label)
	return "\".globl " label "\\n\" \".set " label ", " body "\\n\" " \
	       "\".symver " label ", " name mark "IBVERBS_" version "\\n\""
}
# All the aliases of a body, joined by `sep`.
function all_aliases(body, name, version, sep,    list, n, i, text, real) {
	if (version ~ /[.]/)
		return alias(body, name, version, "@")
	n = version == "all" ? split(nodes, list, " ") : split(version, list, ",")
	text = ""
	for (i = 1; i <= n; i++) {
		if (!(list[i] in known)) fail("node " list[i] " is not declared")
		real = name
		sub(/%N/, list[i], real)
		text = text (i > 1 ? sep : "") \
		       alias(body, real, "PRIVATE_" list[i], \
			     list[i] == default_node ? "@@" : "@")
	}
	return text
}

function stub(name, version, kind, answer,    body, type, text) {
	body = "verbs_stub_" name
	type = answer == "null" ? "void *" : answer == "void" ? "void " : \
	       answer == "zero" ? "long long " : "int "
	if (answer !~ /^(errno|minus1|null|zero|void)$/)
		fail("unknown answer \"" answer "\"")
	text = "verbs_" (kind == "compat" ? "refuse" : "missing") "(\"" name "\")"
	printf "%s%s(void);\n%s%s(void)\n{\n", type, body, type, body > stubs
	if (answer == "errno") printf "\treturn %s;\n", text > stubs
	else {
		printf "\t(void)%s;\n", text > stubs
		if (answer != "void")
			printf "\treturn %s;\n", answer == "null" ? "NULL" : \
			       answer == "zero" ? "0" : "-1" > stubs
	}
	printf "}\n" > stubs
	# Dotted (public) nodes have no private function in the library of the system.
	if (kind == "private-function" && version !~ /[.]/) {
		printf "VERBS_THUNK(%s);\n", name > stubs
		jumps = jumps sprintf("\t{ \"%s\", &verbs_jump_%s },\n", name, name)
		body = "verbs_thunk_" name
	}
	printf "__asm__(%s);\n\n", \
	       all_aliases(body, name, version, "\n\t") > stubs
}
# One function per node, because it passes on the number of the node.
function register(name, version,    list, n, i, real, body) {
	n = split(version == "all" ? nodes : version, list, /[ ,]/)
	for (i = 1; i <= n; i++) {
		if (list[i] == "") continue
		real = name
		sub(/%N/, list[i], real)
		body = "verbs_stub_" real
		printf "void %s(const void *driver);\n" \
		       "void %s(const void *driver)\n{\n" \
		       "\tverbs_system_register(%s, driver);\n}\n__asm__(%s);\n\n", \
		       body, body, list[i], \
		       alias(body, real, "PRIVATE_" list[i], \
			     list[i] == default_node ? "@@" : "@") > stubs
	}
}
function public(name, version, owner) {
	if (owner !~ /^(device|context|object|event|both|here)$/)
		fail("unknown owner \"" owner "\"")
	global[version] = global[version] "\t\t" name ";\n"
	if (owner == "here")
		return
	printf "\tVERBS_%s,\n", name > tables
	publics = publics sprintf("\t[VERBS_%s] = { \"%s\", \"IBVERBS_%s\" },\n", \
				  name, name, version)
}
BEGIN {
	head = "/* SPDX-License-Identifier: BSD-2-Clause */\n" \
	       "/* Made by gen-abi.sh from symbols.list. */\n"
	printf "%s#include \"verbs/abi.h\"\n#include \"verbs/system.h\"\n" \
	       "#include \"verbs/thunk.h\"\n\n" \
	       "#pragma GCC visibility push(default)\n\n", head > stubs
	printf "%s#ifndef VERBS_ABI_SYSTEM_H\n#define VERBS_ABI_SYSTEM_H\n\n" \
	       "typedef void (*verbs_jump)(void);\n\n" \
	       "/* What the system library can be asked. */\n" \
	       "enum verbs_public {\n", head > tables
	printf "%s", head > aliases
	printf "%s", head > map
}
{ sub(/#.*/, "") }
NF == 0 { next }
$1 == "nodes" {
	for (i = 2; i <= NF; i++) { nodes = nodes " " $i; known[$i] = 1 }
	next
}
$1 == "default-node" { default_node = $2; next }
NF < 3 { fail("want: name version kind [answer]") }
seen[$1, $2]++ { fail($1 " " $2 " stands here twice") }
$3 == "public" { public($1, $2, $4); next }
$3 == "internal" { internal[$2] = internal[$2] "\t\t" $1 ";\n"; next }
$3 == "private-data" {
	body = "verbs_data_" $1
	printf "bool %s;\n__asm__(%s);\n\n", body, \
	       all_aliases(body, $1, $2, "\n\t") > stubs
	next
}
$3 == "private-function" && $4 == "own" {
	printf "#define VERBS_ALIASES_%s \\\n\t%s\n", $1, \
	       all_aliases("verbs_private_" $1, $1, $2, " \\\n\t") > aliases
	printf "extern __attribute__((visibility(\"hidden\"))) verbs_jump verbs_jump_%s;\n" \
	       "verbs_jump verbs_jump_%s;\n\n", $1, $1 > stubs
	jumps = jumps sprintf("\t{ \"%s\", &verbs_jump_%s },\n", $1, $1)
	next
}
$3 == "private-function" || $3 == "compat" { stub($1, $2, $3, $4); next }
$3 == "register" { register($1, $2); next }
{ fail("unknown kind \"" $3 "\"") }
END {
	if (failed) exit 1
	sort_nodes()
	for (i = 1; i <= count; i++)
		printf "IBVERBS_%s {\n\tglobal:\n%s}%s;\n\n", order[i], \
		       global[order[i]], \
		       i == 1 ? "" : " IBVERBS_" order[i - 1] > map
	# Empty here: .symver adds the names of these nodes.
	n = split(nodes, list, " ")
	for (i = 1; i <= n; i++)
		printf "IBVERBS_PRIVATE_%s {\n};\n\n", list[i] > map
	# `local: *` would hide the names that .symver adds, if it stood in their node.
	for (v in internal)
		printf "%s {\n\tglobal:\n%s\tlocal: *;\n};\n", v, \
		       internal[v] > map
	printf "#pragma GCC visibility pop\n\n" > stubs
	printf "const struct verbs_symbol verbs_public_symbols[VERBS_PUBLIC_COUNT] = {\n" \
	       "%s};\n\n", publics > stubs
	printf "const struct verbs_private verbs_private_functions[VERBS_PRIVATE_COUNT] = {\n" \
	       "%s};\n\n", jumps > stubs
	gsub(/ /, ", ", nodes)
	printf "const unsigned int verbs_nodes[] = { %s, 0 };\n", substr(nodes, 3) > stubs
	printf "\tVERBS_PUBLIC_COUNT,\n};\n\n" \
	       "enum {\n\tVERBS_PRIVATE_COUNT = %d,\n};\n\n#endif\n", \
	       split(jumps, list, "\n") - 1 > tables
}' "$1"
