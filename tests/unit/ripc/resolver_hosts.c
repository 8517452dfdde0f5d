/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolvers of one process that find each other by a file of hosts, over the loopback
 * interface as it is; and a socket of the test in the place of an instance, which lies.
 */
#include <arpa/inet.h>
#include <poll.h>

#include "instance.h"

static char folder[] = "/tmp/ripc-resolver-XXXXXX", file[64], how[80];

static int setup(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/hosts", folder);
	snprintf(how, sizeof(how), "hosts:%s", file);
	return 0;
}

static int teardown(void **state)
{
	unlink(file);
	return rmdir(folder);
}

static void write_file(const char *format, unsigned a, unsigned b)
{
	FILE *f;
	char fresh[80];

	snprintf(fresh, sizeof(fresh), "%s.new", file);
	f = fopen(fresh, "w");
	assert_non_null(f);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	fprintf(f, format, a, b);
#pragma GCC diagnostic pop
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(fresh, file), 0);
}

/* A socket on the loopback interface. */
static int udp(uint16_t *port)
{
	union address a;
	socklen_t length = sizeof(a);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	address_parse("127.0.0.1", 0, &a);
	assert_int_equal(bind(fd, &a.any, address_length(&a)), 0);
	assert_int_equal(getsockname(fd, &a.any, &length), 0);
	*port = address_port(&a);
	return fd;
}

/* A port that nobody has, and, because it lies below those that the kernel gives away, nobody
 * gets by chance before an instance takes it. */
static uint16_t free_port(void)
{
	static unsigned tried;
	union address a;

	for (;;) {
		uint16_t port = (uint16_t)(20000 + ((unsigned)getpid() * 8 + tried++) % 12000);
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

		address_parse("127.0.0.1", port, &a);
		ret = bind(fd, &a.any, address_length(&a));
		close(fd);
		if (!ret)
			return port;
		assert_true(tried < 12000);
	}
}

static void free_ports(uint16_t *a, uint16_t *b)
{
	*a = free_port();
	*b = free_port();
}

static void finds_services_by_number_and_name(void **state)
{
	struct instance a, b;
	uint16_t port_a, port_b;
	uint32_t id;

	free_ports(&port_a, &port_b);
	write_file("7 127.0.0.1 %u\n\"the store\" 127.0.0.1 %u\n", port_a, port_b);
	instance_open(&a, 1, how, 1);
	instance_open(&b, 2, how, 1);
	instance_serve(&a, 7, "");
	instance_serve(&b, 8, "the store");
	expect_at(&b, 7, &a);
	assert_int_equal(resolver_find_name(a.resolver, "the store", LIMIT_MS, &id), 0);
	assert_int_equal(id, 8);
	expect_at(&a, 8, &b);
	/* From memory, which the answer to the name has filled. */
	assert_int_equal(resolver_counters(a.resolver)->asked, 1);
	/* A question is repeated when its answer is late. */
	assert_true(resolver_counters(b.resolver)->answered >= 1);
	expect_nowhere(&a, 9);
	assert_int_equal(resolver_counters(a.resolver)->failed, 1);
	assert_int_equal(resolver_find(a.resolver, 0, 0, 1, NULL), -EINVAL);
	assert_int_equal(resolver_find_name(a.resolver, "", 1, &id), -EINVAL);
	instance_close(&a);
	instance_close(&b);
}

static void does_not_open_what_somebody_else_has(void **state)
{
	struct instance a, b;
	uint16_t port_a, port_b;

	free_ports(&port_a, &port_b);
	write_file("7 127.0.0.1 %u\n8 127.0.0.1 %u\n", port_a, port_b);
	instance_open(&a, 1, how, 1);
	instance_open(&b, 2, how, 1);
	assert_int_equal(resolver_claim(a.resolver, 7, "", 20), 0);
	instance_serve(&a, 7, "");
	assert_int_equal(resolver_claim(b.resolver, 7, "", LIMIT_MS), -EADDRINUSE);
	assert_int_equal(resolver_claim(b.resolver, 8, "", 20), 0);
	assert_int_equal(resolver_claim(b.resolver, 0, "", 20), -EINVAL);
	instance_close(&a);
	instance_close(&b);
}

static void finds_it_again_where_it_has_moved_to(void **state)
{
	struct instance a, b, c;
	uint16_t port_a, port_b;

	free_ports(&port_a, &port_b);
	write_file("7 127.0.0.1 %u\n", port_a, 0);
	instance_open(&a, 1, how, 1);
	instance_open(&c, 3, how, 1);
	instance_serve(&a, 7, "");
	expect_at(&c, 7, &a);
	instance_end(&a);
	instance_close(&a);
	write_file("7 127.0.0.1 %u\n", port_b, 0);
	instance_open(&b, 2, how, 1);
	instance_serve(&b, 7, "");
	expect_at(&c, 7, &a); /* until something fails there */
	resolver_forget(c.resolver, 1);
	expect_at(&c, 7, &b);
	instance_close(&b);
	instance_close(&c);
}

