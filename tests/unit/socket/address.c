/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of socket nodes: what is one, what it means, and what is said else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/config/config.h"
#include "gateway/part/peers.h"
#include "gateway/part/socket_address.h"

static char why[SOCKET_WHY_MAX], text[SOCKET_ADDRESS_MAX];

static void takes(int layer, const char *address)
{
	if (socket_address_check(layer, address, why))
		fail_msg("'%s' is refused: %s", address, why);
}

static void refuses(int layer, const char *address, const char *because)
{
	why[0] = '\0';
	if (!socket_address_check(layer, address, why))
		fail_msg("'%s' is taken", address);
	if (!strstr(why, because))
		fail_msg("'%s': \"%s\" does not say \"%s\"", address, why, because);
}

static void resolves(int layer, const char *address, const char *to)
{
	struct socket_address a;

	why[0] = '\0';
	if (socket_address_resolve(layer, address, AF_UNSPEC, &a, why))
		fail_msg("'%s': %s", address, why);
	assert_string_equal(socket_address_print(&a, text), to);
}

static void takes_hosts_and_ports(void **state)
{
	takes(LAYER_UDP, "127.0.0.1:12000");
	takes(LAYER_UDP, "*:12000");
	takes(LAYER_UDP, ":12000");
	takes(LAYER_UDP, "[::1]:12000");
	takes(LAYER_UDP, "[fe80::1%eth0]:0");
	takes(LAYER_TCP_CLIENT, "simulator.lab:65535");
	takes(LAYER_TCP_SERVER, "localhost:http");
	refuses(LAYER_UDP, "127.0.0.1", "lacks ':'");
	refuses(LAYER_UDP, "127.0.0.1:65536", "no port");
	refuses(LAYER_UDP, "127.0.0.1:-1", "no port");
	refuses(LAYER_UDP, "127.0.0.1:", "no port");
	refuses(LAYER_UDP, "127.0.0.1:12x", "no port");
	refuses(LAYER_UDP, "::1:12000", "in brackets");
	refuses(LAYER_UDP, "[::1]", "']:'");
	refuses(LAYER_UDP, "[::1", "']:'");
	refuses(LAYER_UDP, "", "lacks ':'");
}

static void takes_protocols_of_ip(void **state)
{
	struct socket_address a;

	takes(LAYER_IP, "10.0.0.1:254");
	takes(LAYER_IP, "[::1]:0");
	refuses(LAYER_IP, "10.0.0.1:256", "protocol");
	refuses(LAYER_IP, "10.0.0.1:udp", "protocol");
	assert_int_equal(socket_address_resolve(LAYER_IP, "127.0.0.1:254",
						AF_UNSPEC, &a, why), 0);
	assert_int_equal(a.protocol, 254);
	assert_int_equal(a.in4.sin_port, 0);
}

static void takes_interfaces_and_ethertypes(void **state)
{
	struct socket_address a;

	takes(LAYER_ETH, "12:34:56:78:90:AB%lo:34997");
	takes(LAYER_ETH, "12:34:56:78:90:ab%eth0.5:0x88b5");
	refuses(LAYER_ETH, "12:34:56:78:90:ab%lo", "MAC%interface:ethertype");
	refuses(LAYER_ETH, "12:34:56:78:90%lo:34997", "hardware address");
	refuses(LAYER_ETH, "12:34:56:78:90:ab:cd%lo:34997", "hardware address");
	refuses(LAYER_ETH, "12:34:56:78:90:ab%lo:1500", "ethertype");
	refuses(LAYER_ETH, "12:34:56:78:90:ab%lo:65536", "ethertype");
	refuses(LAYER_ETH, "12:34:56:78:90:ab%:34997", "interface");
	refuses(LAYER_ETH, "12:34:56:78:90:ab%averyveryverylongname:34997",
		"interface");
	assert_int_equal(socket_address_resolve(LAYER_ETH,
						"12:34:56:78:90:ab%lo:34997",
						AF_UNSPEC, &a, why), 0);
	assert_int_equal(ntohs(a.ll.sll_protocol), 34997);
	assert_true(a.ll.sll_ifindex > 0);
	assert_string_equal(socket_address_print(&a, text), "12:34:56:78:90:ab");
	assert_int_equal(socket_address_resolve(LAYER_ETH,
						"12:34:56:78:90:ab%none:34997",
						AF_UNSPEC, &a, why), -ENODEV);
	assert_non_null(strstr(why, "no interface 'none'"));
}

