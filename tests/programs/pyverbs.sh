#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# pyverbs.sh OBJECT: the Python bindings open and exercise one kind of object.
# They belong to the system's own Python, whatever else is in front.
. "$(dirname "$0")/common.sh"
object=${1:?context, pd, mr ...}
python=/usr/bin/python3
need "$python"
"$python" -c 'import pyverbs' 2>/dev/null || {
	echo "skipped: pyverbs is not installed${PACKAGE:+ ($PACKAGE)}"
	exit 77
}

once() {
	alone "$python -B $here/pyverbs_objects.py $DEVICE $object"
	refused || expect client "^$object: good"
}

repeat