/* ---- a socket of the test in the place of an instance ---- */

struct finding {
	pthread_t thread;
	struct resolver *resolver;
	int ret;
	uint32_t from;
	struct packet_where where;
};

static void *find_thread(void *arg)
{
	struct finding *f = arg;

	f->ret = resolver_find(f->resolver, f->from, 7, LIMIT_MS, &f->where);
	return NULL;
}

static void find_begin(struct finding *f, struct resolver *r)
{
	*f = (struct finding){ .resolver = r, .from = 5 };
	assert_int_equal(pthread_create(&f->thread, NULL, find_thread, f), 0);
}

/* The next packet that comes to the test's socket. */
static struct packet_resolve next_packet(int fd, const struct packet_key *key,
					 union address *from)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
	socklen_t length = sizeof(*from);
	struct packet_resolve got = { .type = 0 };
	ssize_t n;

	assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
	n = recvfrom(fd, bytes, sizeof(bytes), 0, &from->any, &length);
	assert_true(n > 0);
	assert_int_equal(packet_resolve_decode(&got, key, bytes, (size_t)n), 0);
	return got;
}

static void say(int fd, const struct packet_resolve *p, const struct packet_key *key,
		const union address *to)
{
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
	const size_t length = packet_resolve_encode(p, key, bytes);

	assert_int_equal(sendto(fd, bytes, length, 0, &to->any, address_length(to)), length);
}

static void believes_no_forged_answer(void **state)
{
	static const char secret[] = "0123456789abcdef";
	struct packet_key key, none = { .set = false };
	struct packet_resolve asked, lie;
	const struct resolver_counters *counters;
	struct finding f;
	struct instance a;
	uint16_t port, port_other;
	union address from;
	int fd = udp(&port), other = udp(&port_other);

	write_file("7 127.0.0.1 %u\n", port, 0);
	packet_key_make(&key, secret, strlen(secret));
	instance_open_key(&a, 1, how, 1, secret);
	counters = resolver_counters(a.resolver);
	find_begin(&f, a.resolver);
	asked = next_packet(fd, &key, &from);
	assert_int_equal(asked.type, PACKET_ASK);
	assert_int_equal(asked.id, 7);
	assert_int_equal(asked.from, 5);
	assert_int_equal(asked.where.instance, 1);

	lie = asked;
	lie.type = PACKET_TELL;
	lie.where = (struct packet_where){ .instance = 66, .port = 6 };
	say(fd, &lie, &none, &from); /* without the secret */
	say(other, &lie, &key, &from); /* from elsewhere */
	lie.nonce++; /* of no question */
	say(fd, &lie, &key, &from);
	lie.nonce--;
	lie.id = 8; /* of another service */
	say(fd, &lie, &key, &from);
	assert_int_equal(sendto(fd, "x", 1, 0, &from.any, address_length(&from)), 1);
	wait_until(counters->unauthentic == 1 && counters->unasked_replies == 3 &&
		   counters->bad_packets == 1);

	lie.id = 7; /* and this is the truth */
	lie.where.instance = 9;
	say(fd, &lie, &key, &from);
	pthread_join(f.thread, NULL);
	assert_int_equal(f.ret, 0);
	assert_int_equal(f.where.instance, 9);
	assert_memory_equal(f.where.address, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
	/* The answer to a repeated question is no surprise, from another one it is. */
	say(fd, &lie, &key, &from);
	lie.where.instance = 66;
	say(fd, &lie, &key, &from);
	wait_until(counters->unasked_replies == 4);
	assert_int_equal(instance_moves(&a), 0);
	instance_close(&a);
	close(fd);
	close(other);
}

static void asks_again_with_growing_intervals_and_for_many_at_once(void **state)
{
	struct packet_key none = { .set = false };
	struct packet_resolve first, next;
	struct finding f[8];
	struct timespec begin, end;
	struct instance a;
	union address from;
	uint16_t port;
	int fd = udp(&port);
	long ms;

	write_file("7 127.0.0.1 %u\n", port, 0);
	instance_open(&a, 1, how, 1);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned i = 0; i < 8; i++)
		find_begin(&f[i], a.resolver);
	first = next_packet(fd, &none, &from);
	for (unsigned i = 1; i < 4; i++) {
		next = next_packet(fd, &none, &from);
		assert_int_equal(next.nonce, first.nonce);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	/* 20, 40 and 80 ms, on a busy machine more. */
	ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
	assert_true(ms >= 135);
	next.type = PACKET_TELL;
	next.where = (struct packet_where){ .instance = 9, .port = 6 };
	say(fd, &next, &none, &from);
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(f[i].thread, NULL);
		assert_int_equal(f[i].ret, 0);
		assert_int_equal(f[i].where.instance, 9);
	}
	assert_int_equal(resolver_counters(a.resolver)->asked, 1);
	instance_close(&a);
	close(fd);
}

