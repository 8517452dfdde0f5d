#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# left_out.sh SOURCE: scripts/left-out.sh names the tests that a run has left out, with the
# reason, and says nothing when all have run.
set -eu
script=${1:?the source folder}/scripts/left-out.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/meson-info" "$tmp/meson-logs"

# expect WANTED WHERE: the line that is printed.
expect() {
	got=$("$script" "$tmp")
	[ "$got" = "$1" ] && return
	echo "failed: \"$got\" and not \"$1\" where $2"
	exit 1
}

result() {
	printf '==================================== %s/9 =====================================\n' "$1"
	printf 'test:         busbar:%s\nresult:       %s\n' "$2" "$3"
	printf -- '----------------------------------- stdout -----------------------------------\n'
	printf 'looking\n%s\n' "$4"
	printf '==============================================================================\n\n'
}

(cd "$1" && find tests -name meson.build | sed 's|.*|"/any/&",|') >"$tmp/files"
cp "$tmp/files" "$tmp/meson-info/intro-buildsystem_files.json"
echo '[{"name": "cmocka"}]' >"$tmp/meson-info/intro-dependencies.json"
expect '' 'nothing has run yet'
result 1 'unit / one' 'exit status 0' 'skipped: not' >"$tmp/meson-logs/testlog.txt"
expect '' 'all has run'
{
	result 2 'qemu / two' 'exit status 77' 'skipped: no qemu'
	result 3 'qemu / three' 'exit status 77' 'skipped: no qemu'
	result 4 'process / four' 'exit status 77' 'no jsonschema'
	result 5 'process / five' 'exit status 1' 'failed: all'
} >>"$tmp/meson-logs/testlog.txt"
skipped='skipped 2 of qemu (no qemu), 1 of process (no jsonschema)'
expect "tests that did not run: $skipped" 'some are skipped'
echo '[]' >"$tmp/meson-info/intro-dependencies.json"
grep -v unit/gateway "$tmp/files" >"$tmp/meson-info/intro-buildsystem_files.json"
got=$("$script" "$tmp")
case $got in
"tests that did not run: left out of the build "*" folders (no cmocka: install libcmocka-dev): "*"unit/gateway, "*"; $skipped") ;;
*)
	echo "failed: \"$got\" where cmocka is missing"
	exit 1
	;;
esac
