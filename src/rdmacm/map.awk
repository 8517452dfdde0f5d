# SPDX-License-Identifier: BSD-2-Clause
# symbols.list -> linker version script. Nodes come in the order of the list and
# each depends on the one before it, as in the library that we stand in for.
/^#/ || NF < 2 { next }
$2 != node {
	if (node != "")
		printf "}%s;\n", before == "" ? "" : " " before
	before = node
	node = $2
	printf "%s {\n\tglobal:\n", node
}
{ printf "\t\t%s;\n", $1 }
END { printf "\tlocal: *;\n}%s;\n", before == "" ? "" : " " before }
