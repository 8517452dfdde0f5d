#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# abidiff_finds_no_incompatible_change: usage abidiff.sh OUR_LIBRARY SONAME.
# The installed library has no debug information as a rule, so this compares
# symbols once more, by somebody else's reading of ELF, and types where it has.
set -eu
. "$(dirname "$0")/lib.sh"

command -v abidiff >/dev/null || skip "abidiff is not installed"
theirs=$(system_library "$2") || skip "the system has no $2"
skip_if_sanitized "$1"

# Bit 3 is an incompatible change, bits 0 and 1 are errors of the tool.
status=0
abidiff --no-added-syms "$theirs" "$1" || status=$?
[ $((status & 11)) -eq 0 ]
