#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A node-type and the hook of the manual page are built outside of the tree, with
# nothing but what `meson install` puts into a folder, and used by a gateway. Modules
# of other versions, and those that need what no gateway has, are refused with the
# reason.
#
#   BUSBAR, BUILD, SOURCE, CC, SANITIZE  from meson.build
. "$(dirname "$0")/common.sh"

for tool in meson pkg-config nm; do
	command -v "$tool" >/dev/null || skip "no $tool"
done

DESTDIR=$tmp/root meson install -C "$BUILD" --no-rebuild --tags devel,runtime \
	>"$tmp/install.log" 2>&1 || fail "meson install"
pc=$(find "$tmp/root" -name busbar-plugin.pc)
[ -n "$pc" ] || fail "no busbar-plugin.pc is installed"
PKG_CONFIG_PATH=$(dirname "$pc")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
prefix=$(pkg-config --variable=prefix busbar-plugin)
cflags=$(pkg-config --define-variable=prefix="$tmp/root$prefix" --cflags busbar-plugin)
headers=$(pkg-config --define-variable=prefix="$tmp/root$prefix" \
	--variable=includedir busbar-plugin)/busbar/plugin
own=$tmp/root$(pkg-config --variable=moduledir busbar-plugin)
[ -d "$own" ] || fail "moduledir is no folder"
built=$BUSBAR
BUSBAR=$(find "$tmp/root" -path '*/bin/busbar')
[ -x "$BUSBAR" ] || fail "no busbar is installed"
case $cflags in
*"$SOURCE/src"*) fail "the flags name the source folder: $cflags" ;;
esac
[ "$SANITIZE" = none ] || cflags="$cflags -fsanitize=$SANITIZE"

# compile OUTPUT SOURCE [FLAGS]: a module, in a folder of its own.
compile() {
	mkdir -p "$tmp/modules"
	output=$tmp/modules/$1
	input=$2
	shift 2
	# Flags are words.
	# shellcheck disable=SC2086
	(cd "$tmp" && $CC -std=gnu17 -O1 -Wall -Werror -shared -fPIC -o "$output" \
		"$input" $cflags "$@") >"$tmp/compile.log" 2>&1 ||
		fail "$input is not compiled"
}

# Every header by itself, and all that they declare is shown by the executable.
(cd "$headers" && find . -name '*.h' | sed 's,^\./,,' | sort) >"$tmp/headers"
[ -s "$tmp/headers" ] || fail "no headers are installed"
while read -r header; do
	echo "#include \"$header\""
done <"$tmp/headers" >"$tmp/all.c"
while read -r header; do
	echo "#include \"$header\"" >"$tmp/one.c"
	# shellcheck disable=SC2086
	$CC -std=gnu17 -Wall -Werror -fsyntax-only $cflags "$tmp/one.c" \
		>"$tmp/compile.log" 2>&1 || fail "$header needs another header before it"
done <"$tmp/headers"
(cd "$headers" && xargs cat <"$tmp/headers") | grep -o '[A-Za-z_][A-Za-z0-9_]*' |
	sort -u >"$tmp/words"
nm -g --defined-only "$built" | awk '{ print $3 }' | grep -vx main | sort -u |
	comm -12 - "$tmp/words" >"$tmp/declared"
nm -D --defined-only "$BUSBAR" | awk '{ print $3 }' | sed 's/@.*//' | sort -u >"$tmp/shown"
[ "$(wc -l <"$tmp/declared")" -gt 50 ] || fail "the executable has no symbols to compare"
hidden=$(comm -23 "$tmp/declared" "$tmp/shown" | tr '\n' ' ')
[ -z "$hidden" ] || fail "module.list does not show what headers declare: $hidden"

# The data of a node-type, through a gateway.
compile node_doubler.so "$SOURCE/tests/process/plugin/doubler.c"
"$SOURCE/lib/modules/check.sh" "$BUSBAR" "$tmp/modules/node_doubler.so" node_doubler ||
	fail "the check of modules refuses a good one"
export BUSBAR_MODULES="$tmp/nowhere:$tmp/modules"
cat >"$tmp/run.conf" <<-CONF
	nodes = {
		g = {
			type = "signal"; signal = "counter"; realtime = false; limit = 100;
			values = 2;
		};
		d = { type = "doubler"; factor = 3; };
		f = { type = "file"; uri = "$tmp/out.csv"; format = "csv"; };
	};
	paths = ( { in = "g"; out = "d"; }, { in = "d"; out = "f"; original_sequence_no = true; } );
	control = "$tmp/control";
CONF
run run -q --summary=none
until_true has_rows out 100
"$BUSBAR" ctl "$tmp/control" GET /metrics >"$tmp/metrics"
grep -q '^busbar_node_doubler_taken_total{node="d",type="doubler"} 100$' "$tmp/metrics" ||
	fail "a figure of the module is not among the metrics: $(grep doubler "$tmp/metrics")"
