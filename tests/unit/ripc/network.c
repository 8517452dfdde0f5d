/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolvers of one process that find each other by multicast and broadcast, in a network
 * namespace with nothing but a loopback interface. Needs the rights for that (root, or user
 * namespaces), else it is skipped.
 */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "instance.h"

#define PORT 15511

static void loopback_set(bool up)
{
	struct ifreq r = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &r), 0);
	r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
}

static const char *const ways[] = { "multicast", "broadcast", "broadcast,multicast" };

static void finds_services_by_number_and_name(void **state)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct instance a, b, c;
		uint32_t id;

		instance_open(&a, 1, ways[i], PORT);
		instance_open(&b, 2, ways[i], PORT);
		instance_open(&c, 3, ways[i], PORT);
		instance_serve(&a, 7, "store");
		instance_serve(&b, 8, "");
		expect_at(&b, 7, &a);
		expect_at(&c, 7, &a);
		expect_at(&c, 8, &b);
		assert_int_equal(resolver_find_name(b.resolver, "store", LIMIT_MS, &id), 0);
		assert_int_equal(id, 7);
		expect_nowhere(&a, 9);
		assert_int_equal(resolver_counters(a.resolver)->bad_packets, 0);
		assert_int_equal(resolver_counters(b.resolver)->unasked_replies, 0);
		instance_close(&a);
		instance_close(&b);
		instance_close(&c);
	}
}

static void remembers_everyone_who_asks(void **state)
{
	struct instance a, b, c;
	struct packet_where where;

	instance_open(&a, 1, "multicast", PORT);
	instance_open(&b, 2, "multicast", PORT);
	instance_open(&c, 3, "multicast", PORT);
	instance_serve(&a, 7, "");
	assert_int_equal(resolver_find(b.resolver, 8, 7, LIMIT_MS, &where), 0);
	assert_int_equal(resolver_find(a.resolver, 7, 8, LIMIT_MS, &where), 0);
	assert_int_equal(where.instance, 2);
	/* Also who was not meant. */
	assert_int_equal(resolver_find(c.resolver, 0, 8, LIMIT_MS, &where), 0);
	assert_int_equal(where.instance, 2);
	instance_close(&a);
	instance_close(&b);
	instance_close(&c);
}

static void does_not_open_what_somebody_else_has(void **state)
{
	struct instance a, b;

	instance_open(&a, 1, "multicast", PORT);
	instance_open(&b, 2, "multicast", PORT);
	assert_int_equal(resolver_claim(a.resolver, 7, "store", 10), 0);
	/* Between the claim and the opening, too. */
	assert_int_equal(resolver_claim(b.resolver, 7, "", LIMIT_MS), -EADDRINUSE);
	instance_serve(&a, 7, "store");
	assert_int_equal(resolver_claim(b.resolver, 7, "", LIMIT_MS), -EADDRINUSE);
	assert_int_equal(resolver_claim(b.resolver, 8, "store", LIMIT_MS), -EADDRINUSE);
	wait_until(instance_conflicts(&a) >= 2);
	assert_int_equal(a.conflict_with, 2);
	assert_int_equal(resolver_claim(b.resolver, 8, "shop", 10), 0);
	instance_close(&a);
	instance_close(&b);
}

struct claiming {
	pthread_t thread;
	struct instance *instance;
	int ret;
};

static void *claim_thread(void *arg)
{
	struct claiming *c = arg;

	c->ret = resolver_claim(c->instance->resolver, 7, "", 2000);
	return NULL;
}

static void lets_one_of_two_have_it(void **state)
{
	struct claiming c[2];
	struct instance i[2];

	for (unsigned k = 0; k < 2; k++)
		instance_open(&i[k], k + 1, "multicast", PORT);
	for (unsigned k = 0; k < 2; k++) {
		c[k] = (struct claiming){ .instance = &i[k] };
		assert_int_equal(pthread_create(&c[k].thread, NULL, claim_thread, &c[k]), 0);
	}
	for (unsigned k = 0; k < 2; k++)
		pthread_join(c[k].thread, NULL);
	assert_int_equal(c[0].ret, 0);
	assert_int_equal(c[1].ret, -EADDRINUSE);
	for (unsigned k = 0; k < 2; k++)
		instance_close(&i[k]);
}

