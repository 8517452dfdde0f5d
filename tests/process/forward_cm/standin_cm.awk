# SPDX-License-Identifier: BSD-2-Clause
# src/rdmacm/symbols.list -> version script of the stand-in of the system's
# librdmacm.so.1, which has no node of busbar's.
/^#/ || NF < 2 || $2 !~ /^RDMACM_/ || $1 !~ /^rdma_/ { next }
$2 != node {
	if (node != "") printf "}%s;\n", before
	if (node != "") before = " " node
	node = $2
	printf "%s {\n\tglobal:\n", node
}
{ printf "\t\t%s;\n", $1 }
END { printf "}%s;\nSTANDIN_1 {\n\tglobal: standin_cm_state;\n\tlocal: *;\n};\n", before }
