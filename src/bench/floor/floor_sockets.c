/* SPDX-License-Identifier: BSD-2-Clause */
/* Round trips over sockets: both sides poll, or both sleep. */
#include "bench/floor/floor_pair.h"
#include "bench/floor/floor_socket_pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MAX 64

/* Receives exactly `size` bytes; -ETIMEDOUT: nothing came for a second. */
static int receive_polling(int fd, char *buf, size_t size, atomic_bool *stop)
{
	uint64_t deadline_ns = clock_now_ns() + WAIT_MAX_NS;
	unsigned spins = 0;
	size_t got = 0;

	while (got < size) {
		ssize_t n = recv(fd, buf + got, size - got, MSG_DONTWAIT);

		if (n > 0)
			got += (size_t)n;
		else if (n == 0)
			return -ECONNRESET;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
		else if (atomic_load_explicit(stop, memory_order_relaxed) ||
			 overdue(&spins, deadline_ns))
			return -ETIMEDOUT;
	}
	return 0;
}

static void echo_partner(struct pair *p)
{
	char message[MESSAGE_MAX];

	while (!receive_polling(p->fd[1], message, p->size_bytes,
				&p->shared->stop))
		if (send(p->fd[1], message, p->size_bytes, MSG_NOSIGNAL) < 0)
			return;
}

static int socket_trip(struct pair *p)
{
	char message[MESSAGE_MAX] = "";

	if (send(p->fd[0], message, p->size_bytes, MSG_NOSIGNAL) < 0)
		return -errno;
	return receive_polling(p->fd[0], message, p->size_bytes,
			       &p->shared->stop);
}

/* The same of who sleeps until something comes. */
static int receive_sleeping(int fd, char *buf, size_t size)
{
	for (size_t got = 0; got < size;) {
		ssize_t n = recv(fd, buf + got, size - got, 0);

		if (n > 0)
			got += (size_t)n;
		else if (n == 0)
			return -ECONNRESET;
		else if (errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
	}
	return 0;
}

static void sleeping_echo_partner(struct pair *p)
{
	char message[MESSAGE_MAX];

	while (!receive_sleeping(p->fd[1], message, p->size_bytes))
		if (send(p->fd[1], message, p->size_bytes, MSG_NOSIGNAL) < 0)
			return;
}

static int sleeping_socket_trip(struct pair *p)
{
	char message[MESSAGE_MAX] = "";

	if (send(p->fd[0], message, p->size_bytes, MSG_NOSIGNAL) < 0)
		return -errno;
	return receive_sleeping(p->fd[0], message, p->size_bytes);
}

/* ---- what packets of RoCE v2 need of UDP ---- */

/* BTH and ICRC of a SEND; the acknowledgement beside it has an AETH and no payload. */
#define PACKET_HEADERS 16
#define ACK_BYTES (PACKET_HEADERS + 4)
#define CONTROL_BYTES 256

/* Not connected: source and destination stand with each packet. */
static int packet_sockets(const struct floor_host hosts[2], int fd[2])
{
	static const struct {
		int level, option;
	} options[] = { { IPPROTO_IP, IP_PKTINFO }, { IPPROTO_IP, IP_RECVTOS },
			{ IPPROTO_IP, IP_RECVTTL }, { IPPROTO_UDP, UDP_GRO } };
	struct sockaddr_in addr;
	const int one = 1;
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		fd[i] = floor_host_socket(&hosts[i], SOCK_DGRAM, &addr);
		err = fd[i] < 0 ? fd[i] : 0;
		for (unsigned k = 0; k < ARRAY_SIZE(options) && !err; k++)
			if (setsockopt(fd[i], options[k].level, options[k].option, &one,
				       sizeof(one)))
				err = -errno;
	}
	return err;
}

static void add_control(struct msghdr *m, int level, int type, const void *data,
			size_t bytes)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)((char *)m->msg_control +
						       m->msg_controllen);

	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(bytes), .cmsg_level = level,
			       .cmsg_type = type };
	memcpy(CMSG_DATA(c), data, bytes);
	m->msg_controllen += CMSG_SPACE(bytes);
}

