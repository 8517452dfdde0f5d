/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the carrier over UDP costs beside plain system calls: the round trip of 64 bytes and
 * a stream of packets of 4160 bytes in trains, each by two carriers and by recvmsg() and
 * sendmsg() alone, in turns. First in one process, where a packet has come when the call
 * that sends it returns, so nothing waits; then between two processes that poll, which
 * means something only where each has a processor of its own. Times are the best of many
 * short pieces. With `--limit` it fails above 1.1 of a round trip or below 0.9 of a stream.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "transport/carrier/udp.h"
#include "util/clock.h"
#include "util/udp_offload.h"

enum {
	SMALL = 64, PACKET = 4160, TRAIN = 15 * PACKET,
	PIECE = 64,   /* round trips or trains that are timed together */
	PIECES = 16,
	WINDOW = 8,   /* trains on their way */
	TURNS = 9,
	LONGEST_S = 200,
};

/* One end, by a carrier or by the socket alone. */
struct end {
	int fd;
	struct carrier *c; /* NULL: the socket alone */
	struct sockaddr_in to;
	struct carrier_addr carrier_to;
	uint64_t packets, bytes; /* that came */
};

static bool bring_all;
static uint8_t out_bytes[TRAIN], in_bytes[65536];

static void on_deliver(void *arg, const struct carrier_unit *unit)
{
	struct end *e = arg;

	e->packets++;
	e->bytes += carrier_unit_bytes(unit);
}

static void end_init(struct end *e, bool by_carrier)
{
	struct carrier_udp_params p = { .clock = clock_source_host() };
	struct carrier_upper upper = { on_deliver, NULL, e };
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	memset(e, 0, sizeof(*e));
	if (by_carrier) {
		e->fd = p.fd = carrier_udp_socket(0);
		check(e->fd >= 0 && !carrier_udp_open(&p, &e->c));
		carrier_set_upper(e->c, &upper);
		if (!bring_all)
			check(carrier_udp_bring(e->c, 0) == 0);
		return;
	}
	e->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	check(e->fd >= 0 && !bind(e->fd, (struct sockaddr *)&any, sizeof(any)));
	setsockopt(e->fd, SOL_SOCKET, SO_RCVBUF, &(int){ 4 << 20 }, sizeof(int));
	setsockopt(e->fd, SOL_SOCKET, SO_SNDBUF, &(int){ 4 << 20 }, sizeof(int));
	setsockopt(e->fd, SOL_UDP, UDP_GRO, &(int){ 1 }, sizeof(int));
}

static void end_close(struct end *e)
{
	carrier_close(e->c);
	close(e->fd);
}

static uint16_t port_of(const struct end *e)
{
	struct sockaddr_in6 a;
	socklen_t len = sizeof(a);

	check(!getsockname(e->fd, (struct sockaddr *)&a, &len));
	return ntohs(a.sin6_port); /* at the same place in both */
}

static void aim(struct end *e, uint16_t port)
{
	e->to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	check(!carrier_udp_addr((struct sockaddr *)&e->to, sizeof(e->to), &e->carrier_to));
}

static void send_small(struct end *e)
{
	struct iovec iov = { out_bytes, SMALL };
	struct carrier_unit u = { .iov = &iov, .count = 1, .to = e->carrier_to };

	if (e->c)
		check(carrier_emit(e->c, &u, 1) == 1);
	else
		check(sendto(e->fd, out_bytes, SMALL, 0, (struct sockaddr *)&e->to,
			     sizeof(e->to)) == SMALL);
}

static void send_train(struct end *e)
{
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(uint16_t)),
				  .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT } };
	struct iovec iov = { out_bytes, TRAIN };
	struct carrier_unit u = { .iov = &iov, .count = 1, .segment = PACKET,
				  .to = e->carrier_to };
	struct msghdr m = { .msg_name = &e->to, .msg_namelen = sizeof(e->to),
			    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	if (e->c) {
		check(carrier_emit(e->c, &u, 1) == 1);
		return;
	}
	memcpy(CMSG_DATA(&control.header), &(uint16_t){ PACKET }, sizeof(uint16_t));
	check(sendmsg(e->fd, &m, 0) == TRAIN);
}

/* recvfrom() as the round trip would do it; with room for UDP_GRO's message as a stream
 * would. */
static void poll_one(struct end *e, bool train)
{
	uint8_t control[CMSG_SPACE(sizeof(int))];
	struct sockaddr_in from;
	struct iovec iov = { in_bytes, sizeof(in_bytes) };
	struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov,
			    .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	socklen_t len = sizeof(from);
	ssize_t got;

	if (e->c) {
		carrier_poll(e->c, 16);
		return;
	}
	got = train ? recvmsg(e->fd, &m, MSG_DONTWAIT) :
		      recvfrom(e->fd, in_bytes, sizeof(in_bytes), MSG_DONTWAIT,
			       (struct sockaddr *)&from, &len);
	if (got >= 0) {
		e->packets++;
		e->bytes += (uint64_t)got;
	} else {
		check(errno == EAGAIN);
	}
}

