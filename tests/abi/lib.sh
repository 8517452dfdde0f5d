# SPDX-License-Identifier: BSD-2-Clause
# Shared by the tests in this folder; sourced.

skip() { echo "skipped: $*"; exit 77; }

# The installed library of that soname, not ours.
system_library()
{
	triplet=$(gcc -dumpmachine 2>/dev/null || clang -dumpmachine 2>/dev/null || true)
	for dir in "/usr/lib/$triplet" "/lib/$triplet" /usr/lib64 /lib64 /usr/lib; do
		if [ -e "$dir/$1" ]; then
			echo "$dir/$1"
			return 0
		fi
	done
	return 1
}

# Lines "name@@NODE" or "name@NODE" of what the library exports.
exported()
{
	nm -D --with-symbol-versions --defined-only "$1" |
		awk '$2 != "A" { print $3 }' | sort -u
}

# Lines of the nodes that the library defines.
nodes()
{
	nm -D --defined-only "$1" | awk '$2 == "A" { sub(/@.*/, "", $3); print $3 }' |
		sort -u
}

# A sanitizer's run-time must be the first library of a program, and foreign
# programs do not bring it.
skip_if_sanitized()
{
	if nm -D "$1" | grep -Eq '__(asan|tsan|ubsan|msan)_'; then
		skip "$1 is built with a sanitizer"
	fi
}