/* A message and the acknowledgement of the last one, in one call. */
static int packets_send(const struct pair *p, int from, const struct sockaddr_in *to)
{
	const struct in_pktinfo source = { .ipi_spec_dst = p->hosts[from].address };
	const uint16_t segment = (uint16_t)(PACKET_HEADERS + p->size_bytes);
	char bytes[PACKET_HEADERS + MESSAGE_MAX + ACK_BYTES] = "";
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES];
	struct iovec iov = { bytes, segment + (size_t)ACK_BYTES };
	struct msghdr m = { .msg_name = (void *)(uintptr_t)to, .msg_namelen = sizeof(*to),
			    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };

	add_control(&m, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	add_control(&m, IPPROTO_IP, IP_PKTINFO, &source, sizeof(source));
	return sendmsg(p->fd[from], &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Both, with all that a receiver is told of them. */
static int packets_receive(const struct pair *p, int at, struct sockaddr_in *from)
{
	uint64_t deadline_ns = clock_now_ns() + WAIT_MAX_NS;
	char bytes[PACKET_HEADERS + MESSAGE_MAX + ACK_BYTES];
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES];
	unsigned spins = 0;

	for (size_t got = 0; got < PACKET_HEADERS + p->size_bytes + ACK_BYTES;) {
		struct iovec iov = { bytes, sizeof(bytes) };
		struct msghdr m = { .msg_name = from, .msg_namelen = sizeof(*from),
				    .msg_iov = &iov, .msg_iovlen = 1,
				    .msg_control = control, .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(p->fd[at], &m, MSG_DONTWAIT);

		if (n > 0)
			got += (size_t)n;
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		else if (atomic_load_explicit(&p->shared->stop, memory_order_relaxed) ||
			 overdue(&spins, deadline_ns))
			return -ETIMEDOUT;
	}
	return 0;
}

static void packet_partner(struct pair *p)
{
	struct sockaddr_in from;

	while (!packets_receive(p, 1, &from))
		if (packets_send(p, 1, &from))
			return;
}

static int packet_trip(struct pair *p)
{
	struct sockaddr_in to, from;
	socklen_t len = sizeof(to);
	int err;

	/* Once a trip; a hundredth of it. */
	if (getsockname(p->fd[1], (struct sockaddr *)&to, &len))
		return -errno;
	err = packets_send(p, 0, &to);
	return err ? err : packets_receive(p, 0, &from);
}

typedef int (*sockets_fn)(const struct floor_host hosts[2], int fd[2]);

static int socket_measure(sockets_fn sockets, void (*partner)(struct pair *),
			  int (*trip)(struct pair *), const struct floor_setting *setting,
			  size_t size_bytes, struct floor_rounds *rounds)
{
	struct pair p = { .fd = { -1, -1 }, .size_bytes = size_bytes,
			  .hosts = setting->hosts, .each = true };
	int err = sockets(setting->hosts, p.fd);

	if (!err)
		err = pair_measure(&p, setting, partner, trip, rounds);
	floor_sockets_close(p.fd);
	return err;
}

int floor_udp(const struct floor_setting *setting, size_t size_bytes,
	      struct floor_rounds *rounds)
{
	return socket_measure(floor_udp_sockets, echo_partner, socket_trip, setting,
			      size_bytes, rounds);
}

int floor_tcp(const struct floor_setting *setting, size_t size_bytes,
	      struct floor_rounds *rounds)
{
	return socket_measure(floor_tcp_sockets, echo_partner, socket_trip, setting,
			      size_bytes, rounds);
}

int floor_udp_sleeping(const struct floor_setting *setting, size_t size_bytes,
		       struct floor_rounds *rounds)
{
	return socket_measure(floor_udp_sockets, sleeping_echo_partner, sleeping_socket_trip, setting,
			      size_bytes, rounds);
}

int floor_tcp_sleeping(const struct floor_setting *setting, size_t size_bytes,
		       struct floor_rounds *rounds)
{
	return socket_measure(floor_tcp_sockets, sleeping_echo_partner, sleeping_socket_trip, setting,
			      size_bytes, rounds);
}

int floor_udp_packets(const struct floor_setting *setting, size_t size_bytes,
		      struct floor_rounds *rounds)
{
	return socket_measure(packet_sockets, packet_partner, packet_trip, setting,
			      size_bytes, rounds);
}