stops "$last"
seq 0 99 | awk '{ print $1 "," 3 * $1 "," 3 * $1 }' >"$tmp/expected"
data out | awk -F, '{ printf "%d,%g,%g\n", $1, $2, $3 }' | cmp - "$tmp/expected" ||
	fail "the values are not three times those that were sent"

# The example of the manual page.
sed -n '/^#include "gateway\/plugin\/hook.h"/,/^```/p' "$SOURCE/man/busbar-plugin.7.scd" |
	grep -v '^```' >"$tmp/negate.c"
compile hook_negate.so "$tmp/negate.c"
echo '1.5(7)	2.5' | "$BUSBAR" hook negate 2>"$tmp/hook.log" >"$tmp/hook.out" ||
	fail "the hook of the manual page does not run"
grep -q -- '-2\.5' "$tmp/hook.out" || fail "the hook of the manual page does nothing"

# Of a module with two formats, each, by a link; this one in the gateway's own folder.
cat >"$tmp/twins.c" <<-C
	#include "gateway/plugin/module.h"
	PLUGIN_MODULE();
	static int twin_print(struct format *f, char *buf, size_t size, size_t *used,
			      struct sample *const smps[], unsigned cnt)
	{
		*used = 0;
		if (size < 2)
			return 0;
		buf[(*used)++] = f->type->name[0];
		buf[(*used)++] = '\n';
		return 1;
	}
	#define TWIN(id, said) \\
		extern const struct format_type format_##id; \\
		const struct format_type format_##id = { \\
			.name = said, .description = "its first letter", .lines = true, \\
			.carries = { .types = FORMAT_ALL_TYPES, .seconds_bits = 64 }, \\
			.print = twin_print, \\
		}
	TWIN(one_x, "one.x");
	TWIN(two_x, "two-x");
C
compile format_one_x.so "$tmp/twins.c"
mv "$tmp/modules/format_one_x.so" "$own"
ln -s format_one_x.so "$own/format_two_x.so"
for format in one.x two-x; do
	letters=$(echo '1.5(7)	2.5' | env -u BUSBAR_MODULES "$BUSBAR" convert -o "$format" \
		2>"$tmp/convert.log") || fail "the format $format is not found"
	[ "$letters" = "${format%"${format#?}"}" ] || fail "the format $format prints $letters"
done

# refused NAME TEXT...: a configuration with this node-type, and why it is wrong.
refused() {
	printf 'nodes = { d = { type = "%s"; }; };\npaths = ( );\n' "$1" >"$tmp/bad.conf"
	name=$1
	shift
	status=0
	"$BUSBAR" check "$tmp/bad.conf" >"$tmp/bad.log" 2>&1 || status=$?
	[ "$status" -eq 2 ] || fail "$name: status $status, not 2"
	for text in "$@"; do
		grep -q -e "$text" "$tmp/bad.log" || fail "$name: nobody says: $text"
	done
}

version=$(sed -n 's/^#define PLUGIN_INTERFACE //p' "$headers/gateway/plugin/module.h")
compile node_doubler.so "$SOURCE/tests/process/plugin/doubler.c" -DINTERFACE_OFFSET=1
refused doubler "was built for version $((version + 1)) .* this gateway has version $version" \
	"the module of node-type 'doubler' cannot be loaded"
compile node_doubler.so "$SOURCE/tests/process/plugin/doubler.c" -DINTERFACE_OFFSET=0 \
	-DOTHER_SIZE
refused doubler 'was built with a struct node_type of [0-9]* bytes, this gateway has'
echo 'int node_plain; int node_plain = 1;' >"$tmp/plain.c"
compile node_plain.so "$tmp/plain.c"
refused plain 'node_plain.so is no module of a gateway' 'PLUGIN_MODULE()'
ln -s hook_negate.so "$tmp/modules/node_link.so"
refused link 'node_link.so has no symbol node_link'
cat >"$tmp/needs.c" <<-C
	#include "gateway/plugin/module.h"
	PLUGIN_MODULE();
	int path_start(void *p);
	int node_needs(void);
	int node_needs(void) { return path_start(0); }
C
compile node_needs.so "$tmp/needs.c"
refused needs 'cannot load .*node_needs.so: .*undefined symbol: path_start'
! "$SOURCE/lib/modules/check.sh" "$BUSBAR" "$tmp/modules/node_needs.so" node_needs \
	2>"$tmp/bad.log" || fail "the check of modules passes one that cannot be loaded"
grep -q 'node_needs.so needs path_start, which src/gateway/module.list does not show' \
	"$tmp/bad.log" || fail "the check of modules does not name what is missing"
refused absentee "no node-type 'absentee'; there is no node_absentee.so in $tmp/nowhere, $tmp/modules, $own"
refused ../doubler "no node-type '../doubler'"
! grep -q 'there is no node' "$tmp/bad.log" || fail "a name with a slash is a file"
