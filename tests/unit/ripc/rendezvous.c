/* SPDX-License-Identifier: BSD-2-Clause */
/* A rendezvous on the loopback interface, and resolvers that meet there. */
#include "instance.h"

static pthread_t thread;
static atomic_bool stop;
static atomic_uint port;
static const struct packet_key no_key;
static char how[64];

static void ready(void *arg, uint16_t at)
{
	atomic_store(&port, at);
}

static void *serve(void *arg)
{
	const char *why;
	int ret = rendezvous_serve("127.0.0.1", (uint16_t)atomic_load(&port), &no_key, 100,
				   &stop, ready, NULL, &why);

	return (void *)(intptr_t)ret;
}

static int setup(void **state)
{
	atomic_store(&stop, false);
	atomic_store(&port, 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	wait_until(atomic_load(&port));
	snprintf(how, sizeof(how), "rendezvous:127.0.0.1:%u", atomic_load(&port));
	return 0;
}

static int teardown(void **state)
{
	void *ret;

	atomic_store(&stop, true);
	pthread_join(thread, &ret);
	assert_null(ret);
	return 0;
}

static void finds_what_has_entered_and_not_what_has_left(void **state)
{
	struct instance a, b;
	uint32_t id;

	instance_open(&a, 1, how, 1);
	instance_open(&b, 2, how, 1);
	assert_int_equal(resolver_claim(a.resolver, 7, "store", 10), 0);
	instance_serve(&a, 7, "store");
	instance_serve(&a, 8, "");
	expect_at(&b, 7, &a);
	assert_int_equal(resolver_find_name(b.resolver, "store", LIMIT_MS, &id), 0);
	assert_int_equal(id, 7);
	expect_at(&b, 8, &a);
	instance_end(&a);
	resolver_forget(b.resolver, 1);
	expect_nowhere(&b, 8);
	expect_at(&b, 7, &a);
	instance_close(&a);
	instance_close(&b);
}

static void refuses_what_another_one_has(void **state)
{
	struct instance a, b;

	instance_open(&a, 1, how, 1);
	instance_open(&b, 2, how, 1);
	instance_serve(&a, 7, "store");
	expect_at(&b, 7, &a);
	assert_int_equal(resolver_claim(b.resolver, 7, "", LIMIT_MS), -EADDRINUSE);
	assert_int_equal(resolver_claim(b.resolver, 8, "store", LIMIT_MS), -EADDRINUSE);
	assert_int_equal(resolver_claim(b.resolver, 8, "", 10), 0);
	/* Without looking. */
	instance_serve(&b, 7, "");
	wait_until(instance_conflicts(&b) == 1);
	assert_int_equal(b.conflict_with, 1);
	instance_close(&a);
	instance_close(&b);
}

static void knows_everyone_again_after_a_restart(void **state)
{
	struct instance a, b;

	teardown(NULL);
	atomic_store(&stop, false);
	/* It is not there yet: who wants to enter repeats it. */
	instance_open(&a, 1, how, 1);
	instance_open(&b, 2, how, 1);
	instance_serve(&a, 7, "");
	sleep_ms(20);
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	expect_at(&b, 7, &a);
	instance_close(&a);
	instance_close(&b);
}

/* An instance that enters a service and is gone without a word. */
static void enter_and_die(uint32_t id)
{
	const struct packet_resolve p = { .type = PACKET_ENTER, .nonce = 1, .id = id,
					  .lifetime_s = 300, .where = { .instance = 66 } };
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
	const size_t length = packet_resolve_encode(&p, &no_key, bytes);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union address to;

	address_parse("127.0.0.1", (uint16_t)atomic_load(&port), &to);
	assert_int_equal(sendto(fd, bytes, length, 0, &to.any, address_length(&to)), length);
	assert_true(recv(fd, bytes, sizeof(bytes), 0) > 0);
	close(fd);
}

static uint64_t found_at(struct instance *asking, uint32_t id)
{
	struct packet_where where;
	int ret = resolver_find(asking->resolver, 0, id, LIMIT_MS, &where);

	resolver_forget(asking->resolver, ret ? 0 : where.instance);
	return ret ? 0 : where.instance;
}

static void takes_the_place_of_one_that_was_killed(void **state)
{
	struct instance a, b;

	enter_and_die(7);
	instance_open(&a, 1, how, 1);
	instance_open(&b, 2, how, 1);
	assert_int_equal(found_at(&b, 7), 66);
	assert_int_equal(resolver_claim(a.resolver, 7, "", 10), 0);
	instance_serve(&a, 7, "");
	wait_until(found_at(&b, 7) == 1);
	assert_int_equal(instance_conflicts(&a), 0);
	instance_close(&a);
	instance_close(&b);
}

static void is_asked_after_the_network_and_besides_it(void **state)
{
	struct instance a, b;
	char both[160], file[] = "/tmp/ripc-rendezvous-XXXXXX";
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	close(fd);
	snprintf(both, sizeof(both), "hosts:%s,%s", file, how);
	instance_open(&a, 1, how, 1);
	instance_open(&b, 2, both, 1);
	instance_serve(&a, 7, "");
	expect_at(&b, 7, &a);
	instance_close(&a);
	instance_close(&b);
	unlink(file);
}

static void says_why_it_cannot_serve(void **state)
{
	const char *why;

	assert_int_equal(rendezvous_serve("127.0.0.1", (uint16_t)atomic_load(&port), &no_key, 1,
					  &stop, NULL, NULL, &why), -EADDRINUSE);
	assert_non_null(strstr(why, "Address already in use"));
	assert_int_equal(rendezvous_serve("here", 1, &no_key, 1, &stop, NULL, NULL, &why),
			 -EINVAL);
	assert_non_null(strstr(why, "here, UDP port 1: not an IP address"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_has_entered_and_not_what_has_left),
		cmocka_unit_test(refuses_what_another_one_has),
		cmocka_unit_test(takes_the_place_of_one_that_was_killed),
		cmocka_unit_test(is_asked_after_the_network_and_besides_it),
		cmocka_unit_test(says_why_it_cannot_serve),
		cmocka_unit_test(knows_everyone_again_after_a_restart),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
