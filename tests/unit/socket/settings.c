/* SPDX-License-Identifier: BSD-2-Clause */
/* Configurations of socket nodes: what is refused, and that the reason is told. */
#include "../nodes/fixture.h"

#include "util/log.h"

extern const struct node_type node_socket;

static char last_line[512];

static bool keep_line(enum log_level level, const char *line)
{
	if (level == LOG_ERROR)
		snprintf(last_line, sizeof(last_line), "%s", line);
	return true;
}

static void refuses(const char *text, const char *because)
{
	struct made_node m;

	last_line[0] = '\0';
	if (!try_node(&m, &node_socket, text))
		fail_msg("%s is taken", text);
	if (!strstr(last_line, because))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, last_line,
			 because);
	drop_node(&m);
}

static void takes(const char *text)
{
	struct made_node m;

	last_line[0] = '\0';
	if (try_node(&m, &node_socket, text))
		fail_msg("%s is refused: %s", text, last_line);
	drop_node(&m);
}

#define CSV "\"format\": \"csv\""

static void takes_what_laboratories_have(void **state)
{
	takes("{ " CSV ", \"layer\": \"udp\", \"in\": { \"address\": \"*:12000\" }, \"out\": { \"address\": \"127.0.0.1:12001\" } }");
	takes("{ " CSV ", \"layer\": \"eth\", \"in\": { \"address\": \"12:34:56:78:90:ab%lo:34997\" }, \"out\": { \"address\": \"12:34:56:78:90:ab%lo:34997\" } }");
	takes("{ " CSV ", \"layer\": \"ip\", \"verify_source\": true, \"in\": { \"address\": \"127.0.0.1:254\" }, \"out\": { \"address\": \"127.0.0.1:254\" } }");
	takes("{ " CSV ", \"layer\": \"unix\", \"in\": { \"address\": \"/tmp/a\" }, \"out\": { \"address\": \"/tmp/b\" } }");
	takes("{ " CSV ", \"layer\": \"local\", \"in\": { \"address\": \"@a\" } }");
	takes("{ " CSV ", \"layer\": \"tcp-client\", \"out\": { \"address\": \"lab:1\" } }");
	takes("{ " CSV ", \"layer\": \"tcp-client\", \"in\": { \"address\": \"*:2\" }, \"out\": { \"address\": \"lab:1\" } }");
	takes("{ " CSV ", \"layer\": \"tcp-server\", \"in\": { \"address\": \"*:1\" }, \"out\": { \"address\": \"*:2\" } }");
	takes("{ " CSV ", \"in\": { \"address\": \"*:1\", \"multicast\": { \"enabled\": true, \"group\": \"224.1.2.3\", \"interface\": \"1.2.3.4\", \"ttl\": 128, \"loop\": true } } }");
	takes("{ " CSV ", \"in\": { \"address\": \"*:1\" }, \"out\": { \"address\": \"224.1.2.3:1\", \"multicast\": { \"ttl\": 1 } } }");
	takes("{ " CSV ", \"out\": { \"address\": \"lab:1\", \"netem\": { \"enabled\": true, \"delay\": 100000, \"jitter\": 30000, \"distribution\": \"normal\", \"loss\": 20, \"duplicate\": 10, \"corrupt\": 1 } } }");
	takes("{ " CSV ", \"out\": { \"address\": \"lab:1\", \"fwmark\": 123 } }");
}

static void one_unix_name_for_both_directions_is_a_loop(void **state)
{
	takes("{ " CSV ", \"layer\": \"unix\", \"in\": { \"address\": \"/a\" }, \"out\": { \"address\": \"/a\" } }");
}

static void says_which_address_is_missing(void **state)
{
	refuses("{ " CSV " }", "needs `in = ");
	refuses("{ " CSV ", \"in\": { } }", "in.address is required");
	refuses("{ " CSV ", \"out\": { } }", "out.address is required");
	refuses("{ " CSV ", \"layer\": \"tcp-client\", \"in\": { } }",
		"where to connect to");
	refuses("{ " CSV ", \"layer\": \"tcp-server\", \"out\": { } }",
		"where to listen");
	refuses("{ " CSV ", \"verify_source\": true, \"in\": { \"address\": \"*:1\" } }",
		"whom to take samples from");
}

static void says_what_is_wrong_with_an_address(void **state)
{
	refuses("{ " CSV ", \"in\": { \"address\": \"12000\" } }", "lacks ':'");
	refuses("{ " CSV ", \"out\": { \"address\": \"*:12000\" } }",
		"names no host");
	refuses("{ " CSV ", \"in\": { \"address\": \"127.0.0.1:1\" }, \"out\": { \"address\": \"[::1]:2\" } }",
		"is of IPv6, in.address of IPv4");
	refuses("{ " CSV ", \"layer\": \"ip\", \"in\": { \"address\": \"127.0.0.1:253\" }, \"out\": { \"address\": \"127.0.0.1:254\" } }",
		"another protocol");
}

static void refuses_what_cannot_be(void **state)
{
	refuses("{ " CSV ", \"framing\": \"length\", \"in\": { \"address\": \"*:1\" } }",
		"framing");
	refuses("{ " CSV ", \"layer\": \"tcp-server\", \"in\": { \"address\": \"*:1\", \"received\": \"kernel\" } }",
		"for datagrams");
	refuses("{ " CSV ", \"in\": { \"address\": \"*:1\", \"multicast\": { \"group\": \"10.0.0.1\" } } }",
		"no multicast address");
	refuses("{ " CSV ", \"in\": { \"address\": \"*:1\", \"multicast\": { } } }",
		"is required");
	refuses("{ " CSV ", \"in\": { \"address\": \"*:1\", \"multicast\": { \"group\": \"224.0.0.5\" } }, \"out\": { \"address\": \"224.0.0.6:1\", \"multicast\": { \"group\": \"224.0.0.6\" } } }",
		"another one than");
	refuses("{ " CSV ", \"layer\": \"unix\", \"in\": { \"address\": \"/a\", \"multicast\": { \"group\": \"224.0.0.5\" } } }",
		"not unix");
	refuses("{ " CSV ", \"in\": { \"address\": \"*:1\", \"multicast\": { \"grup\": \"224.0.0.5\" } } }",
		"did you mean 'group'");
	refuses("{ \"format\": \"cvs\", \"in\": { \"address\": \"*:1\" } }",
		"did you mean 'csv'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_laboratories_have),
		cmocka_unit_test(one_unix_name_for_both_directions_is_a_loop),
		cmocka_unit_test(says_which_address_is_missing),
		cmocka_unit_test(says_what_is_wrong_with_an_address),
		cmocka_unit_test(refuses_what_cannot_be),
	};

	log_set_sink(keep_line);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
