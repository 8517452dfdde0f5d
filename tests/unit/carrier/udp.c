/* SPDX-License-Identifier: BSD-2-Clause */
/* The carrier over UDP, on the loopback interface. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "transport/carrier/udp.h"

enum { WAIT_MS = 10000, BYTES = 1 << 20 };

struct end {
	struct carrier *c;
	int fd;
	uint16_t port;
	atomic_uint units;
	unsigned packets, writable;
	struct carrier_unit last;
	uint8_t bytes[BYTES]; /* of all units, one behind the other */
	size_t length;
	struct carrier *answer; /* NULL: do not */
};

static void on_deliver(void *arg, const struct carrier_unit *unit)
{
	size_t bytes = carrier_unit_bytes(unit);
	struct end *e = arg;

	check(bytes && e->length + bytes <= BYTES);
	check(!unit->segment || unit->segment < bytes);
	carrier_unit_gather(unit, 0, bytes, e->bytes + e->length);
	e->length += bytes;
	e->packets += carrier_unit_packets(unit, bytes);
	e->last = *unit;
	if (e->answer) {
		struct carrier_unit back = *unit;

		back.to = unit->from;
		back.from = unit->to;
		check(carrier_emit(e->answer, &back, 1) == 1);
		check(carrier_poll(e->c, 1) == 0); /* as another thread would */
	}
	atomic_fetch_add(&e->units, 1);
}

static void on_writable(void *arg)
{
	((struct end *)arg)->writable++;
}

static void end_over(struct end *e, int fd, bool no_trains)
{
	struct carrier_udp_params p = { .fd = fd, .clock = clock_source_host(),
					.no_trains = no_trains };
	struct carrier_upper upper = { on_deliver, on_writable, e };
	struct carrier_udp_facts facts;

	memset(e, 0, sizeof(*e));
	check(fd >= 0);
	check(carrier_udp_open(&p, &e->c) == 0);
	carrier_set_upper(e->c, &upper);
	carrier_udp_facts(e->c, &facts);
	e->fd = fd;
	e->port = facts.port;
	check(e->port && carrier_udp_fd(e->c) == fd);
	check(facts.trains_out == !no_trains && facts.trains_in == !no_trains);
	check(facts.receive_bytes > 64 << 10);
}

static void end_open(struct end *e, bool no_trains)
{
	end_over(e, carrier_udp_socket(0), no_trains);
}

static void end_close(struct end *e)
{
	carrier_close(e->c);
	close(e->fd);
}

static struct carrier_addr addr(const char *text, uint16_t port)
{
	uint8_t ip[16] = { [10] = 0xff, [11] = 0xff };

	check(inet_pton(AF_INET, text, ip + 12) == 1 || inet_pton(AF_INET6, text, ip) == 1);
	return carrier_udp_addr_of(ip, 0, port);
}

/* Polls until so many packets have come. */
static void await(struct end *e, unsigned packets)
{
	while (e->packets < packets) {
		struct pollfd p = { .fd = e->fd, .events = POLLIN };

		if (!carrier_poll(e->c, 64))
			check(poll(&p, 1, WAIT_MS) == 1);
	}
	check(e->packets == packets);
	check(carrier_poll(e->c, 64) == 0);
}

static bool have_v6(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool ret = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));

	if (fd >= 0)
		close(fd);
	return ret;
}

static uint8_t pattern[BYTES];

static struct carrier_unit unit_to(const struct carrier_addr *to, struct iovec *iov,
				   size_t bytes, uint32_t segment)
{
	*iov = (struct iovec){ pattern, bytes };
	return (struct carrier_unit){ .iov = iov, .count = 1, .segment = segment, .to = *to };
}

static void counters(const struct end *e, struct carrier_udp_counters *n)
{
	carrier_udp_count(e->c, n);
}

/* ---- the tests ---- */

