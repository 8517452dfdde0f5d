/* SPDX-License-Identifier: BSD-2-Clause */
/* What a topology file must not say: each is refused, and the message names the line and the fault. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/topology/topology.h"

#define A "Hca 2 \"a\"\n"
#define B "Hca 2 \"b\"\n"
#define LONG "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const struct {
	const char *text, *message;
} cases[] = {
	/* Contradictions. */
	{ A "[1] \"b\"[1]\n[1] \"b\"[2]\n", "t:3: port 1 of 'a' is used twice, first in line 2" },
	{ A "[1] \"b\"[1]\n" B "[1] \"a\"[2]\n[2] \"a\"[1]\n", "t:2: port 1 of 'a' is linked to port 1 of 'b', "
							      "which t line 4 links to port 2 of 'a'" },
	{ A "[1] \"b\"[1]\n" B, "t:2: 'b' has no line for this link: right is [1] \"a\"[1]" },
	{ A "[1] \"a\"[1]\n", "t:2: port 1 of 'a' is linked to itself" },
	{ A "[1] \"b\"[1] 4xQDR\n" B "[1] \"a\"[1] # 4xDDR\n",
	  "t:2: the link is 4xQDR here and 4xDDR at its other end, in line 4" },
	{ A "[1] \"b\"[1] 4xQDR # 1xQDR\n" B "[1] \"a\"[1]\n", "t:2: port 1 has two widths or speeds" },
	{ A "[1] \"b\"[1] w=1\n" B "[1] \"a\"[1] w=2\n", "t:2: the link has no width that both ends allow" },
	{ A "[1] \"b\"[1] s=1\n" B "[1] \"a\"[1] s=2\n", "t:2: the link has no speed that both ends allow" },
	{ A "[1] \"b\"[1] delay=1\n" B "[1] \"a\"[1] delay=2\n", "t:2: the link has another delay" },
	{ A "[1] \"b\"[1] ber=0.1\n" B "[1] \"a\"[1] ber=0\n", "t:2: the link has another ber" },
	{ "caguid=1\n" A "[1](5) \"b\"[1]\ncaguid=9\n" B "[1] \"a\"[1](6)\n",
	  "t:6: port 1 of 'a' has the GUID 0x0000000000000005 there and 0x0000000000000006 here" },
	/* Identities. */
	{ A A, "t:2: there are two nodes 'a'" },
	{ "caguid=0x5\n" A "caguid=0x5\n" B, "t:4: 'a' and 'b' have the same GUID 0x0000000000000005" },
	{ "caguid=0x5\n" A "caguid=0x6\n" B, "t:4: port 2 of 'a' and port 1 of 'b' have the same GUID" },
	{ A "[1](7)\n[2](7)\n", "t:1: ports 1 and 2 of 'a' have the same GUID" },
	{ A "[1](0) \"b\"[1]\n", "t:2: the GUID of a port is 0" },
	{ "switchguid=0\nSwitch 2 \"s\"\n", "t:1: switchguid is 0" },
	{ "caguid=0xffffffffffffffff\n" A, "t:2: the GUID of 'a' leaves no room" },
	{ "caguid=0x10000000000000000\n" A, "t:1: caguid is larger than" },
	/* Limits. */
	{ "Hca 0 \"a\"\n", "t:1: 'a' has 0 ports, a node can have 1 to 254" },
	{ "Hca 255 \"a\"\n", "t:1: the number of ports is larger than 254" },
	{ A "[3] \"b\"[1]\n", "t:2: 'a' has no port 3, only 1 to 2" },
	{ A "[0] \"b\"[1]\n", "t:2: port 0 of a switch has no cable" },
	{ A "[1] \"b\"[7]\n" B, "t:2: 'b' has no port 7, only 1 to 2" },
	{ "Hca 1 \"" LONG "\"\n", "t:1: the name of the node has 65 bytes, right are 1 to 64" },
	{ "Hca 1 \"a\" # \"" LONG "\"\n", "t:1: the description of the node has 65 bytes" },
	{ "Switch 1 \"a\" # " LONG " base port 0\n", "t:1: the description of 'a' is longer than 64 bytes" },
	{ "vendid=0x1000000\n" A, "t:1: vendid is larger than 16777215" },
	{ "width=32\n" A, "t:1: width is larger than 31" },
	{ "width=0\n" A, "t:1: width has the bits of enabled widths" },
	{ "speed=0\n" A, "t:1: speed has the bits of enabled speeds" },
	{ A "[1] \"b\"[1] delay=2s\n", "t:2: delay '2s' is not a time up to 1s" },
	{ A "[1] \"b\"[1] delay=-1\n", "t:2: delay '-1' is not a time" },
	{ A "[1] \"b\"[1] delay=nan\n", "t:2: delay 'nan' is not a time" },
	{ A "[1] \"b\"[1] ber=1\n", "t:2: ber '1' is not a bit error rate below 1" },
	{ A "[1] \"b\"[1] ber=nan\n", "t:2: ber 'nan' is not a bit error rate" },
	{ A "[1] \"b\"[1] w=4x\n", "t:2: w (bits of enabled widths) is a number from 1 to 31" },
	{ A "[1] \"b\"[1] s=8\n", "t:2: s (bits of enabled speeds) is larger than 7" },
	/* Words. */
	{ "Swich 8 \"s\"\n", "t:1: 'Swich' is not known at the start of a line, did you mean 'Switch'?" },
	{ "sysimguid=3\n" A, "t:1: 'sysimguid' is not known at the start of a line, did you mean 'sysimgguid'?" },
	{ A "[1] \"b\"[1] dely=3\n", "t:2: a link has no 'dely', did you mean 'delay'?" },
	{ A "[1] \"b\"[1] 4xQDX\n", "t:2: '4xQDX' is not known behind a link" },
	{ A "[1] \"bb\"[1]\nHca 1 \"bbb\"\n", "t:2: no node is called 'bb', did you mean 'bbb'?" },
	{ "vendid=0x1 2\n" A, "t:1: '2' is not expected here" },
	{ "vendid 1\n" A, "t:1: 'vendid' is followed by = and a number" },
	{ "caguid+1\n" A, "t:1: 'caguid' is followed by = and a number" },
	{ "Hca \"a\"\n", "t:1: the number of ports is not a number" },
	{ "Hca 1 a\n", "t:1: the name of the node is missing: it stands in quotation marks" },
	{ "Hca 1 \"a\n", "t:1: the name of the node has no closing quotation mark" },
	{ "Hca 1 \"\"\n", "t:1: the name of the node has 0 bytes" },
	{ "Hca 1 \"a@b\"\n", "t:1: the name of a node contains # or @" },
	{ "Hca 1 \"a\x1b[31m\"\n", "t:1: the name of a node contains a quotation mark or a control character" },
	{ "Hca 1 \"a\" b\n", "t:1: 'b' is not expected here" },
	{ A "[1 \"b\"[1]\n", "t:2: the number of a port has no closing bracket" },
	{ A "[1](5 \"b\"[1]\n", "t:2: the GUID of a port has no closing parenthesis" },
	{ A "[1]\n", "t:2: the name of the node at the other end is missing" },
	{ "[1] \"a\"[1]\n", "t:1: a port, but no node is before it" },
	{ A "vendid=1\n[1] \"a\"[2]\n", "t:3: a port, but no node is before it" },
	/* What is not supported. */
	{ A "Rt 2 \"r\"\n", "t:2: a router: a description is one subnet" },
	{ "rtguid=5\n", "t:1: a router" },
	{ "module=\"m\"\n", "t:1: a command of ibsim" },
	{ "do help\n", "t:1: a command of ibsim" },
	{ A "@[1] \"x\"\n", "t:2: an alias (@)" },
	{ "include \"x\"\n", "t:1: include stands only in files" },
	{ "", "t: no node stands in it" },
	{ "# nothing\n\nvendid=5\n", "t: no node stands in it" },
};