static void takes_paths_and_abstract_names(void **state)
{
	char longest[200];

	takes(LAYER_UNIX, "/run/busbar.sock");
	takes(LAYER_LOCAL, "@busbar");
	refuses(LAYER_UNIX, "", "empty");
	refuses(LAYER_UNIX, "@", "empty");
	memset(longest, 'x', sizeof(longest));
	longest[107] = '\0';
	takes(LAYER_UNIX, longest);
	memset(longest, 'x', 108);
	longest[108] = '\0';
	refuses(LAYER_UNIX, longest, "108 characters");
	resolves(LAYER_UNIX, "/run/busbar.sock", "/run/busbar.sock");
	resolves(LAYER_UNIX, "@busbar", "@busbar");
}

static void resolves_what_it_is_told(void **state)
{
	resolves(LAYER_UDP, "127.0.0.1:12000", "127.0.0.1:12000");
	resolves(LAYER_UDP, "[::1]:12000", "[::1]:12000");
	assert_int_equal(socket_address_family("127.0.0.1:1"), AF_INET);
	assert_int_equal(socket_address_family("[fe80::1%eth0]:1"), AF_INET6);
	assert_int_equal(socket_address_family("localhost:1"), AF_UNSPEC);
	assert_int_equal(socket_address_family("*:1"), AF_UNSPEC);
	assert_true(socket_address_is_any("*:1"));
	assert_true(socket_address_is_any(":1"));
	assert_false(socket_address_is_any("127.0.0.1:1"));
}

static struct socket_address address(int layer, const char *of)
{
	struct socket_address a;

	assert_int_equal(socket_address_resolve(layer, of, AF_UNSPEC, &a, why), 0);
	return a;
}

static bool equal(int layer, const char *a, const char *b, bool port)
{
	struct socket_address x = address(layer, a), y = address(layer, b);

	return socket_address_equal(&x, &y, port);
}

static void knows_the_same_peer_again(void **state)
{
	assert_true(equal(LAYER_UDP, "127.0.0.1:1", "127.0.0.1:1", true));
	assert_false(equal(LAYER_UDP, "127.0.0.1:1", "127.0.0.1:2", true));
	assert_true(equal(LAYER_UDP, "127.0.0.1:1", "127.0.0.1:2", false));
	assert_false(equal(LAYER_UDP, "127.0.0.1:1", "127.0.0.2:1", false));
	/* A socket of both families calls it so. */
	assert_true(equal(LAYER_UDP, "127.0.0.1:1", "[::ffff:127.0.0.1]:1", true));
	assert_false(equal(LAYER_UDP, "[::1]:1", "127.0.0.1:1", true));
	assert_true(equal(LAYER_UNIX, "/tmp/a", "/tmp/a", true));
	assert_false(equal(LAYER_UNIX, "/tmp/a", "/tmp/ab", true));
	assert_false(equal(LAYER_UNIX, "@a", "/a", true));
	assert_true(equal(LAYER_ETH, "00:00:00:00:00:01%lo:34997",
			  "00:00:00:00:00:01%lo:34998", true));
	assert_false(equal(LAYER_ETH, "00:00:00:00:00:01%lo:34997",
			   "00:00:00:00:00:02%lo:34997", true));
}

