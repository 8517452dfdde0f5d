#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# examples.sh KV ECHO_RIPC ECHO_TCP: the programs of examples/ripc. What is put into the
# store comes out of it, short and long; both echo servers answer with what they got; Ctrl-C
# ends a server with status 0.
FOLDER=ripc-examples
. "$(dirname "$0")/../gateways.sh"
kv=$1 echo_ripc=$2 echo_tcp=$3
# Ours alone: other tests run at the same time.
name=test-$$
export LD_LIBRARY_PATH="$LIB" RIPC_ADDRESS=127.0.0.1 RIPC_PORT=$((20000 + $$ % 12000))

# serve WORDS...: a server, which has said that it serves. Sets $last.
serve() {
	: >"$tmp/server.out"
	"$@" >"$tmp/server.out" 2>"$tmp/server.log" &
	started $!
	until_true grep -q '^serving' "$tmp/server.out"
}

# ends_well: the server, after a Ctrl-C.
ends_well() {
	kill -INT "$last"
	wait "$last" || fail "a server has ended with status $?"
}

serve "$kv" "$name" serve
printf 'a value' | "$kv" "$name" put key
[ "$("$kv" "$name" get key)" = "a value" ] || fail "another value came back"
printf 'another' | "$kv" "$name" put key
[ "$("$kv" "$name" get key)" = another ] || fail "the old value came back"
head -c 3000000 /dev/urandom >"$tmp/long"
"$kv" "$name" put long <"$tmp/long"
"$kv" "$name" get long >"$tmp/back"
cmp "$tmp/long" "$tmp/back" || fail "a long value has changed"
"$kv" "$name" remove long
! "$kv" "$name" get long 2>"$tmp/why" || fail "a removed value came back"
grep -q 'long: there is no such key' "$tmp/why" || fail "no reason was given"
ends_well
! "$kv" "$name-not" get key 2>"$tmp/why" || fail "nobody has answered"
grep -q "$name-not" "$tmp/why" || fail "the missing name was not told"

printf '%s\n' hello 'two words' >"$tmp/wanted"
serve "$echo_ripc" serve "$name"
"$echo_ripc" "$name" hello 'two words' >"$tmp/got"
cmp "$tmp/wanted" "$tmp/got" || fail "ripc: the echo is another"
ends_well
serve "$echo_tcp" serve 0
"$echo_tcp" "$(sed 's/.* //' "$tmp/server.out")" hello 'two words' >"$tmp/got"
cmp "$tmp/wanted" "$tmp/got" || fail "tcp: the echo is another"
