/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One way through sockets, as fast as it goes: what the partner has received counts. UDP goes in
 * trains of segments that the kernel takes apart and puts together again (GSO, GRO), without any
 * flow control, as no program can use it; it is the rate of the way itself. TCP is what a program
 * would use.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/floor/floor_pair.h"
#include "bench/floor/floor_socket_pair.h"

/* What one call takes: of UDP the longest datagram, and no more segments than each kernel takes. */
#define TRAIN_MAX 65507
#define SEGMENTS_MAX 64
#define RECEIVE_MAX (64 << 10)
#define UDP_BUFFER (4 << 20)

/* Adds up what has come, until it is killed. */
static void receiving_partner(struct pair *p)
{
	char buffer[RECEIVE_MAX]; /* not static: gateways lock their memory */

	for (;;) {
		ssize_t n = recv(p->fd[1], buffer, sizeof(buffer), 0);

		if (n > 0)
			atomic_fetch_add_explicit(&p->shared->pong, (uint64_t)n,
						  memory_order_relaxed);
		else if (n == 0 || (errno != EINTR && errno != EAGAIN))
			return;
	}
}

static int send_one(const struct pair *p, const char *bytes)
{
	/* Without a limit on the receiver's side UDP finds no room now and then. */
	if (send(p->fd[0], bytes, p->size_bytes, MSG_NOSIGNAL) >= 0 || errno == ENOBUFS ||
	    errno == EINTR)
		return 0;
	return errno == EAGAIN ? -ETIMEDOUT : -errno;
}

/* Bytes that have come for each ns, of each round. */
static int stream_rounds(struct pair *p, uint64_t round_ns, struct floor_rounds *rounds)
{
	const char bytes[RECEIVE_MAX] = { 0 };
	int err = 0;

	for (int i = -1; i < FLOOR_ROUNDS && !err; i++) {
		uint64_t before = atomic_load(&p->shared->pong);
		uint64_t start = clock_ticks(), elapsed_ns = 0, came;

		while (!err && elapsed_ns < round_ns) {
			err = send_one(p, bytes);
			elapsed_ns = clock_ticks_to_ns(clock_ticks() - start);
		}
		came = atomic_load(&p->shared->pong) - before;
		if (i >= 0)
			rounds->value[i] = (double)came / (double)elapsed_ns;
	}
	return err;
}

static int stream_measure(struct pair *p, const struct floor_setting *setting,
			  struct floor_rounds *rounds)
{
	int err = pair_start(p, &setting->cpus, receiving_partner);

	if (err)
		return err;
	err = stream_rounds(p, setting->round_ns, rounds);
	pair_stop(p);
	return err;
}

static int use_trains(const int fd[2], int segment)
{
	const int one = 1, room = UDP_BUFFER;

	/* The kernel gives as much as the host allows. */
	setsockopt(fd[1], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return setsockopt(fd[0], IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)) ||
	       setsockopt(fd[1], IPPROTO_UDP, UDP_GRO, &one, sizeof(one)) ? -errno : 0;
}

int floor_udp_stream(const struct floor_setting *setting, size_t size_bytes,
		     struct floor_rounds *rounds)
{
	size_t segments = TRAIN_MAX / size_bytes;
	struct pair p = { .fd = { -1, -1 } };
	int err = floor_udp_sockets(setting->hosts, p.fd);

	p.size_bytes = size_bytes * (segments < SEGMENTS_MAX ? segments : SEGMENTS_MAX);
	if (!err)
		err = use_trains(p.fd, (int)size_bytes);
	if (!err)
		err = stream_measure(&p, setting, rounds);
	floor_sockets_close(p.fd);
	return err;
}

int floor_tcp_stream(const struct floor_setting *setting, size_t size_bytes,
		     struct floor_rounds *rounds)
{
	struct pair p = { .fd = { -1, -1 }, .size_bytes = size_bytes };
	int err = floor_tcp_sockets(setting->hosts, p.fd);

	if (!err)
		err = stream_measure(&p, setting, rounds);
	floor_sockets_close(p.fd);
	return err;
}
