# SPDX-License-Identifier: BSD-2-Clause
# symbols.list -> linker version script, or with -v make=calls the list of the
# functions that the system's library has as well. Nodes come in the order of the
# list and each depends on the one before it, as in the library that we stand in
# for.
BEGIN {
	if (make == "calls")
		print "/* SPDX-License-Identifier: BSD-2-Clause */\n" \
		      "/* Made by map.awk from symbols.list. */\n" \
		      "#define FORWARD_CALLS(X) \\"
}
/^#/ || NF < 2 { next }
make == "calls" {
	if ($1 ~ /^rdma_/ && $2 ~ /^RDMACM_/)
		printf "\tX(%s, \"%s\") \\\n", $1, $2
	next
}
$2 != node {
	if (node != "")
		printf "}%s;\n", before == "" ? "" : " " before
	before = node
	node = $2
	printf "%s {\n\tglobal:\n", node
}
{ printf "\t\t%s;\n", $1 }
END {
	if (make == "calls") print ""
	else printf "\tlocal: *;\n}%s;\n", before == "" ? "" : " " before
}