static void names_the_line_and_the_fault(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topology *t = NULL;
		char why[300] = "";

		if (!topology_read(cases[i].text, strlen(cases[i].text), "t", &t, why, sizeof(why)))
			fail_msg("taken, and not refused with '%s': %s", cases[i].message, cases[i].text);
		assert_null(t);
		if (strncmp(why, cases[i].message, strlen(cases[i].message)))
			fail_msg("'%s' and not '%s'", why, cases[i].message);
		/* A short place for the message, and none. */
		assert_true(topology_read(cases[i].text, strlen(cases[i].text), "t", &t, why, 8) < 0);
		assert_true(strlen(why) < 8);
		assert_true(topology_read(cases[i].text, strlen(cases[i].text), "t", &t, NULL, 0) < 0);
	}
}

static void long_lines_and_nul_bytes_are_refused(void **state)
{
	static char text[1200];
	struct topology *t = NULL;
	char why[300];

	memset(text, 'x', sizeof(text));
	assert_true(topology_read(text, sizeof(text), "t", &t, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "more than 1000 bytes"));
	assert_true(topology_read("Hca 1 \"a\0b\"", 11, "t", &t, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "contains a NUL byte"));
}

/* ---- descriptions that a program makes ---- */

static void limits_of_nodes_and_links_are_kept(void **state)
{
	struct topology *t = topology_new();
	struct topology_node n = { .kind = TOPOLOGY_SWITCH, .port_count = 254 };
	char why[300];
	uint32_t node;

	for (unsigned i = 0; i < TOPOLOGY_NODES_MAX; i++) {
		snprintf(n.id, sizeof(n.id), "n%u", i);
		assert_int_equal(topology_add_node(t, &n, &node, why, sizeof(why)), 0);
		assert_int_equal(node, i);
	}
	snprintf(n.id, sizeof(n.id), "one more");
	assert_int_equal(topology_add_node(t, &n, &node, why, sizeof(why)), -ENOSPC);
	assert_string_equal(why, "more than 4096 nodes");
	for (unsigned i = 0; i <= TOPOLOGY_LINKS_MAX; i++) {
		uint8_t port = (uint8_t)(1 + i % 254);
		struct topology_link l = { .end = { { 2 * (i / 254), port }, { 2 * (i / 254) + 1, port } },
					   .width = TOPOLOGY_4X };

		assert_int_equal(topology_add_link(t, &l, why, sizeof(why)),
				 i < TOPOLOGY_LINKS_MAX ? 0 : -ENOSPC);
	}
	assert_string_equal(why, "more than 65536 links");
	topology_free(t);
}

static void a_router_is_refused(void **state)
{
	struct topology *t = topology_new();
	struct topology_node n = { .id = "r", .kind = (enum topology_kind)3, .port_count = 2 };
	char why[300];
	uint32_t node;

	assert_int_equal(topology_add_node(t, &n, &node, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "without routers"));
	topology_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_the_line_and_the_fault),
		cmocka_unit_test(long_lines_and_nul_bytes_are_refused),
		cmocka_unit_test(limits_of_nodes_and_links_are_kept),
		cmocka_unit_test(a_router_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
