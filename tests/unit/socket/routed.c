/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of routed messages, over the loopback interface. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "gateway/part/routed.h"

/* Opens one with any port, which `port` becomes, or with that port. */
static void open_at(struct routed *r, uint16_t *port, const struct socket_address *groups,
		    unsigned count)
{
	struct routed_settings s = { .interface = "lo", .groups = groups, .group_count = count, .ttl = 1 };
	struct socket_address bound = { .len = sizeof(bound.storage) };
	char why[SOCKET_WHY_MAX] = "";

	assert_true(routed_parse("0.0.0.0", *port, &s.local));
	if (routed_open(r, &s, why))
		fail_msg("%s", why);
	assert_int_equal(getsockname(r->fd, &bound.sa, &bound.len), 0);
	*port = ntohs(bound.in4.sin_port);
}

/* The datagram that comes first. */
static char first_of(struct routed *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	struct routed_datagram d;
	char byte = 0;

	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(routed_receive(r, &byte, 1, &d), 0);
	assert_false(d.truncated);
	return byte;
}

static void send_to(const struct routed *from, const char *text, uint16_t port, char byte)
{
	struct socket_address to;

	assert_true(routed_parse(text, port, &to));
	assert_int_equal(routed_send(from, &to, &byte, 1), 0);
}

/* A second socket has joined the group, and the first one has not, or has joined another one. */
static void hears_only_its_own(const char *group, const char *own)
{
	struct socket_address groups[2];
	struct routed first, second, sender;
	uint16_t port = 0, other_port = 0, sender_port = 0;

	assert_true(routed_parse(group, 0, &groups[0]));
	if (own)
		assert_true(routed_parse(own, 0, &groups[1]));
	open_at(&first, &port, &groups[1], own ? 1 : 0);
	open_at(&second, &other_port, groups, 1);
	open_at(&sender, &sender_port, NULL, 0);
	send_to(&sender, group, other_port, 'a');
	assert_int_equal(first_of(&second), 'a');
	send_to(&sender, group, port, 'b');
	send_to(&sender, own ? own : "127.0.0.1", port, 'c');
	assert_int_equal(first_of(&first), 'c');
	routed_close(&first);
	routed_close(&second);
	routed_close(&sender);
}

static void groups_that_others_have_joined_are_not_heard(void **state)
{
	hears_only_its_own("239.77.1.1", NULL);
	hears_only_its_own("239.77.1.1", "239.77.1.2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_that_others_have_joined_are_not_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
