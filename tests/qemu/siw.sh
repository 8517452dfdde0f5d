#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# siw.sh DIR: Linux's siw (iWARP over TCP) for the kernel that kernel.sh has put into DIR, because
# Debian's kernels are built without it: DIR/siw/siw.ko. Its switches are constants in its sources;
# here they become parameters of the module (siw_load.sh sets them), so that one build and one guest
# have all of them:
#
#   peer_to_peer      as an initiator it sends an RTR, of the kinds in rtr_type
#   mpa_crc_required  asks for CRC
#   mpa_crc_strict    without mpa_crc_required: refuses CRC
#   mpa_version       of its requests
#
# The source, headers and tools are Debian packages of the kernel's own version; they come from
# apt, are unpacked and never installed. About 150 MB to load and 30 s of a processor, once.
# Exit status: 0 there, 77 they cannot be had here.
set -eu

# What is taken out of the kernel's source, without reading it to the end.
files="iwarp.h siw.h siw_cm.c siw_cm.h siw_cq.c siw_main.c siw_mem.c siw_mem.h siw_qp.c siw_qp_rx.c
	siw_qp_tx.c siw_verbs.c siw_verbs.h"

dir=${1:?the folder for the kernel}
here=$(cd "$(dirname "$0")" && pwd)
"$here/kernel.sh" "$dir" || exit
dir=$(cd "$dir" && pwd)
# shellcheck source=tests/qemu/packages.sh
. "$here/packages.sh"

# depends_on PATTERN: the package that those of the headers depend on.
depends_on() {
	# shellcheck disable=SC2086,SC2154 # words, of packages.sh
	apt-cache $apt_options show "$headers=$version" 2>/dev/null |
		grep -o "$1" | head -n 1
}

download() {
	for program in gcc make xz; do
		command -v $program >/dev/null || skip "no $program, which building siw takes"
	done
	apt_begin
	common=$(depends_on 'linux-headers-[^ ]*-common')
	if [ -z "$common" ]; then
		apt_own_lists
		common=$(depends_on 'linux-headers-[^ ]*-common')
	fi
	tools=$(depends_on 'linux-kbuild-[^ ]*')
	[ -n "$common" ] || tools=
	[ -n "$tools" ] ||
		skip "apt knows no $headers of version $version, that of the guest's kernel"
	mkdir -p "$work/packages"
	echo "downloading $source, $headers and what they need into $dir"
	# shellcheck disable=SC2086
	(cd "$work/packages" && timeout 120 apt-get -qq $apt_options download \
		"$headers=$version" "$common=$version" "$tools" "$source=$version") \
		>"$dir/download.log" 2>&1 ||
		skip "apt-get download $headers $source of version $version: $(tail -n 1 "$dir/download.log")"
	rm -rf "$dir/apt"
}

unpack() {
	mkdir "$work/tree"
	for package in "$work"/packages/*.deb; do
		case $package in
		*/linux-source-*) continue ;;
		esac
		# Two files in three are of other processors, or say when to compile once more.
		dpkg-deb --fsys-tarfile "$package" | tar -xf - -C "$work/tree" \
			--exclude='*/arch/[!x]*' --exclude='*/include/config/[A-Z]*' \
			--exclude='*/include/dt-bindings'
	done
	# The only path that is absolute in the headers.
	sed -i "s|/usr/src|$work/tree/usr/src|" "$work/tree/usr/src/$headers/Makefile"
	folder=$source/drivers/infiniband/sw/siw
	# Those in front of the last tar end by a closed pipe.
	# shellcheck disable=SC2046,SC2086 # words
	dpkg-deb --fsys-tarfile "$work"/packages/linux-source-*.deb 2>/dev/null |
		tar -xOf - "./usr/src/$source.tar.xz" 2>/dev/null | xz -dc 2>/dev/null |
		tar -xf - -C "$work" --occurrence=1 $(printf "$folder/%s " $files) ||
		skip "siw of $version is not the one that siw.sh knows"
	mv "$work/$folder" "$work/siw"
	rm -rf "$work/packages" "${work:?}/$source"
}

# The compiler that the kernel was built with, where it is here.
compiler() {
	name=$(sed -n 's/^CC = .*\(gcc-[0-9]*\)$/\1/p' \
		"$work/tree/usr/src/$headers/.kernelvariables")
	command -v "${name:-gcc}" 2>/dev/null || command -v gcc
}

