#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A second sender is refused and says so, while the first goes on; when the
# first has ended it takes its place.
. "$(dirname "$0")/common.sh"

receiver receiver
receiver_pid=$last
until_true logged receiver 1 'listening on'
sender first $((port + 1))
first_pid=$last
until_true has_rows receiver 100

sender second $((port + 1))
second_pid=$last
until_true logged second 1 'refused'
rows=$(grep -vc '^#' "$tmp/receiver.csv")
until_true has_rows receiver $((rows + 200))
logged first 1 'connection lost' && fail "the first sender was disturbed"

stops "$first_pid"
until_true logged second 1 'connected to'
rows=$(grep -vc '^#' "$tmp/receiver.csv")
until_true has_rows receiver $((rows + 200))
stops "$second_pid"
stops "$receiver_pid"
exit 0
