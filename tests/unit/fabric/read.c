/* SPDX-License-Identifier: BSD-2-Clause */
/* Topology files: what ibnetdiscover prints, ibsim's short form, our own words, and included files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "fabric/topology/topology.h"

static struct topology *read_text(const char *text)
{
	struct topology *t = NULL;
	char why[300];

	if (topology_read(text, strlen(text), "text", &t, why, sizeof(why)))
		fail_msg("%s", why);
	return t;
}

/* As ibnetdiscover --grouping prints it: GUIDs, LIDs, and two adapters that have the same name. */
static const char discovered[] =
	"#\n# Topology file: generated on Mon Jun  1 12:00:00 2026\n#\n"
	"# Initiated from node 00117500000000a0 port 00117500000000a1\n\n"
	"Chassis 1 (guid 0x1)\n\n"
	"vendid=0x1175\ndevid=0xcb20\nsysimgguid=0x11750000000123\n"
	"switchguid=0x11750000000120(11750000000121)\n"
	"Switch\t36 \"S-0011750000000120\"\t\t# \"rack 4 # upper 4xSDR\" enhanced port 0 lid 6 lmc 0\n"
	"[22][ext 7]\t\"H-00117500000000a0\"[1](117500000000a1) \t\t# \"node, HCA-1\" lid 4 4xFDR10\n"
	"[36]\t\"H-00117500000000b0\"[2](117500000000b2) \t\t# \"node, HCA-1\" lid 5 2xHDR\n\n"
	"vendid=0x2c9\ndevid=0x1003\nsysimgguid=0x117500000000a3\ncaguid=0x117500000000a0\n"
	"Ca\t1 \"H-00117500000000a0\"\t\t# \"node, HCA-1\"\n"
	"[1](117500000000a1) \t\"S-0011750000000120\"[22]\t\t# lid 4 lmc 0 \"rack 4\" lid 6 4xFDR10\n\r\n"
	"caguid=0x117500000000b0\r\n"
	"Ca\t2 \"H-00117500000000b0\"\t\t# \"node, HCA-1\"\r\n"
	"[2](117500000000b2) \t\"S-0011750000000120\"[36]\t\t# lid 5 lmc 0 \"rack 4\" lid 6 2xHDR\r\n";

static void reads_what_ibnetdiscover_prints(void **state)
{
	struct topology *t = read_text(discovered);
	const struct topology_node *n = &t->nodes[0];
	struct topology_end end;

	assert_int_equal(t->node_count, 3);
	assert_int_equal(t->link_count, 2);
	assert_int_equal(n->kind, TOPOLOGY_SWITCH);
	assert_string_equal(n->id, "S-0011750000000120");
	assert_string_equal(n->name, "rack 4 # upper 4xSDR");
	assert_true(n->enhanced_port_0);
	assert_int_equal(n->port_count, 36);
	assert_int_equal(n->vendor_id, 0x1175);
	assert_int_equal(n->device_id, 0xcb20);
	assert_true(n->guid == 0x11750000000120 && n->system_guid == 0x11750000000123);
	assert_true(n->ports[0].guid == 0x11750000000121);
	assert_true(t->nodes[1].guid == 0x117500000000a0 && t->nodes[1].vendor_id == 0x2c9);
	assert_true(t->nodes[2].system_guid == 0x117500000000b0 && t->nodes[2].vendor_id == 0);
	assert_true(topology_peer(t, 0, 36, &end) && end.node == 2 && end.port == 2);
	assert_true(topology_find_port_guid(t, 0x117500000000b2, &end) && end.node == 2 && end.port == 2);
	assert_int_equal(t->links[0].width, TOPOLOGY_4X);
	assert_int_equal(t->links[0].speed, TOPOLOGY_FDR10);
	assert_int_equal(t->links[1].width, TOPOLOGY_2X);
	assert_int_equal(t->links[1].speed, TOPOLOGY_HDR);
	topology_free(t);
}