# parameters TYPE NAME...: constants of siw, which become parameters of the module.
parameters() {
	type=$1
	shift
	for name; do
		sed -i -E -e "s/^(extern |static )?(const )?([a-z_0-9]+) $name( = .*)?;/\\1\\3 $name\\4;/" \
			"$work"/siw/*.h "$work"/siw/*.c
		file=$(grep -lE "^(static )?[a-z_0-9]+ $name( = .*)?;" "$work"/siw/*.c) ||
			skip "siw of $version has no constant $name"
		echo "module_param($name, $type, 0644);" >>"$file"
	done
}

# Two faults of siw are repaired, because they end about one connection in twenty of emulated guests.
# Data that come between the frame of MPA and the change of the socket's callback wake nobody, so
# a first message that is the only one is never looked at.
repair_first_message() {
	sed -i -e '/^static int siw_proc_mpareply(/i\
static void siw_look_again(struct siw_cep *cep)\
{\
	struct sock *sk = cep->sock->sk;\
\
	lock_sock(sk);\
	if (!skb_queue_empty(&sk->sk_receive_queue))\
		sk->sk_data_ready(sk);\
	release_sock(sk);\
}\
' -e '/^static int siw_proc_mpareply(/,/^}/ {
	/^\t\t\tcep->state = SIW_EPSTATE_RDMA_MODE;$/a\
		siw_look_again(cep);
}' -e '/^int siw_accept(/,/^}/ {
	/^\tsiw_cep_set_free(cep);$/i\
	siw_look_again(cep);
}' "$work/siw/siw_cm.c"
	[ "$(grep -c 'siw_look_again(' "$work/siw/siw_cm.c")" -eq 3 ] ||
		skip "siw of $version is not the one that siw.sh can repair"
}

# When the peer closes at once on a message, the end may come before siw has looked whether it goes on
# sending: then a message that has gone as a whole completes with IBV_WC_LOC_QP_OP_ERR.
repair_last_message() {
	last='(c_tx->pkt.ctrl.ddp_rdmap_ctrl \& DDP_FLAG_LAST)'
	sed -i "/^static int siw_qp_sq_proc_tx(/,/^}/ \
		s/^\t\tif (unlikely(c_tx->tx_suspend)) {\$/\t\tif (c_tx->tx_suspend \&\& !$last) {/" \
		"$work/siw/siw_qp_tx.c"
	grep -q 'tx_suspend && !(c_tx->pkt' "$work/siw/siw_qp_tx.c" ||
		skip "siw of $version is not the one that siw.sh can repair"
}

# What those of the headers that are programs take of this system.
check_tools() {
	library=$(ldd "$work"/tree/usr/lib/linux-kbuild-*/tools/objtool/objtool |
		sed -n 's/^[[:space:]]*\(.*\) => not found$/\1/p' | head -n 1)
	[ -z "$library" ] || skip "no $library, which the kernel's tools take"
}

# As one file: the kernel's headers take most of the time.
build() {
	check_tools
	repair_first_message
	repair_last_message
	parameters bool peer_to_peer mpa_crc_required mpa_crc_strict
	parameters byte mpa_version
	parameters ushort rtr_type
	(cd "$work/siw" && printf '#include "%s"\n' siw_*.c >all.c)
	printf 'obj-m := siw.o\nsiw-y := all.o\n' >"$work/siw/Makefile"
	make -s -C "$work/tree/usr/src/$headers" M="$work/siw" CC="$(compiler)" KCFLAGS=-g0 \
		modules >"$work/log" 2>&1 || {
		cat "$work/log"
		echo "siw.sh: siw cannot be built for $headers"
		exit 1
	}
	mkdir "$work/module"
	cp "$work/siw/siw.ko" "$work/module/"
	echo "$what" >"$work/module/version"
	rm -rf "$dir/siw"
	mv "$work/module" "$dir/siw"
}

version=$(cat "$dir/version")
release=$(ls "$dir/root/lib/modules")
headers=linux-headers-$release
source=linux-source-$(echo "$release" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')
# Two tests at a time must not both make it.
exec 9>"$dir/lock"
flock 9 2>/dev/null || true
what="$version, repaired twice, with parameters"
if [ "$(cat "$dir/siw/version" 2>/dev/null)" != "$what" ]; then
	work=$dir/siw.work
	rm -rf "$work"
	mkdir "$work"
	download
	unpack
	build
	rm -rf "$work"
fi
