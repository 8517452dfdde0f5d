# SPDX-License-Identifier: BSD-2-Clause
#
# The table of scripts/bench-beside.sh, which sets: rows, values (file of "ROW NAME FIGURE RUN
# VALUE"), json, runs, cpus. Reads the table of pairs. Exit status 77: there is no ratio.

# A ratio is of one turn. Where what is beside is 0 (steps missed) there is none in that turn; JSON
# has 0 then.

# Sorts v[1..n].
function sort(v, n,    i, j, x) {
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (j = i - 1; j > 0 && v[j] > x; j--)
			v[j + 1] = v[j]
		v[j + 1] = x
	}
}

function median(v, n) {
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

# How many of n sorted values lie outside of the interval on each side. The median of what they
# are drawn from lies below the kth of n with the probability of fewer than k heads of n coins.
function outside(n,    k, p, below) {
	p = 1
	for (k = 1; k <= n; k++)
		p /= 2
	below = 0
	for (k = 0; k < n / 2; k++) {
		below += p
		if (2 * below > 0.07)
			return k > 0 ? k - 1 : 0
		p = p * (n - k) / (k + 1)
	}
	return 0
}

function unit(figure) {
	return figure == "rate" ? "GB/s" : figure == "messages" ? "M/s" : figure == "cpu" ? "CPUs" : \
		figure == "missed" ? "%" : "us"
}

# What a floor is in this run, over the rows.
function machine(name, label,    v, n, i) {
	for (i = 1; i <= machines[name]; i++)
		v[i] = at[name, i]
	n = machines[name]
	if (!n)
		return
	sort(v, n)
	if (json)
		floors = floors sprintf("%s\"%s\": {\"median\": %g, \"low\": %g, \"high\": %g}",
			floors == "" ? "" : ", ", name, median(v, n), v[1], v[n])
	else
		printf "%s %.4g ns [%.4g to %.4g]\n", label, median(v, n), v[1], v[n]
}

BEGIN {
	while ((getline line <values) > 0) {
		split(line, f, " ")
		if (f[2] == "machine")
			at[f[3], ++machines[f[3]]] = f[5]
		else
			value[f[1], f[2] ":" f[3], f[4]] = f[5]
	}
	split(rows, names, " ")
	for (i in names)
		wanted[names[i]] = 1
	machine("cacheline_oneway_ns", "cache line to another CPU, one way")
	machine("eventfd_wakeup_ns", "waking a sleeping process (eventfd)")
	machine("system_call_ns", "system call that does nothing")
	if (!json)
		printf "%d turns on CPUs %s\n%-13s %-7s %-20s %14s  %-18s %14s  %-26s %2s  %s\n", runs, cpus,
			"row", "where", "ours", "", "beside", "", "ratio", "n", "wanted"
}

$1 in wanted {
	n = m = 0
	for (run = 1; run <= runs; run++) {
		a = value[$1, $3, run]
		b = value[$1, $4, run]
		if (a == "" || b == "")
			continue
		n++
		ours[n] = a
		beside[n] = b
		if (b > 0)
			ratio[++m] = a / b
	}
	if (!n)
		next
	sort(ours, n)
	sort(beside, n)
	sort(ratio, m)
	k = outside(m)
	split($3, own, ":")
	split($4, other, ":")
	ratios++
	if (json)
		printf "%s{\"row\": \"%s\", \"where\": \"%s\", \"ours\": \"%s\", \"value\": %g, \"beside\": \"%s\", " \
			"\"beside_value\": %g, \"unit\": \"%s\", \"ratio\": %g, \"low\": %g, \"high\": %g, " \
			"\"n\": %d, \"wanted\": \"%s\"}", ratios == 1 ? "{\"rows\": [\n" : ",\n", $1, $2, $3,
			median(ours, n), $4, median(beside, n), unit(own[2]), median(ratio, m), ratio[1 + k],
			ratio[m - k], n, $5
	else
		printf "%-13s %-7s %-20s %9.4g %-4s  %-18s %9.4g %-4s  %-26s %2d  %s\n", $1, $2, $3,
			median(ours, n), unit(own[2]), $4, median(beside, n), unit(other[2]),
			m ? sprintf("%.3g [%.3g to %.3g]", median(ratio, m), ratio[1 + k],
				ratio[m - k]) : "beside is 0", n, $5
}

END {
	if (json)
		printf "%s],\n\"runs\": %d, \"cpus\": \"%s\", \"floor\": {%s}}\n", ratios ? "\n" : "{\"rows\": [",
			runs, cpus, floors
	exit ratios ? 0 : 77
}