static void finds_nodes_by_id_name_and_guid(void **state)
{
	struct topology *t = read_text(discovered);
	struct topology_end end;

	assert_int_equal(topology_find_id(t, "H-00117500000000b0"), 2);
	assert_int_equal(topology_find_id(t, "rack 4 # upper 4xSDR"), TOPOLOGY_NONE);
	assert_int_equal(topology_find_name(t, "rack 4 # upper 4xSDR"), 0);
	assert_int_equal(topology_find_name(t, "H-00117500000000a0"), 1);
	/* Two nodes have it. */
	assert_int_equal(topology_find_name(t, "node, HCA-1"), TOPOLOGY_NONE);
	assert_int_equal(topology_find_guid(t, 0x117500000000a0), 1);
	assert_int_equal(topology_find_guid(t, 0x117500000000a1), TOPOLOGY_NONE);
	assert_false(topology_find_port_guid(t, 0x11750000000120, &end));
	topology_free(t);
}

static void reads_the_short_form_with_the_guids_of_ibsim(void **state)
{
	struct topology *t = read_text("Switch 8 \"sw1\" # beside the door base port 0\n"
				       "[1] \"host1\"\n[3] \"sw2\"[4]\n\n"
				       "  Switch\t8 \"sw2\" # a comment\n[4] \"sw1\"[3]\n\n"
				       "Hca 2 \"host1\"\n[1]\"sw1\"[1]\n"
				       "Hca 1 \"host2\"\n");

	assert_string_equal(t->nodes[0].name, "beside the door");
	assert_string_equal(t->nodes[1].name, "sw2");
	assert_true(t->nodes[0].guid == 0x200000 && t->nodes[1].guid == 0x200001);
	assert_true(t->nodes[2].guid == 0x100000 && t->nodes[3].guid == 0x100003);
	assert_true(t->nodes[2].ports[2].guid == 0x100002 && t->nodes[0].ports[0].guid == 0x200000);
	assert_int_equal(t->link_count, 2);
	assert_int_equal(t->links[0].width, TOPOLOGY_4X);
	assert_int_equal(t->links[0].speed, TOPOLOGY_SDR);
	topology_free(t);
}

static void takes_width_and_speed_from_options_lines_and_words(void **state)
{
	static const struct {
		const char *before, *one, *two;
		enum topology_width width;
		enum topology_speed speed;
	} cases[] = {
		{ "", "", "", TOPOLOGY_4X, TOPOLOGY_SDR },
		{ "width=10\nspeed=7\n", "", "", TOPOLOGY_12X, TOPOLOGY_QDR },
		{ "width=3\nspeed=7\n", "w=1", "s=3", TOPOLOGY_1X, TOPOLOGY_DDR },
		{ "width=17\n", "", "", TOPOLOGY_2X, TOPOLOGY_SDR },
		{ "width=18\n", "", "", TOPOLOGY_4X, TOPOLOGY_SDR },
		{ "speed=hdr\n", "", "", TOPOLOGY_4X, TOPOLOGY_HDR },
		{ "", "8xNDR", "", TOPOLOGY_8X, TOPOLOGY_NDR },
		{ "", "", "s=4 # \"1xDDR\" lid 3 12xQDR", TOPOLOGY_12X, TOPOLOGY_QDR },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topology *t;
		char text[300];

		snprintf(text, sizeof(text), "%sHca 1 \"a\"\n[1] \"b\"[1] %s\nHca 1 \"b\"\n[1] \"a\"[1] %s\n",
			 cases[i].before, cases[i].one, cases[i].two);
		t = read_text(text);
		assert_int_equal(t->links[0].width, cases[i].width);
		assert_int_equal(t->links[0].speed, cases[i].speed);
		topology_free(t);
	}
}

static void reads_delays_and_bit_error_rates_from_either_end(void **state)
{
	struct topology *t = read_text("Hca 2 \"a\"\n[1] \"b\"[1] delay:1.5us # 4xEDR\n"
				       "[2] \"b\"[2] 4xHDR delay=300 ber:1e-12\n"
				       "Hca 2 \"b\"\n[1] \"a\"[1] ber=0.25\n[2] \"a\"[2]\n");

	assert_true(t->links[0].delay_ns == 1500 && t->links[0].bit_error_rate == 0.25);
	assert_true(t->links[1].delay_ns == 300 && t->links[1].bit_error_rate == 1e-12);
	assert_int_equal(t->links[1].speed, TOPOLOGY_HDR);
	topology_free(t);
}