static void ends_questions_when_it_is_closed(void **state)
{
	struct packet_key none = { .set = false };
	struct finding f;
	struct instance a;
	union address from;
	uint16_t port;
	int fd = udp(&port);

	write_file("7 127.0.0.1 %u\n", port, 0);
	instance_open(&a, 1, how, 1);
	find_begin(&f, a.resolver);
	next_packet(fd, &none, &from);
	instance_close(&a);
	pthread_join(f.thread, NULL);
	assert_int_equal(f.ret, -ESHUTDOWN);
	close(fd);
}

static void learns_where_who_asks_is_and_that_it_has_moved(void **state)
{
	struct packet_key none = { .set = false };
	struct packet_resolve question = { .type = PACKET_ASK, .nonce = 1, .from = 5, .id = 7,
		.where = { .instance = 21, .port = 6 } }, answer;
	struct packet_where where;
	struct instance a;
	union address to, from;
	uint16_t port, unused;
	int fd;

	free_ports(&port, &unused);
	write_file("7 127.0.0.1 %u\n", port, 0);
	instance_open(&a, 1, how, 1);
	instance_serve(&a, 7, "");
	fd = udp(&unused);
	address_parse("127.0.0.1", port, &to);
	say(fd, &question, &none, &to);
	answer = next_packet(fd, &none, &from);
	assert_int_equal(answer.type, PACKET_TELL);
	assert_int_equal(answer.nonce, 1);
	assert_true(address_same(&from, &to, true));
	assert_int_equal(resolver_find(a.resolver, 7, 5, 0, &where), 0);
	assert_int_equal(where.instance, 21);
	assert_int_equal(instance_moves(&a), 0);
	question.where.instance = 22;
	say(fd, &question, &none, &to);
	wait_until(instance_moves(&a) == 1);
	assert_int_equal(a.moved_id, 5);
	assert_int_equal(a.moved_from, 21);
	assert_int_equal(resolver_find(a.resolver, 7, 5, 0, &where), 0);
	assert_int_equal(where.instance, 22);
	/* It cannot say that it has what is here. */
	question.from = 7;
	say(fd, &question, &none, &to);
	wait_until(instance_conflicts(&a) == 1);
	assert_int_equal(instance_moves(&a), 1);
	/* Nor is it told more than its share. */
	for (unsigned i = 0; i < 2000 && !resolver_counters(a.resolver)->limited; i++)
		for (unsigned k = 0; k < 500; k++)
			say(fd, &question, &none, &to);
	wait_until(resolver_counters(a.resolver)->limited > 0);
	instance_close(&a);
	close(fd);
}

static void says_what_is_wrong_with_a_way(void **state)
{
	static const struct {
		const char *how;
		int ret;
		const char *why;
	} ways[] = {
		{ "", -EINVAL, "not one of multicast" },
		{ "pigeons", -EINVAL, "not one of multicast" },
		{ "hosts:/nowhere/hosts", -ENOENT, "/nowhere/hosts: No such file" },
		{ "rendezvous:here", -EINVAL, "not of the form rendezvous:HOST:PORT" },
		{ "rendezvous:127.0.0.1:0", -EINVAL, "the port" },
		{ "rendezvous:127.0.0.1:", -EINVAL, "the port" },
		{ "rendezvous:127.0.0.1:70000", -EINVAL, "the port" },
	};
	struct resolver_config config = { .port = 1, .self = { .instance = 1 },
					  .has = instance_has };
	struct resolver *r;
	const char *why;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		config.how = ways[i].how;
		why = NULL;
		assert_int_equal(resolver_open(&r, &config, &why), ways[i].ret);
		assert_non_null(strstr(why, ways[i].why));
	}
	write_file("7 127.0.0.1 1\nx\n", 0, 0);
	config.how = how;
	assert_int_equal(resolver_open(&r, &config, &why), -EINVAL);
	assert_non_null(strstr(why, "/hosts:2: not of the form"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_services_by_number_and_name),
		cmocka_unit_test(does_not_open_what_somebody_else_has),
		cmocka_unit_test(finds_it_again_where_it_has_moved_to),
		cmocka_unit_test(believes_no_forged_answer),
		cmocka_unit_test(asks_again_with_growing_intervals_and_for_many_at_once),
		cmocka_unit_test(ends_questions_when_it_is_closed),
		cmocka_unit_test(learns_where_who_asks_is_and_that_it_has_moved),
		cmocka_unit_test(says_what_is_wrong_with_a_way),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
