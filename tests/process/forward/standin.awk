# SPDX-License-Identifier: BSD-2-Clause
# symbols.list -> functions of the stand-in library that record their calls, its
# version script, or the tables for the test.
#   -v make=functions|map|public|private  -v node=34  -v newest=14 (of the public nodes)
#   -v objects=1 (without the functions of standin_objects.c)
function have(version) { split(version, v, "."); return v[2] + 0 <= newest }
function define(name, version) {
	printf "long standin_%s(%s);\n", name, parameters
	printf "long standin_%s(%s)\n{\n", name, parameters
	printf "\treturn standin_record(\"%s\", a1, a2, a3, a4, a5, a6, a7, a8, a9);\n}\n", name
	printf "__asm__(\".symver standin_%s, %s@@IBVERBS_%s\");\n\n", name, name, version
}
BEGIN {
	parameters = "long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, long a9"
	# Written by hand in standin.c.
	split("ibv_get_device_list ibv_free_device_list ibv_open_device ibv_close_device ibv_get_device_name", w)
	for (i in w) by_hand[w[i]]
	split("ibv_alloc_pd ibv_dealloc_pd ibv_create_comp_channel ibv_destroy_comp_channel ibv_create_cq ibv_destroy_cq", w)
	if (objects) for (i in w) by_hand[w[i]]
	print make == "map" ? "# SPDX-License-Identifier: BSD-2-Clause" : "/* SPDX-License-Identifier: BSD-2-Clause */"
	if (make == "functions") print "#include \"standin.h\"\n"
}
/^#/ || NF < 3 { next }
$3 == "public" && have($2) { nodes[$2] = 1 }
make == "public" && $3 == "public" { printf "X(%s, \"IBVERBS_%s\", OWNER_%s)\n", $1, $2, $4 }
make == "functions" && $3 == "public" && have($2) && !($1 in by_hand) { define($1, $2) }
make == "private" && $3 == "private-function" && $2 == "all" { printf "PRIVATE(%s)\n", $1 }
make == "functions" && $3 == "private-function" && $2 !~ /[.]/ && ($2 == "all" || index("," $2 ",", "," node ",")) {
	if ($1 != "__verbs_log") define($1, "PRIVATE_" node)
}
END {
	if (make != "map") exit
	for (n = 0; n <= newest; n++)
		if (("1." n) in nodes) {
			printf "IBVERBS_1.%d {\n}%s;\n", n, last
			last = " IBVERBS_1." n
		}
	printf "IBVERBS_PRIVATE_%s {\n};\nSTANDIN_1 {\n\tglobal: standin_calls; standin_state;\n\tlocal: *;\n};\n", node
}