static void addresses_have_one_form(void)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(4791) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(4791),
				   .sin6_flowinfo = 7, .sin6_scope_id = 3 };
	struct carrier_addr a, b;
	uint8_t ip[16];
	uint16_t port;

	memset(v4.sin_zero, 0xaa, sizeof(v4.sin_zero));
	inet_pton(AF_INET, "10.1.2.3", &v4.sin_addr);
	inet_pton(AF_INET6, "::ffff:10.1.2.3", &v6.sin6_addr);
	check(carrier_udp_addr((struct sockaddr *)&v4, sizeof(v4), &a) == 0);
	check(carrier_udp_addr((struct sockaddr *)&v6, sizeof(v6), &b) == 0);
	check(carrier_addr_equal(&a, &b));
	check(carrier_udp_addr_ip(&a, ip, &port) == AF_INET && port == 4791);
	check(!memcmp(ip, &v6.sin6_addr, 16));
	/* A scope only where it means something. */
	inet_pton(AF_INET6, "fd00::1", &v6.sin6_addr);
	check(carrier_udp_addr((struct sockaddr *)&v6, sizeof(v6), &a) == 0);
	b = carrier_udp_addr_of(v6.sin6_addr.s6_addr, 9, 4791);
	check(carrier_addr_equal(&a, &b));
	inet_pton(AF_INET6, "fe80::1", &v6.sin6_addr);
	check(carrier_udp_addr((struct sockaddr *)&v6, sizeof(v6), &a) == 0);
	b = carrier_udp_addr_of(v6.sin6_addr.s6_addr, 9, 4791);
	check(!carrier_addr_equal(&a, &b));
	check(carrier_udp_addr_ip(&a, ip, &port) == AF_INET6);
	check(carrier_udp_addr((struct sockaddr *)&v6, 12, &a) == -EAFNOSUPPORT);
	check(carrier_udp_addr((struct sockaddr *)&v4, 12, &a) == -EAFNOSUPPORT);
	memset(&a, 0, sizeof(a));
	check(carrier_udp_addr_ip(&a, ip, &port) == 0 && port == 0);
}

static void what_is_no_socket_of_udp_is_refused(void)
{
	struct carrier_udp_params p = { .clock = clock_source_host() };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct carrier *c;
	int fds[2];

	check(!pipe(fds));
	p.fd = fds[0];
	check(carrier_udp_open(&p, &c) == -ENOTSOCK);
	close(fds[0]);
	close(fds[1]);
	p.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(carrier_udp_open(&p, &c) == -EPROTONOSUPPORT);
	close(p.fd);
	p.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	check(carrier_udp_open(&p, &c) == -EDESTADDRREQ);
	check(!connect(p.fd, (struct sockaddr *)&a, sizeof(a)));
	check(carrier_udp_open(&p, &c) == -EISCONN);
	close(p.fd);
}

/* One packet there and, as it came, back. */
static void there_and_back(struct end *a, struct end *b, const char *from, const char *to)
{
	struct carrier_addr dest = addr(to, b->port);
	struct iovec iov[3] = { { pattern, 3 }, { NULL, 0 }, { pattern + 3, 61 } };
	struct carrier_unit u = {
		.iov = iov, .count = 3, .to = dest, .from = addr(from, 1),
		.known = CARRIER_FROM | CARRIER_TOS | CARRIER_TTL | CARRIER_INTERFACE,
		.tos = 0x68, .ttl = 17, .interface = if_nametoindex("lo"),
	};
	struct carrier_addr source = addr(from, a->port);

	a->packets = b->packets = 0;
	a->length = b->length = 0;
	b->answer = b->c;
	check(carrier_emit(a->c, &u, 1) == 1);
	await(b, 1);
	check(b->length == 64 && !memcmp(b->bytes, pattern, 64));
	check(b->last.known ==
	      (CARRIER_FROM | CARRIER_TOS | CARRIER_TTL | CARRIER_INTERFACE));
	check(carrier_addr_equal(&b->last.from, &source));
	check(carrier_addr_equal(&b->last.to, &dest));
	check(b->last.tos == 0x68 && b->last.ttl == 17);
	check(b->last.interface == u.interface && b->last.segment == 0);
	await(a, 1);
	check(a->length == 64 && !memcmp(a->bytes, pattern, 64));
	check(carrier_addr_equal(&a->last.from, &dest));
	check(carrier_addr_equal(&a->last.to, &source));
	b->answer = NULL;
}

static struct end one, two;

static void send_train(struct end *a, struct end *b, const char *to, size_t bytes,
		       uint32_t segment)
{
	struct carrier_addr dest = addr(to, b->port);
	struct iovec iov;
	struct carrier_unit u = unit_to(&dest, &iov, bytes, segment);

	b->packets = 0;
	b->length = 0;
	atomic_store(&b->units, 0);
	check(carrier_emit(a->c, &u, 1) == 1);
	await(b, carrier_unit_packets(&u, bytes));
	check(b->length == bytes && !memcmp(b->bytes, pattern, bytes));
}

