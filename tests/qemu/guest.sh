#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs a command in a virtual machine whose kernel has a real RDMA device, rxe0 or siw0.
#
#   guest.sh [OPTIONS] KERNEL_DIR -- COMMAND [ARGUMENT...]
#
#   --time SECONDS     limit for all of it (60)
#   --cpus N           processors of the guest (2)
#   --no-rxe           without the module and the device
#   --can              with a virtual CAN bus in place of them, vcan0
#   --modules NAMES    without them, and with these modules (by commas) instead
#   --siw WORDS        with siw0 (iWARP) and not rxe0; the words of siw_load.sh
#   --netdev OPTIONS   QEMU's network behind the guest's eth0
#                      (user,restrict=on: nobody)
#   --device OPTIONS   further options of the network device, as mac=...,csum=off
#   --address ADDRESS  of eth0 (10.0.2.15/24); may be given again
#   --mtu BYTES        of eth0 (1500)
#   --log FILE         keeps the guest's console there
#
# The command runs as the guest's root in the host's root folder, which it can
# read and not write, so every program of the host is there, under its path; in
# the current folder and with the BUSBAR_ variables of the caller. $TMPDIR is
# writable and memory. It is processor emulation (TCG), about ten times slower.
#
# Exit status: the command's; 77 no QEMU or no kernel here; 125 the guest did not
# start or did not end in time.
set -eu

skip() {
	echo "skipped: $*"
	exit 77
}

usage() {
	sed -n '4,19s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

limit=60
cpus=2
rxe=1
modules=rdma_ucm,crc32_generic,rdma_rxe,sch_netem
siw=
can=
netdev=user,restrict=on
device=
addresses=
mtu=1500
log=
while [ $# -gt 0 ]; do
	case $1 in
	--time) limit=$2; shift ;;
	--cpus) cpus=$2; shift ;;
	--no-rxe) modules='' rxe='' ;;
	--modules)
		modules=$2
		rxe=
		shift
		;;
	--can)
		can=yes
		modules=can_raw,vcan,sch_netem
		;;
	--siw)
		siw=$2
		modules=rdma_ucm,crc32c_generic,libcrc32c,sch_netem
		shift
		;;
	--netdev) netdev=$2; shift ;;
	--device) device=,$2; shift ;;
	--address) addresses="$addresses $2"; shift ;;
	--mtu) mtu=$2; shift ;;
	--log) log=$2; shift ;;
	-*) usage ;;
	*) break ;;
	esac
	shift
done
[ $# -ge 3 ] && [ "$2" = -- ] || usage
kernel=$1
shift 2

qemu=qemu-system-x86_64
[ "$(uname -m)" = x86_64 ] || skip "the guest runs this machine's programs, and is x86-64"
command -v "$qemu" >/dev/null || skip "$qemu is not installed (qemu-system-x86)"
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "$siw" ]; then
	"$here/siw.sh" "$kernel" || exit
else
	"$here/kernel.sh" "$kernel" || exit
fi
kernel=$(cd "$kernel" && pwd)

work=$(mktemp -d "${TMPDIR:-/tmp}/busbar-guest.XXXXXX")
qemu_pid=
cleanup() {
	status=$?
	trap - EXIT INT TERM
	[ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null || true
	[ -z "$log" ] || cp "$work/console" "$log" 2>/dev/null || true
	rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

quote() {
	printf "'%s' " "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"
}

{
	echo "export HOME=/root TMPDIR=/dev/shm LC_ALL=C"
	echo "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	env | sed -n 's/^\(BUSBAR[A-Z_]*\)=.*/\1/p' | while read -r name; do
		eval "value=\$$name"
		echo "export $name=$(quote "$value")"
	done
	echo "ip link set lo up"
	for address in ${addresses:-10.0.2.15/24}; do
		case $address in
		*:*) echo "ip address add $address dev eth0 nodad" ;;
		*) echo "ip address add $address dev eth0" ;;
		esac
	done
	echo "ip link set eth0 mtu $mtu up"
	if [ -n "$siw" ]; then
		echo "$(quote "$here/siw_load.sh")$(quote "$kernel")$siw || exit 125"
	elif [ -n "$can" ]; then
		echo "ip link add vcan0 type vcan || exit 125"
	elif [ -n "$rxe" ]; then
		echo "rdma link add rxe0 type rxe netdev eth0 || exit 125"
	fi
	echo "cd $(quote "$PWD")"
	for word; do
		quote "$word"
	done
	echo
} >"$work/run"

# Not the microvm machine: without an HPET its kernel cannot tell the speed of the
# processor on a loaded host, and then waits for ever. On such a host it would also take the timer,
# whose interrupts come late, for one that does not work (no_timer_check).
timeout --kill-after=2 "$limit" "$qemu" \
	-machine q35,accel=tcg,sata=off,usb=off,vmport=off -cpu max -smp "$cpus" \
	-m 768 -nodefaults -no-user-config -display none -no-reboot \
	-serial "file:$work/console" \
	-kernel "$kernel/vmlinuz" -initrd "$kernel/initramfs" \
	-append "console=ttyS0 reboot=t panic=-1 quiet no_timer_check busbar.work=$work busbar.modules=$modules" \
	-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
	-device virtio-9p-pci,fsdev=root,mount_tag=root \
	-fsdev "local,id=work,path=$work,security_model=none" \
	-device virtio-9p-pci,fsdev=work,mount_tag=work \
	-netdev "$netdev,id=eth0" -device virtio-net-pci,netdev=eth0,romfile="$device" \
	</dev/null >"$work/qemu.log" 2>&1 &
qemu_pid=$!
ended=0
wait "$qemu_pid" || ended=$?
qemu_pid=

[ ! -s "$work/output" ] || cat "$work/output"
if [ -s "$work/status" ]; then
	exit "$(cat "$work/status")"
fi
case $ended in
124 | 137) echo "guest.sh: the command did not end in $limit seconds" ;;
*) echo "guest.sh: the guest did not get to the command's end (qemu's status $ended)" ;;
esac
tail -n 20 "$work/qemu.log" "$work/console" 2>/dev/null
exit 125
