#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# kernel.sh DIR [SUITE]: a Debian kernel with rdma_rxe, vcan and what it takes to boot it, in
# DIR: vmlinuz and initramfs. Packages come from apt, are unpacked and never
# installed, so no privilege is needed. Nothing is done when they are there.
# SUITE: where the kernel is from, such as bookworm-backports; one that the system
# does not know is looked for where its own packages are from.
# The version of the kernel's package is in DIR/version.
# Exit status: 0 there, 77 they cannot be had here.
set -eu

# virtio: the machine's devices; 9p: the host's files; crc32_generic: rxe asks
# the crypto interface for it, which no dependency tells, and siw (siw.sh) for
# crc32c_generic; sch_netem: loses packets; can-raw, vcan: a virtual CAN bus; comedi_test: a
# measuring board without hardware; uhid:
# HID devices that a program makes.
wanted="virtio_pci virtio_net 9p 9pnet_virtio ib_uverbs rdma_ucm rdma_rxe iw_cm
	crc32_generic crc32c_generic libcrc32c dummy sch_netem can-raw vcan comedi_test
	uhid hid-generic"

dir=${1:?the folder for the kernel}
suite=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
busybox=$dir/busybox
. "$here/packages.sh"

# The image's package and its version change; linux-image-amd64 names today's.
image_name() {
	# shellcheck disable=SC2086 # words
	apt-cache $apt_options depends linux-image-amd64 2>/dev/null |
		awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2 }' |
		tail -n 1
}

download() {
	apt_begin
	basic_options=$apt_options
	[ -z "$suite" ] || apt_of_suite
	image=$(image_name)
	if [ -z "$image" ] && [ -z "$suite" ]; then
		apt_own_lists
		basic_options=$apt_options
		image=$(image_name)
	fi
	[ -n "$image" ] || skip "apt knows no linux-image-amd64${suite:+ in $suite}"
	rm -rf "$dir/packages"
	mkdir "$dir/packages"
	echo "downloading $image and busybox-static into $dir"
	# shellcheck disable=SC2086
	(cd "$dir/packages" && timeout 60 apt-get -qq $apt_options download "$image" &&
		timeout 60 apt-get -qq $basic_options download busybox-static) \
		>"$dir/download.log" 2>&1 ||
		skip "apt-get download $image busybox-static: $(tail -n 1 "$dir/download.log")"
	rm -rf "$dir/apt"
}

# The files of all modules that `wanted` needs, below $1, one per line.
module_files() {
	awk -v wanted="$wanted" '
		{ sub(/:/, "", $1); file = $1; name = file
		  sub(/.*\//, "", name); sub(/\.ko.*/, "", name)
		  path[name] = file; $1 = ""; needs[file] = $0 }
		function take(file,    n, i, list) {
			if (file in taken) return
			taken[file] = 1
			n = split(needs[file], list, " ")
			for (i = 1; i <= n; i++) take(list[i])
			print file
		}
		END {
			n = split(wanted, w)
			for (i = 1; i <= n; i++)
				if (w[i] in path) take(path[w[i]])
				else print w[i] " is not a module" > "/dev/stderr"
		}' "$1/modules.dep"
}

unpack() {
	tree=$dir/tree
	rm -rf "$tree" "$dir/root"
	for package in "$dir"/packages/*.deb; do
		dpkg-deb -x "$package" "$tree"
		case $package in
		*/linux-image-*) dpkg-deb -f "$package" Version >"$dir/version" ;;
		esac
	done
	cp "$tree/bin/busybox" "$busybox"
	version=$(ls "$tree/lib/modules")
	"$busybox" depmod -b "$tree" "$version"
	from=$tree/lib/modules/$version
	to=$dir/root/lib/modules/$version
	mkdir -p "$to"
	module_files "$from" | while read -r file; do
		cp "$from/$file" "$to/"
	done
	cp "$from/modules.builtin" "$from/modules.order" "$to/"
	"$busybox" depmod -b "$dir/root" "$version"
	cp "$tree/boot/vmlinuz-$version" "$dir/vmlinuz"
	rm -rf "$tree" "$dir/packages"
}

# Two tests at a time must not both make it.
exec 9>"$dir/lock"
flock 9 2>/dev/null || true
if [ "$(cat "$dir/modules" 2>/dev/null)" != "$wanted" ]; then
	download
	unpack
	echo "$wanted" >"$dir/modules"
	rm -f "$dir/initramfs"
fi
if [ ! -e "$dir/initramfs" ] || [ "$here/init" -nt "$dir/initramfs" ] ||
	[ "$0" -nt "$dir/initramfs" ]; then
	root=$dir/root
	mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/host"
	cp "$busybox" "$root/bin/busybox"
	cp "$here/init" "$root/init"
	chmod +x "$root/init"
	(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) |
		gzip -1 >"$dir/initramfs.new"
	mv "$dir/initramfs.new" "$dir/initramfs"
fi