static void a_packet_arrives_with_what_is_known_of_it(void)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	end_open(&one, false);
	check(!bind(fd, (struct sockaddr *)&v4, sizeof(v4)));
	end_over(&two, fd, false);
	there_and_back(&one, &two, "127.0.0.3", "127.0.0.2");
	there_and_back(&two, &one, "127.0.0.2", "127.0.0.3");
	/* A socket of IPv4 sends nothing by IPv6. */
	{
		struct carrier_addr to = addr("::1", one.port);
		struct iovec iov;
		struct carrier_unit u = unit_to(&to, &iov, 10, 0);

		check(carrier_emit(two.c, &u, 1) == -EHOSTUNREACH);
	}
	end_close(&two);
	end_open(&two, false);
	there_and_back(&one, &two, "127.0.0.3", "127.0.0.2");
	if (have_v6())
		there_and_back(&one, &two, "::1", "::1");
	else
		printf("no IPv6 here: left out\n");
	check(carrier_udp_bring(two.c, CARRIER_TTL) == 0);
	send_train(&one, &two, "127.0.0.1", 10, 0);
	check(two.last.known == (CARRIER_FROM | CARRIER_TTL | CARRIER_INTERFACE));
	check(carrier_udp_bring(two.c, 0) == 0);
	send_train(&one, &two, have_v6() ? "::1" : "127.0.0.1", 10, 0);
	check(two.last.known == (CARRIER_FROM | CARRIER_INTERFACE));
	end_close(&one);
	end_close(&two);
}

/* As Linux' rxe sends them. */
static void a_packet_of_ipv6_without_checksum_arrives(void)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const int on = 1;
	int fd;

	if (!have_v6())
		return;
	end_open(&one, false);
	to.sin6_port = htons(one.port);
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	check(!setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof(on)));
	check(sendto(fd, pattern, 64, 0, (struct sockaddr *)&to, sizeof(to)) == 64);
	await(&one, 1);
	check(one.length == 64 && !memcmp(one.bytes, pattern, 64));
	close(fd);
	end_close(&one);
}

static void a_packet_that_is_longer_than_asked_for_is_dropped(void)
{
	struct carrier_udp_params p = { .clock = clock_source_host(), .packet_bytes = 1024 };
	struct carrier_upper upper = { on_deliver, on_writable, &two };
	struct carrier_udp_counters n;
	struct carrier_udp_facts facts;
	struct carrier_addr to;
	struct carrier_unit u;
	struct iovec iov;

	end_open(&one, true);
	memset(&two, 0, sizeof(two));
	two.fd = p.fd = carrier_udp_socket(0);
	check(two.fd >= 0 && carrier_udp_open(&p, &two.c) == 0);
	carrier_set_upper(two.c, &upper);
	carrier_udp_facts(two.c, &facts);
	to = addr("127.0.0.1", facts.port);
	u = unit_to(&to, &iov, 1025, 0);
	check(carrier_emit(one.c, &u, 1) == 1);
	u = unit_to(&to, &iov, 1024, 0);
	check(carrier_emit(one.c, &u, 1) == 1);
	await(&two, 1);
	check(two.length == 1024 && !memcmp(two.bytes, pattern, 1024));
	counters(&two, &n);
	check(n.truncated == 1 && n.received == 1);
	end_close(&one);
	end_close(&two);
}

static void a_train_arrives_as_one(void)
{
	struct carrier_udp_counters n;

	end_open(&one, false);
	end_open(&two, false);
	check(carrier_udp_train_packets(one.c) == CARRIER_UDP_TRAIN_PACKETS);
	send_train(&one, &two, "127.0.0.1", 15 * 4160 + 100, 4160);
	check(two.units == 1 && two.last.segment == 4160);
	counters(&one, &n);
	check(n.sent == 16 && n.sent_trains == 1 && n.sent_bytes == 15 * 4160 + 100);
	counters(&two, &n);
	check(n.received == 16 && n.received_trains == 1);
	check(n.received_bytes == 15 * 4160 + 100);
	/* One packet is no train. */
	send_train(&one, &two, "127.0.0.1", 1000, 1000);
	check(two.units == 1 && two.last.segment == 0);
	if (have_v6())
		send_train(&one, &two, "::1", 64 * 1000, 1000);
	/* The limits. */
	send_train(&one, &two, "127.0.0.1", CARRIER_UDP_TRAIN_PACKETS * 10, 10);
	check(two.units == 1);
	send_train(&one, &two, "127.0.0.1", CARRIER_UDP_TRAIN_BYTES, 4000);
	check(two.units == 1);
	end_close(&two);
	/* An end that does not take them gets packets. */
	end_open(&two, true);
	send_train(&one, &two, "127.0.0.1", 15 * 4160 + 100, 4160);
	check(two.units == 16 && two.last.segment == 0);
	end_close(&one);
	end_close(&two);
}

