# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
FOLDER=plugin
. "$(dirname "$0")/../gateways.sh"
