#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# build-ahead.sh SANITIZERS...: builds what sanitized-tests.sh needs, in this order, with the
# processor time that nothing else wants, as tests that run meanwhile leave it. To be started
# by setsid, so that tests, which have sessions of their own, come first where the kernel
# shares processor time by sessions. Ends quietly when a build fails: the same build says why
# in the step that needs it.
set -e
cd "$(dirname "$0")/.."
(echo 19 >/proc/self/autogroup) 2>/dev/null || true
renice -n 19 $$ >/dev/null
chrt --idle --pid 0 $$
for sanitizers; do
	scripts/sanitized-tests.sh "$sanitizers" --build
done