static void a_long_train_leaves_as_several(void)
{
	end_open(&one, false);
	end_open(&two, false);
	send_train(&one, &two, "127.0.0.1", 200 * 100 + 1, 100);
	check(two.units == 4);
	send_train(&one, &two, "127.0.0.1", 300000, 4160);
	send_train(&one, &two, "127.0.0.1", 3 * 65000, 65000);
	check(two.units == 3);
	end_close(&one);
	end_open(&one, true);
	check(carrier_udp_train_packets(one.c) == 1);
	send_train(&one, &two, "127.0.0.1", 20 * 100 + 1, 100);
	check(two.units == 21);
	end_close(&one);
	end_close(&two);
}

/* SO_NO_CHECK is one of the reasons for which the kernel refuses trains. */
static void refused_trains_leave_as_packets_for_good(void)
{
	struct carrier_udp_counters n;

	end_open(&one, false);
	end_open(&two, false);
	check(!setsockopt(one.fd, SOL_SOCKET, SO_NO_CHECK, &(int){ 1 }, sizeof(int)));
	send_train(&one, &two, "127.0.0.1", 10 * 1000, 1000);
	check(two.units == 10);
	check(carrier_udp_train_packets(one.c) == 1);
	check(!setsockopt(one.fd, SOL_SOCKET, SO_NO_CHECK, &(int){ 0 }, sizeof(int)));
	send_train(&one, &two, "127.0.0.1", 10 * 1000, 1000);
	check(two.units == 10);
	counters(&one, &n);
	check(n.sent == 20 && n.sent_trains == 0 && n.sent_bytes == 20000);
	check(!n.lost_parts && !n.would_block);
	end_close(&one);
	end_close(&two);
}

static void what_cannot_leave_says_why(void)
{
	uint8_t *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct carrier_udp_counters n;
	struct carrier_addr to;
	struct carrier_unit u[3];
	struct iovec iov[3];

	check(gone != MAP_FAILED);
	end_open(&one, false);
	end_open(&two, false);
	to = addr("127.0.0.1", two.port);
	u[0] = unit_to(&to, &iov[0], 0, 0);
	check(carrier_emit(one.c, u, 1) == -EINVAL);
	u[0] = unit_to(&to, &iov[0], 100, 0);
	u[0].count = CARRIER_IOV_MAX + 1;
	check(carrier_emit(one.c, u, 1) == -EINVAL);
	u[0] = unit_to(&to, &iov[0], 65510, 0);
	check(carrier_emit(one.c, u, 1) == -EMSGSIZE);
	u[0] = unit_to(&to, &iov[0], 300000, 70000);
	check(carrier_emit(one.c, u, 1) == -EMSGSIZE);
	u[0] = unit_to(&to, &iov[0], 3 * 65510, 65510);
	check(carrier_emit(one.c, u, 1) == -EMSGSIZE);
	check(carrier_udp_train_packets(one.c) > 1); /* it was not for being a train */
	u[0] = unit_to(&to, &iov[0], 100, 0);
	iov[0].iov_base = gone;
	check(carrier_emit(one.c, u, 1) == -EFAULT);
	u[0].segment = 10;
	check(carrier_emit(one.c, u, 1) == -EFAULT);
	u[0] = unit_to(&to, &iov[0], 100, 0);
	u[0].known = CARRIER_FROM;
	u[0].from = addr("192.0.2.77", 0); /* none of ours */
	check(carrier_emit(one.c, u, 1) == -EHOSTUNREACH);
	memset(&u[0].to, 0, sizeof(u[0].to));
	check(carrier_emit(one.c, u, 1) == -EHOSTUNREACH);
	counters(&one, &n);
	check(n.faulty == 4 && n.too_long == 3 && n.unreachable == 2 && !n.sent);
	/* Behind others: they leave, and the next call says why. */
	for (unsigned i = 0; i < 3; i++)
		u[i] = unit_to(&to, &iov[i], 10 * (i + 1), 0);
	iov[2].iov_len = 65510;
	check(carrier_emit(one.c, u, 3) == 2);
	check(carrier_emit(one.c, u + 2, 1) == -EMSGSIZE);
	await(&two, 2);
	iov[1].iov_base = gone;
	check(carrier_emit(one.c, u, 2) == 1);
	check(carrier_emit(one.c, u + 1, 1) == -EFAULT);
	await(&two, 3);
	end_close(&one);
	end_close(&two);
	munmap(gone, 4096);
}