static void hears_at_once_that_a_service_has_moved(void **state)
{
	struct packet_where where;
	struct instance a, b, c;

	instance_open(&a, 1, "multicast", PORT);
	instance_open(&b, 2, "multicast", PORT);
	instance_open(&c, 3, "multicast", PORT);
	instance_serve(&a, 7, "");
	expect_at(&c, 7, &a);
	sleep_ms(510); /* what comes sooner may be old: KNOWN_FRESH_NS */
	instance_serve(&b, 7, "");
	wait_until(instance_moves(&c) == 1);
	assert_int_equal(c.moved_id, 7);
	assert_int_equal(c.moved_from, 1);
	expect_at(&c, 7, &b);
	wait_until(instance_conflicts(&a) >= 1);
	/* And that it is nowhere. */
	instance_end(&a);
	instance_end(&b);
	wait_until(resolver_find(c.resolver, 0, 7, 0, &where) == -EHOSTUNREACH);
	expect_nowhere(&c, 7);
	instance_close(&a);
	instance_close(&b);
	instance_close(&c);
}

static void hears_of_a_move_that_leaves_first(void **state)
{
	struct instance a, b, c;

	instance_open(&a, 1, "multicast", PORT);
	instance_open(&b, 2, "multicast", PORT);
	instance_open(&c, 3, "multicast", PORT);
	instance_serve(&a, 7, "");
	expect_at(&c, 7, &a);
	instance_end(&a);
	instance_serve(&b, 7, "");
	wait_until(instance_moves(&c) == 1);
	assert_int_equal(c.moved_from, 1);
	expect_at(&c, 7, &b);
	instance_close(&a);
	instance_close(&b);
	instance_close(&c);
}

static void keeps_those_with_another_secret_apart(void **state)
{
	struct instance a, b, c;

	instance_open_key(&a, 1, "multicast", PORT, "0123456789abcdef");
	instance_open_key(&b, 2, "multicast", PORT, "0123456789abcdef");
	instance_open_key(&c, 3, "multicast", PORT, "fedcba9876543210");
	instance_serve(&a, 7, "");
	expect_at(&b, 7, &a);
	expect_nowhere(&c, 7);
	wait_until(resolver_counters(a.resolver)->unauthentic > 0);
	instance_close(&a);
	instance_close(&b);
	instance_close(&c);
}

static void notices_interfaces_that_come_later(void **state)
{
	struct instance a, b;

	loopback_set(false);
	instance_open(&a, 1, "multicast", PORT);
	instance_open(&b, 2, "multicast", PORT);
	instance_serve(&a, 7, "");
	expect_nowhere(&b, 7);
	loopback_set(true);
	expect_at(&b, 7, &a);
	instance_close(&a);
	instance_close(&b);
}

/* ---- two hosts and a cable: a thread may go from one network to the other ---- */

static int other_network(int *mine)
{
	int other;

	*mine = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	loopback_set(true);
	other = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_int_equal(setns(*mine, CLONE_NEWNET), 0);
	assert_true(*mine >= 0 && other >= 0);
	return other;
}

static bool cable(int mine, int other)
{
	char command[128];
	bool made;

	snprintf(command, sizeof(command), "ip link add ripc0 type veth peer name ripc1 && "
		 "ip link set ripc1 netns /proc/%d/fd/%d", getpid(), other);
	made = !system(command) && !system("ip addr add 10.9.0.1/24 dev ripc0") &&
	       !system("ip link set ripc0 up");
	assert_int_equal(setns(other, CLONE_NEWNET), 0);
	made = made && !system("ip addr add 10.9.0.2/24 dev ripc1") &&
	       !system("ip link set ripc1 up");
	assert_int_equal(setns(mine, CLONE_NEWNET), 0);
	return made;
}

static void finds_services_of_another_host(void **state)
{
	int mine, other = other_network(&mine);
	struct packet_where where;

	if (!cable(mine, other)) {
		print_message("skipped: ip (iproute2) cannot make a cable here\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct instance a, b;

		instance_open(&a, 1, ways[i], PORT);
		instance_serve(&a, 7, "");
		assert_int_equal(setns(other, CLONE_NEWNET), 0);
		instance_open(&b, 2, ways[i], PORT);
		assert_int_equal(resolver_find(b.resolver, 0, 7, LIMIT_MS, &where), 0);
		assert_memory_equal(where.address, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x09\0\1",
				    sizeof(where.address));
		instance_close(&b);
		assert_int_equal(setns(mine, CLONE_NEWNET), 0);
		instance_close(&a);
	}
	close(mine);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_services_by_number_and_name),
		cmocka_unit_test(remembers_everyone_who_asks),
		cmocka_unit_test(does_not_open_what_somebody_else_has),
		cmocka_unit_test(lets_one_of_two_have_it),
		cmocka_unit_test(hears_at_once_that_a_service_has_moved),
		cmocka_unit_test(hears_of_a_move_that_leaves_first),
		cmocka_unit_test(keeps_those_with_another_secret_apart),
		cmocka_unit_test(notices_interfaces_that_come_later),
		cmocka_unit_test(finds_services_of_another_host),
	};

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		printf("skipped: no network namespace: %s\n", strerror(errno));
		return 77;
	}
	loopback_set(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
