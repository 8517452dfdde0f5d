#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# siw_load.sh KERNEL_DIR VARIANT: in the guest (guest.sh), loads this variant of siw (siw.sh) in
# place of the one that is loaded, and makes the device siw0 of eth0.
set -eu
kernel=$1
variant=$2
rdma link delete siw0 2>/dev/null || true
! grep -q '^siw ' /proc/modules || "$kernel/busybox" rmmod siw
"$kernel/busybox" insmod "$kernel/siw/$variant.ko"
rdma link add siw0 type siw netdev eth0