/* Nobody listens there, and a reply of the kernel says so. */
static void a_port_of_nobody_stops_nothing(void)
{
	struct carrier_addr nobody, to;
	struct carrier_unit u[2];
	struct iovec iov[2];

	end_open(&one, false);
	end_open(&two, false);
	nobody = addr("127.0.0.1", two.port);
	end_close(&two);
	end_open(&two, false);
	check(!setsockopt(one.fd, IPPROTO_IP, 11 /* IP_RECVERR */, &(int){ 1 }, sizeof(int)));
	to = addr("127.0.0.1", two.port);
	u[0] = unit_to(&nobody, &iov[0], 100, 0);
	u[1] = unit_to(&to, &iov[1], 100, 0);
	if (!carrier_addr_equal(&nobody, &to)) {
		struct carrier_udp_counters n;

		for (unsigned i = 0; i < 10; i++) {
			check(carrier_emit(one.c, &u[0], 1) == 1);
			check(carrier_emit(one.c, u, 2) == 2);
			carrier_poll(one.c, 4);
		}
		await(&two, 10);
		counters(&one, &n);
		check(n.icmp >= 10 && n.sent == 30);
	}
	end_close(&one);
	end_close(&two);
}

static void many_units_keep_their_order(void)
{
	enum { MANY = 200 };
	static struct carrier_unit u[MANY];
	static struct iovec iov[MANY];
	struct carrier_addr to;
	size_t at = 0;

	end_open(&one, false);
	end_open(&two, false);
	to = addr("127.0.0.1", two.port);
	for (unsigned i = 0; i < MANY; i++) {
		size_t bytes = 10 + i * 7;

		u[i] = unit_to(&to, &iov[i], bytes, i % 5 == 4 ? 100 : 0);
		iov[i].iov_base = pattern + at;
		at += bytes;
	}
	check(carrier_emit(one.c, u, MANY) == MANY);
	{
		unsigned packets = 0;

		for (unsigned i = 0; i < MANY; i++)
			packets += carrier_unit_packets(&u[i], iov[i].iov_len);
		await(&two, packets);
	}
	check(two.length == at && !memcmp(two.bytes, pattern, at));
	end_close(&one);
	end_close(&two);
}

static void a_poll_uses_its_budget_and_no_more(void)
{
	struct carrier_addr to;
	struct carrier_unit u;
	struct iovec iov;
	unsigned calls = 0;

	end_open(&one, false);
	end_open(&two, false);
	to = addr("127.0.0.1", two.port);
	u = unit_to(&to, &iov, 100, 0);
	for (unsigned i = 0; i < 100; i++)
		check(carrier_emit(one.c, &u, 1) == 1);
	while (two.units < 100) {
		unsigned before = two.units, used = carrier_poll(two.c, 7);

		check(used <= 7 && two.units - before <= used);
		/* Less than the budget: the socket says that there is more. */
		if (used < 7 && two.units < 100) {
			struct pollfd p = { .fd = two.fd, .events = POLLIN };

			check(poll(&p, 1, WAIT_MS) == 1);
		}
		check(++calls < 100);
	}
	check(calls <= 25);
	end_close(&one);
	end_close(&two);
}

