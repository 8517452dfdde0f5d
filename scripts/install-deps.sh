#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Debian packages that building ("build"), a first look ("run") or testing ("test")
# needs: says nothing when all are there, else installs them, or prints the line that does.
# Programs and libraries from elsewhere are left alone: without dpkg it only
# checks that they can be found.
set -eu

build_packages="gcc libc6-dev meson ninja-build python3 pkg-config libibverbs-dev
	librdmacm-dev libjansson-dev libconfig-dev scdoc"
test_packages="libcmocka-dev ibverbs-utils ibverbs-providers rdmacm-utils
	iproute2 procps"
# What README.md shows first; nothing of ours needs them.
run_packages="ibverbs-utils perftest"
# Other people's programs (tests/programs); the tests do without those that
# cannot be had.
peer_packages="perftest qperf fio libfabric-bin ucx-utils python3-pyverbs python3-jsonschema mypy
	python3-prometheus-client python3-websockets node-ws graphviz openssl
	netcat-openbsd socat iperf3 curl openmpi-bin
	libopenmpi-dev mpich libmpich-dev infiniband-diags ibsim-utils chromium"
# Libraries of modules, and the header of the static probes; what needs one that
# cannot be had is left out.
module_packages="liblua5.4-dev libssl-dev systemtap-sdt-dev libzmq3-dev libnng-dev
	librabbitmq-dev librdkafka-dev libhiredis-dev libcurl4-openssl-dev
	libmodbus-dev libcomedi-dev libarchive-dev libexpat1-dev libibumad-dev"
# Without these builds and tests leave out what needs them and say so.
ci_packages="clang qemu-system-x86 abigail-tools"
# The same, but not every system has them; the servers are no part of "test", because Debian
# starts them where they are installed, some of them for the network.
ci_wanted="tshark redis-server memcached nginx mosquitto mosquitto-clients rabbitmq-server influxdb nats-server kcat
	libmosquitto-dev libnats-dev nng-utils nanomsg-utils python3-zmq python3-scapy
	nftables python3-pymodbus python3-serial-asyncio
	can-utils python3-can
	mbpoll opensm libibmad-dev"

usage() {
	echo "usage: $0 build|run|test|ci" >&2
	exit 2
}

[ $# -eq 1 ] || usage
wanted=
case $1 in
build) packages=$build_packages wanted=$module_packages ;;
run) packages=$build_packages wanted="$module_packages $run_packages" ;;
test) packages="$build_packages $test_packages" wanted="$module_packages $peer_packages" ;;
ci)
	packages="$build_packages $test_packages $ci_packages"
	wanted="$module_packages $peer_packages $ci_wanted"
	;;
*) usage ;;
esac

# Prints what is missing; by the tools and libraries themselves.
missing_without_dpkg() {
	for program in cc meson ninja pkg-config; do
		command -v "$program" >/dev/null || echo "$program"
	done
	for library in libibverbs librdmacm jansson libconfig; do
		pkg-config --exists "$library" 2>/dev/null || echo "$library"
	done
}

# missing_with_dpkg PACKAGES: those that are not installed, on one line.
missing_with_dpkg() {
	# shellcheck disable=SC2086 # a list of words
	dpkg-query -W -f '${db:Status-Status} ${Package}\n' $1 2>/dev/null |
		awk -v want="$1" '
			$1 == "installed" { have[$2] = 1 }
			END {
				# pkgconf took the place of pkg-config.
				n = split(want, w)
				for (i = 1; i <= n; i++)
					if (!(w[i] in have))
						print w[i]
			}' | tr '\n' ' ' | sed 's/ $//'
}

if ! command -v dpkg-query >/dev/null; then
	missing=$(missing_without_dpkg)
	[ -z "$missing" ] && exit 0
	echo "busbar needs, and this is not a Debian system where it could install them:" >&2
	echo "$missing" | sed 's/^/  /' >&2
	exit 1
fi

missing=$(missing_with_dpkg "$packages")
case " $missing " in
*" pkg-config "*)
	command -v pkg-config >/dev/null &&
		missing=$(echo "$missing" | sed 's/\<pkg-config\> *//')
	;;
esac
wanted=$(missing_with_dpkg "$wanted")
[ -z "$missing$wanted" ] && exit 0

if [ "$(id -u)" = 0 ]; then
	as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
	as_root="sudo -n"
elif command -v sudo >/dev/null && [ -t 0 ] && [ -t 2 ]; then
	as_root=sudo
elif [ -z "$missing" ]; then
	echo "left out; to have them, apt-get install $wanted" >&2
	exit 0
else
	echo "missing packages; install them with" >&2
	echo "  apt-get install $missing $wanted" >&2
	exit 1
fi

# On stdout, so that the caller can see that something changed.
# shellcheck disable=SC2086
echo "installing" $missing $wanted
apt() {
	# shellcheck disable=SC2086
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
		--no-install-recommends "$@" >&2
}
# The package lists may be absent or too old; try first without a download.
# shellcheck disable=SC2086
apt install $missing $wanted && exit 0
apt update || true
# shellcheck disable=SC2086
apt install $missing $wanted && exit 0
# shellcheck disable=SC2086
if [ -n "$missing" ] && ! apt install $missing; then
	echo "could not install them; try" >&2
	echo "  apt-get install $missing" >&2
	exit 1
fi
for package in $wanted; do
	apt install "$package" ||
		echo "$package cannot be had; what needs it is left out" >&2
done