static void poll_until(struct end *e, uint64_t packets, bool train)
{
	while (e->packets < packets)
		poll_one(e, train);
}

static void keep_best(double *best, uint64_t start)
{
	double took = (double)(clock_now_ns() - start) / PIECE;

	if (took < *best)
		*best = took;
}

/* Nanoseconds of a round trip and of a train. */
struct result {
	double trip, train;
};

static struct result measure_in_one(bool by_carrier)
{
	struct result r = { 1e12, 1e12 };
	struct end a, b;

	end_init(&a, by_carrier);
	end_init(&b, by_carrier);
	aim(&a, port_of(&b));
	aim(&b, port_of(&a));
	for (unsigned piece = 0; piece < PIECES; piece++) {
		uint64_t start = clock_now_ns();

		for (unsigned i = 0; i < PIECE; i++) {
			send_small(&a);
			poll_until(&b, b.packets + 1, false);
			send_small(&b);
			poll_until(&a, a.packets + 1, false);
		}
		keep_best(&r.trip, start);
	}
	for (unsigned piece = 0; piece < PIECES; piece++) {
		uint64_t start = clock_now_ns();

		for (unsigned i = 0; i < PIECE; i++) {
			uint64_t bytes = b.bytes + TRAIN;

			send_train(&a);
			while (b.bytes < bytes)
				poll_one(&b, true);
		}
		keep_best(&r.train, start);
	}
	end_close(&a);
	end_close(&b);
	return r;
}

/* The other process: answers each small packet, then tells of each half of the window. */
static void other_main(struct end *e)
{
	uint64_t told = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LONGEST_S);
	for (unsigned i = 0; i < PIECE * PIECES; i++) {
		poll_until(e, i + 1, false);
		send_small(e);
	}
	e->bytes = 0;
	while (told < PIECE * PIECES) {
		poll_one(e, true);
		while (told + WINDOW / 2 <= e->bytes / TRAIN) {
			told += WINDOW / 2;
			send_small(e);
		}
	}
	_exit(0);
}

static struct result measure_in_two(bool by_carrier)
{
	struct result r = { 1e12, 1e12 };
	uint64_t answered;
	struct end a, b;
	unsigned sent = 0;
	int status;
	pid_t pid;

	end_init(&a, by_carrier);
	end_init(&b, by_carrier);
	aim(&a, port_of(&b));
	aim(&b, port_of(&a));
	pid = fork();
	check(pid >= 0);
	if (!pid)
		other_main(&b);
	for (unsigned piece = 0; piece < PIECES; piece++) {
		uint64_t start = clock_now_ns();

		for (unsigned i = 0; i < PIECE; i++) {
			send_small(&a);
			poll_until(&a, a.packets + 1, false);
		}
		keep_best(&r.trip, start);
	}
	answered = a.packets;
	for (unsigned piece = 0; piece < PIECES; piece++) {
		uint64_t start = clock_now_ns();

		for (unsigned i = 0; i < PIECE; i++, sent++) {
			while (sent - (a.packets - answered) * (WINDOW / 2) >= WINDOW)
				poll_one(&a, true);
			send_train(&a);
		}
		keep_best(&r.train, start);
	}
	check(waitpid(pid, &status, 0) == pid && status == 0);
	end_close(&a);
	end_close(&b);
	return r;
}

static bool compare(const char *what, struct result (*measure)(bool))
{
	struct result best[2] = { { 1e12, 1e12 }, { 1e12, 1e12 } };
	double trip, speed;

	for (unsigned i = 0; i < 2 * TURNS; i++) {
		struct result r = measure(i % 2), *b = &best[i % 2];

		b->trip = r.trip < b->trip ? r.trip : b->trip;
		b->train = r.train < b->train ? r.train : b->train;
	}
	trip = best[1].trip / best[0].trip;
	speed = best[0].train / best[1].train;
	printf("%s: round trip of %d bytes: sockets %.0f ns, carriers %.0f ns, %.3f of it\n", what,
	       SMALL, best[0].trip, best[1].trip, trip);
	printf("%s: stream of packets of %d bytes: sockets %.2f GB/s, carriers %.2f GB/s, %.3f of it\n",
	       what, PACKET, TRAIN / best[0].train, TRAIN / best[1].train, speed);
	fflush(stdout);
	return trip <= 1.1 && speed >= 0.9;
}

int main(int argc, char **argv)
{
	bool limit = false, good;

	for (int i = 1; i < argc; i++) {
		limit |= !strcmp(argv[i], "--limit");
		bring_all |= !strcmp(argv[i], "--all");
	}
	alarm(LONGEST_S);
	clock_init();
	good = compare("one process", measure_in_one);
	good &= compare("two processes", measure_in_two);
	return limit && !good;
}