static void knows_multicast(void **state)
{
	struct socket_address a = address(LAYER_UDP, "224.1.2.3:1");

	assert_true(socket_address_is_multicast(&a));
	a = address(LAYER_UDP, "[ff15::1]:1");
	assert_true(socket_address_is_multicast(&a));
	a = address(LAYER_UDP, "10.0.0.1:1");
	assert_false(socket_address_is_multicast(&a));
}

static void a_port_is_added_where_there_is_none(void **state)
{
	static const char *const cases[][2] = {
		{ "host", "host:7" }, { "host:8", "host:8" }, { "192.0.2.1", "192.0.2.1:7" },
		{ "*:9", "*:9" }, { "::1", "[::1]:7" }, { "[::1]", "[::1]:7" }, { "[::1]:8", "[::1]:8" },
	};
	char to[20];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_true(socket_address_complete(cases[i][0], 7, to, sizeof(to)));
		assert_string_equal(to, cases[i][1]);
	}
	assert_true(socket_address_complete("seventeen-letters", 7, to, sizeof(to)));
	assert_false(socket_address_complete("eighteen-letters-x", 7, to, sizeof(to)));
}

/* Does a list with `network` have `address`? -1: it is no network. */
static int peers_with(const char *network, const char *address)
{
	char host[80];
	json_t *list = json_pack("[s]", network);
	struct socket_address from;
	struct config *c = NULL;
	struct peers p = { 0 };
	int ret;

	assert_int_equal(config_load_text("peers", "a = 1;", 6, &c), 0);
	snprintf(host, sizeof(host), strchr(address, ':') ? "[%s]:1" : "%s:1", address);
	assert_int_equal(socket_address_resolve(LAYER_TCP_CLIENT, host, AF_UNSPEC, &from, why), 0);
	ret = peers_parse(&p, c, config_root(c), list) ? -1 : peers_have(&p, &from.sa);
	peers_free(&p);
	config_destroy(c);
	json_decref(list);
	return ret;
}

static void peers_are_addresses_and_networks(void **state)
{
	static const struct {
		const char *network, *address;
		int has;
	} cases[] = {
		{ "192.0.2.1", "192.0.2.1", 1 }, { "192.0.2.1", "192.0.2.2", 0 },
		{ "192.0.2.0/24", "192.0.2.255", 1 }, { "192.0.2.0/24", "192.0.3.0", 0 },
		{ "192.0.2.128/25", "192.0.2.127", 0 }, { "192.0.2.128/25", "192.0.2.128", 1 },
		{ "0.0.0.0/0", "198.51.100.7", 1 }, { "0.0.0.0/0", "2001:db8::1", 0 },
		{ "192.0.2.1", "::ffff:192.0.2.1", 1 }, { "::ffff:192.0.2.0/120", "192.0.2.9", 1 },
		{ "2001:db8::/33", "2001:db8:7fff::1", 1 }, { "2001:db8::/33", "2001:db8:8000::1", 0 },
		{ "::/0", "192.0.2.1", 1 },
		{ "192.0.2.0/33", "192.0.2.1", -1 }, { "192.0.2.0/", "192.0.2.1", -1 },
		{ "192.0.2.0/-1", "192.0.2.1", -1 }, { "host", "192.0.2.1", -1 },
		{ "192.0.2.0/24x", "192.0.2.1", -1 }, { "", "192.0.2.1", -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(peers_with(cases[i].network, cases[i].address), cases[i].has);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_hosts_and_ports),
		cmocka_unit_test(takes_protocols_of_ip),
		cmocka_unit_test(takes_interfaces_and_ethertypes),
		cmocka_unit_test(takes_paths_and_abstract_names),
		cmocka_unit_test(resolves_what_it_is_told),
		cmocka_unit_test(knows_the_same_peer_again),
		cmocka_unit_test(knows_multicast),
		cmocka_unit_test(a_port_is_added_where_there_is_none),
		cmocka_unit_test(peers_are_addresses_and_networks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