static void a_multicast_group_is_joined(void)
{
	struct carrier_addr group = addr("239.192.7.7", 0), to, no = addr("127.0.0.1", 0);
	uint32_t lo = if_nametoindex("lo");
	struct carrier_unit u;
	struct iovec iov;
	uint8_t ip[16];
	uint16_t port;

	end_open(&one, false);
	end_open(&two, false);
	carrier_udp_addr_ip(&group, ip, &port);
	to = carrier_udp_addr_of(ip, 0, two.port);
	u = unit_to(&to, &iov, 100, 0);
	u.known = CARRIER_INTERFACE;
	u.interface = lo;
	check(carrier_udp_member(two.c, &no, lo, true) == -EINVAL);
	check(carrier_udp_member(two.c, &group, lo, false) == -EADDRNOTAVAIL);
	check(carrier_udp_member(one.c, &group, lo, true) == 0);
	/* Not two's: another socket's membership is not enough. */
	check(carrier_emit(one.c, &u, 1) == 1);
	check(carrier_udp_member(two.c, &group, lo, true) == 0);
	check(carrier_udp_member(two.c, &group, lo, true) == 0);
	iov.iov_len = 50;
	check(carrier_emit(one.c, &u, 1) == 1);
	await(&two, 1);
	check(two.length == 50 && carrier_addr_equal(&two.last.to, &to));
	check(carrier_udp_member(two.c, &group, lo, false) == 0);
	end_close(&one);
	end_close(&two);
}

/* ---- several threads ---- */

enum { PACKETS = 20000 };

static atomic_bool stop;

static void *emitter(void *arg)
{
	struct end *e = arg;
	struct carrier_addr to = addr("127.0.0.1", two.port);
	struct iovec iov[3];
	struct carrier_unit u[3];

	for (unsigned i = 0; i < 3; i++)
		u[i] = unit_to(&to, &iov[i], 64, i == 1 ? 16 : 0);
	for (unsigned i = 0; i < PACKETS / 6; i++)
		check(carrier_emit(e->c, u, 3) >= 1);
	return NULL;
}

static void *poller(void *arg)
{
	while (!atomic_load(&stop))
		carrier_poll(arg, 8);
	return NULL;
}

static void drop_deliver(void *arg, const struct carrier_unit *unit)
{
	atomic_fetch_add(&((struct end *)arg)->units,
			 carrier_unit_packets(unit, carrier_unit_bytes(unit)));
}

static void threads_emit_and_poll_together(void)
{
	struct carrier_upper upper = { drop_deliver, NULL, &two };
	struct carrier_udp_counters out, in;
	pthread_t emitters[2], pollers[2];

	end_open(&one, false);
	end_open(&two, false);
	carrier_set_upper(two.c, &upper);
	for (unsigned i = 0; i < 2; i++) {
		check(!pthread_create(&emitters[i], NULL, emitter, &one));
		check(!pthread_create(&pollers[i], NULL, poller, two.c));
	}
	for (unsigned i = 0; i < 2; i++)
		check(!pthread_join(emitters[i], NULL));
	/* Everything has come; a poll that finds another one at work leaves it to that. */
	while (poll(&(struct pollfd){ .fd = two.fd, .events = POLLIN }, 1, 0))
		carrier_poll(two.c, 64);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++)
		check(!pthread_join(pollers[i], NULL));
	counters(&one, &out);
	counters(&two, &in);
	check(out.sent == PACKETS / 6 * 2 * 6);
	/* Of a train that had no room only one packet is counted, of 4. */
	check(in.received == two.units && in.received + 4 * in.overrun >= out.sent);
	check(in.overrun || in.received == out.sent);
	end_close(&one);
	end_close(&two);
}

int main(void)
{
	clock_init();
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + (i >> 8) * 13);
	run_test(addresses_have_one_form);
	run_test(what_is_no_socket_of_udp_is_refused);
	run_test(a_packet_arrives_with_what_is_known_of_it);
	run_test(a_packet_of_ipv6_without_checksum_arrives);
	run_test(a_packet_that_is_longer_than_asked_for_is_dropped);
	run_test(a_train_arrives_as_one);
	run_test(a_long_train_leaves_as_several);
	run_test(refused_trains_leave_as_packets_for_good);
	run_test(what_cannot_leave_says_why);
	run_test(a_port_of_nobody_stops_nothing);
	run_test(many_units_keep_their_order);
	run_test(a_poll_uses_its_budget_and_no_more);
	run_test(a_multicast_group_is_joined);
	run_test(threads_emit_and_poll_together);
	return 0;
}
