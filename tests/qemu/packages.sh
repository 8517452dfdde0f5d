# SPDX-License-Identifier: BSD-2-Clause
#
# For kernel.sh and siw.sh, which read this: packages by apt into the folder $dir, without
# installing them. $apt_options are those of apt-get and apt-cache; $suite as of kernel.sh.
# shellcheck shell=sh disable=SC2034,SC2154

skip() {
	echo "skipped: $*"
	exit 77
}

# The package lists of the system.
apt_begin() {
	for program in apt-get apt-cache dpkg-deb; do
		command -v "$program" >/dev/null ||
			skip "$program is not here: the guest's kernel is a Debian package"
	done
	# As root apt would become a user who may not write here.
	apt_options="-o APT::Sandbox::User=$(id -un)"
}

apt_update() {
	# shellcheck disable=SC2086 # words
	timeout 60 apt-get -qq $apt_options update >"$dir/download.log" 2>&1 || true
}

# Lists of the same places in $dir, where the system's are not there.
apt_own_lists() {
	mkdir -p "$dir/apt/lists/partial" "$dir/apt/archives/partial"
	apt_options="$apt_options -o Dir::State::lists=$dir/apt/lists
		-o Dir::Cache=$dir/apt"
	apt_update
}

# An apt that knows only the packages of $suite.
apt_of_suite() {
	uri=$(apt-get indextargets --format '$(SUITE) $(CODENAME) $(REPO_URI)' \
		'Created-By: Packages' | awk -v base="${suite%-backports}" '
			$1 == base || $2 == base { print $3; exit }')
	[ -n "$uri" ] || skip "apt knows no place of ${suite%-backports}"
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -r $keys ] || skip "no $keys (debian-archive-keyring)"
	mkdir -p "$dir/apt/lists/partial" "$dir/apt/archives/partial"
	echo "deb [signed-by=$keys] $uri $suite main" >"$dir/apt/sources.list"
	apt_options="$apt_options -o Dir::State::lists=$dir/apt/lists
		-o Dir::Cache=$dir/apt -o Dir::Etc::sourcelist=$dir/apt/sources.list
		-o Dir::Etc::sourceparts=-"
	apt_update
}
