#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Programs on busbar's adapter and on the kernel's rxe0 talk to each other by RoCE v2, or on its
# siw0 by iWARP (--siw of interop.py): a guest (guest.sh), a tap device and interop.py, in a
# network namespace of their own, which is gone with the last of them. As root, or where users
# may make user namespaces.
# Usage: interop.sh [--suite NAME] [--part] KERNEL_DIR BUSBAR [OPTIONS of interop.py]; NAME is
# kernel.sh's SUITE. --part: this is one of TESTS_PART tests of which TESTS_SEED, any text, selects
# one. Exit status: 0 all pairs are good, 1 not, 77 not possible here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

suite=
part=1
[ "${1:-}" != --suite ] || {
	suite=$2
	shift 2
}
[ "${1:-}" != --part ] || {
	part=${TESTS_PART:-1}
	shift
}
kernel=${1:?the folder for the kernel}
busbar=${2:?the executable busbar}
shift 2

skip() {
	echo "skipped: $*"
	exit 77
}

number=$(echo "${TESTS_SEED:-} $*" | cksum)
[ $((${number%% *} % part)) -eq 0 ] ||
	skip "TESTS_SEED selects others; make test-all runs this one, too"
for program in unshare ip ibv_rc_pingpong rping ib_send_bw; do
	command -v "$program" >/dev/null ||
		skip "$program is not installed (util-linux, iproute2, ibverbs-utils, rdmacm-utils, perftest)"
done
[ -w /dev/net/tun ] || skip "no /dev/net/tun that this user may open"
command -v qemu-system-x86_64 >/dev/null ||
	skip "qemu-system-x86_64 is not installed (qemu-system-x86)"
namespaces=-n
[ "$(id -u)" -eq 0 ] || namespaces=-Urn
unshare $namespaces ip tuntap add dev busbar0 mode tap 2>/dev/null ||
	skip "this user may not make a network namespace with a tap device"
# Here, because there is no way from the namespace to the packages.
# shellcheck disable=SC2086 # none, or one word
"$here/kernel.sh" "$kernel" $suite || exit
case " $* " in
*" --siw"*) "$here/siw.sh" "$kernel" || exit ;;
esac
exec unshare $namespaces python3 "$here/interop.py" "$@" "$busbar" "$kernel"
