#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# siw_load.sh KERNEL_DIR WORD...: in the guest (guest.sh), loads siw (siw.sh) where it is not loaded,
# makes the device siw0 of eth0, and sets what its next connections are made with:
#
#   plain   as it is: revision 2, no RTR, CRC if the peer asks for it
#   p2p     as an initiator it offers a WRITE and a READ as RTR
#   write, read  only this one
#   rev1    as an initiator it sends revision 1
#   crc     asks for CRC
#   strict  refuses CRC, unless it asks for it
set -eu
kernel=$1
shift
if ! grep -q '^siw ' /proc/modules; then
	"$kernel/busybox" insmod "$kernel/siw/siw.ko"
	rdma link add siw0 type siw netdev eth0
fi

set_parameter() {
	echo "$2" >"/sys/module/siw/parameters/$1"
}

# The kinds of RTR as they are in the frame, of this processor's byte order.
write_rtr=128
read_rtr=64
set_parameter mpa_version 2
set_parameter peer_to_peer N
set_parameter rtr_type $((write_rtr + read_rtr))
set_parameter mpa_crc_required N
set_parameter mpa_crc_strict N
for word; do
	case $word in
	plain) ;;
	p2p) set_parameter peer_to_peer Y ;;
	write)
		set_parameter peer_to_peer Y
		set_parameter rtr_type $write_rtr
		;;
	read)
		set_parameter peer_to_peer Y
		set_parameter rtr_type $read_rtr
		;;
	rev1) set_parameter mpa_version 1 ;;
	crc) set_parameter mpa_crc_required Y ;;
	strict) set_parameter mpa_crc_strict Y ;;
	*)
		echo "siw_load.sh: $word is no variant of siw"
		exit 2
		;;
	esac
done
