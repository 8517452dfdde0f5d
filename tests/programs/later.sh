#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The rows of table.txt that are marked `later`: which of them work now? A row
# that passes here is to be marked `works`.
set -u
BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
export BUSBAR
cd "$(dirname "$0")" || exit 1
export VERDICTS=later LIMIT_S="${LIMIT_S:-10}"

# shellcheck disable=SC2046 # names are words
[ $# -gt 0 ] || set -- $(./section.sh --list)
for section; do
	./section.sh "$section" | grep -E ': (passed|FAILED|skipped)'
done