static void what_is_written_is_read_back_equal(void **state)
{
	static const char *const texts[] = {
		discovered,
		"Hca 2 \"a\"\n[1] \"b\"[1] delay:999999999 ber:3.0000000000000004e-13 2xNDR\n"
		"Hca 2 \"b\"\n[1] \"a\"[1]\n[2](99)\n",
		"switchguid=5(6)\nSwitch 3 \"s\"\n[1] \"s\"[3] w=8 s=4\n[3] \"s\"[1] w=12 s=6\n",
		/* The longest names: ibsim reads 254 bytes of a line. */
		"caguid=0xff00000000000000\nCa 254 \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n"
		"[254] \"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"[254] "
		"delay:123456789 ber:1.2345678901234567e-100 12xFDR10\n"
		"caguid=0xffffffffffffff00\n"
		"Ca 254 \"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"\n"
		"[254] \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"[254]\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct topology *t = read_text(texts[i]), *again;
		char *text;
		size_t bytes;

		assert_int_equal(topology_write(t, &text, &bytes), 0);
		for (const char *at = text, *end; (end = strchr(at, '\n')); at = end + 1)
			assert_true(end - at < 254);
		again = read_text(text);
		assert_true(topology_equal(t, again) && topology_equal(again, t));
		again->links[0].delay_ns++;
		assert_false(topology_equal(t, again));
		free(text);
		topology_free(t);
		topology_free(again);
	}
}

/* Ports whose GUIDs begin with the node's, as some adapters have them. */
static void guids_of_ports_may_begin_with_that_of_the_node(void **state)
{
	struct topology *t = read_text("caguid=0x10\nCa 2 \"a\"\n[1](10) \"b\"[1]\n[2](11) \"b\"[2]\n"
				       "caguid=0x20\nCa 2 \"b\"\n[1] \"a\"[1](10)\n[2](21) \"a\"[2](11)\n");

	assert_true(t->nodes[0].ports[1].guid == 0x10 && t->nodes[0].ports[2].guid == 0x11);
	/* Port 1 would have had 21. */
	assert_true(t->nodes[1].ports[2].guid == 0x21 && t->nodes[1].ports[1].guid != 0x21);
	topology_free(t);
}

/* ---- files ---- */

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void follows_included_files_beside_the_one_that_includes(void **state)
{
	char folder[] = "/tmp/busbar-topology.XXXXXX", main_file[64], part[64], why[300];
	struct topology *t = NULL;

	assert_non_null(mkdtemp(folder));
	snprintf(main_file, sizeof(main_file), "%s/main", folder);
	snprintf(part, sizeof(part), "%s/part", folder);
	write_file(main_file, "Hca 1 \"a\"\n[1] \"b\"[1]\ninclude \"part\"\n");
	write_file(part, "# the other end\nHca 1 \"b\"\n[1] \"a\"[1]\n");
	assert_int_equal(topology_read_file(main_file, &t, why, sizeof(why)), 0);
	assert_int_equal(t->node_count, 2);
	topology_free(t);

	write_file(part, "\nHca 1 \"b\"\n[1] \"a\"[2]\n");
	assert_true(topology_read_file(main_file, &t, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "/main:2: "));
	write_file(part, "\nHca 1 b\n");
	assert_true(topology_read_file(main_file, &t, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "/part:2: "));
	write_file(part, "include \"main\"\n");
	assert_true(topology_read_file(main_file, &t, why, sizeof(why)) < 0);
	unlink(part);
	assert_true(topology_read_file(main_file, &t, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "/main:3: cannot read"));
	unlink(main_file);
	assert_true(topology_read_file(main_file, &t, why, sizeof(why)) < 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_ibnetdiscover_prints),
		cmocka_unit_test(finds_nodes_by_id_name_and_guid),
		cmocka_unit_test(reads_the_short_form_with_the_guids_of_ibsim),
		cmocka_unit_test(takes_width_and_speed_from_options_lines_and_words),
		cmocka_unit_test(reads_delays_and_bit_error_rates_from_either_end),
		cmocka_unit_test(what_is_written_is_read_back_equal),
		cmocka_unit_test(guids_of_ports_may_begin_with_that_of_the_node),
		cmocka_unit_test(follows_included_files_beside_the_one_that_includes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
