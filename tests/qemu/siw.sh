#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# siw.sh DIR: Linux's siw (iWARP over TCP) for the kernel that kernel.sh has put into DIR, because
# Debian's kernels are built without it: DIR/siw/VARIANT.ko, one for each choice of the
# constants in its siw_main.c, which are no parameters:
#
#   plain   as it is: asks for no CRC and no RTR
#   p2p     peer_to_peer: as an initiator it sends an RTR (a WRITE or READ of 0 bytes)
#   crc     mpa_crc_required: asks for CRC
#   strict  mpa_crc_required and mpa_crc_strict
#
# The source, headers and tools are Debian packages of the kernel's own version; they come from
# apt, are unpacked and never installed. About 150 MB to load and 20 s of a processor, once.
# Exit status: 0 there, 77 they cannot be had here.
set -eu

variants="plain p2p crc strict"

dir=${1:?the folder for the kernel}
here=$(cd "$(dirname "$0")" && pwd)
"$here/kernel.sh" "$dir" || exit
dir=$(cd "$dir" && pwd)
. "$here/packages.sh"

# constants VARIANT: names of those that are true.
constants() {
	case $1 in
	p2p) echo peer_to_peer ;;
	crc) echo mpa_crc_required ;;
	strict) echo mpa_crc_required mpa_crc_strict ;;
	esac
}

# depends_on PATTERN: the package that those of the headers depend on.
depends_on() {
	# shellcheck disable=SC2086 # words
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
	[ -n "$common" ] && [ -n "$tools" ] ||
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
	for package in "$work"/packages/*.deb; do
		case $package in
		*/linux-source-*) continue ;;
		*) dpkg-deb -x "$package" "$work/tree" ;;
		esac
	done
	# The only path that is absolute in the headers.
	sed -i "s|/usr/src|$work/tree/usr/src|" "$work/tree/usr/src/$headers/Makefile"
	dpkg-deb --fsys-tarfile "$work"/packages/linux-source-*.deb |
		tar -xOf - "./usr/src/$source.tar.xz" | xz -dc |
		tar -xf - -C "$work" "$source/drivers/infiniband/sw/siw"
	cp -r "$work/$source/drivers/infiniband/sw/siw" "$work/siw"
	rm -rf "$work/packages" "${work:?}/$source"
}

# The compiler that the kernel was built with, where it is here.
compiler() {
	name=$(sed -n 's/^CC = .*\(gcc-[0-9]*\)$/\1/p' \
		"$work/tree/usr/src/$headers/.kernelvariables")
	command -v "${name:-gcc}" 2>/dev/null || command -v gcc
}

# One fault of siw is repaired, because it ends about one connection in twenty of emulated guests:
# data that come between the frame of MPA and the change of the socket's callback wake nobody, so
# a first message that is the only one is never looked at.
repair() {
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

build() {
	cc=$(compiler)
	repair
	cp "$work/siw/siw_main.c" "$work/siw_main.c"
	mkdir "$work/modules"
	for variant in $variants; do
		cp "$work/siw_main.c" "$work/siw/siw_main.c"
		for constant in $(constants "$variant"); do
			sed -i "s/^const bool $constant;/const bool $constant = true;/" \
				"$work/siw/siw_main.c"
			grep -q "^const bool $constant = true;" "$work/siw/siw_main.c" ||
				skip "siw of $version has no constant $constant"
		done
		make -s -C "$work/tree/usr/src/$headers" M="$work/siw" CC="$cc" \
			CONFIG_RDMA_SIW=m KCFLAGS=-g0 modules >"$work/log" 2>&1 || {
			cat "$work/log"
			echo "siw.sh: siw cannot be built for $headers"
			exit 1
		}
		cp "$work/siw/siw.ko" "$work/modules/$variant.ko"
	done
	echo "$what" >"$work/modules/version"
	rm -rf "$dir/siw"
	mv "$work/modules" "$dir/siw"
}

version=$(cat "$dir/version")
release=$(ls "$dir/root/lib/modules")
headers=linux-headers-$release
source=linux-source-$(echo "$release" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')
# Two tests at a time must not both make it.
exec 9>"$dir/lock"
flock 9 2>/dev/null || true
what="$version, $variants, repaired"
if [ "$(cat "$dir/siw/version" 2>/dev/null)" != "$what" ]; then
	work=$dir/siw.work
	rm -rf "$work"
	mkdir "$work"
	download
	unpack
	build
	rm -rf "$work"
fi
