# SPDX-License-Identifier: BSD-2-Clause
# One line for people from one line of the hook `stats` in its JSON form.

# The number behind "key": from where $0 stands now.
function of(key) {
	if (!match($0, "\"" key "\":[-+.0-9e]+"))
		return 0
	return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
}

{
	received = of("received")
	if (!received)
		next
	line = sprintf("  B has received %8d, %d gaps", received, of("lost"))
	# Each metric is an object of its own; owd is the one-way delay.
	if (match($0, /"owd":/)) {
		$0 = substr($0, RSTART)
		line = line sprintf(", latency in us: p50 %.2f  p99 %.1f  max %.1f", of("p50") * 1e6, of("p99") * 1e6, of("highest") * 1e6)
	}
	print line
}
