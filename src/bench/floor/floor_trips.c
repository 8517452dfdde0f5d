/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floor measurements over sockets. Round trips: both sides poll, or both sleep. One way, as fast as
 * it goes: what the partner has received counts. UDP goes in trains of segments that the kernel
 * takes apart and puts together again (GSO, GRO), without any flow control, as no program can use
 * it; it is the rate of the way itself. TCP is what a program would use.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "bench/floor/floor_method.h"
#include "util/udp_offload.h"

#define MESSAGE_MAX 64

/*
 * Two sockets that are connected to each other, one for each process of a pair. A socket stays in
 * the namespace in which it was made, so only the thread that makes it goes there, for that call.
 * All fill fd[]; 0 or a negative errno; fd[i] is -1, or has to be closed also after an error. A
 * call that sleeps in one gives up after a second.
 */

/* "A=10.77.0.1" up to `end`. */
static bool parse_one(const char *text, const char *end, struct floor_host *host)
{
	const char *equals = memchr(text, '=', (size_t)(end - text));
	char address[INET_ADDRSTRLEN];

	if (!equals || equals == text || memchr(text, '/', (size_t)(equals - text)) ||
	    (size_t)(equals - text) >= sizeof(host->netns) ||
	    (size_t)(end - equals) > sizeof(address))
		return false;
	snprintf(host->netns, sizeof(host->netns), "%.*s", (int)(equals - text), text);
	snprintf(address, sizeof(address), "%.*s", (int)(end - equals - 1), equals + 1);
	return inet_pton(AF_INET, address, &host->address) == 1;
}

bool floor_hosts_parse(const char *text, struct floor_host hosts[2])
{
	const char *comma = strchr(text, ',');

	return comma && parse_one(text, comma, &hosts[0]) &&
	       parse_one(comma + 1, comma + 1 + strlen(comma + 1), &hosts[1]);
}

static int make_there(const char *netns, int type)
{
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), there, fd;
	char path[100];

	if (here < 0)
		return -errno;
	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	there = open(path, O_RDONLY | O_CLOEXEC);
	fd = there < 0 ? -errno : 0;
	if (there >= 0) {
		fd = setns(there, CLONE_NEWNET) ? -errno : socket(AF_INET, type, 0);
		if (fd == -1)
			fd = -errno;
		if (setns(here, CLONE_NEWNET) && fd >= 0) {
			close(fd);
			fd = -EIO;
		}
		close(there);
	}
	close(here);
	return fd;
}

/* A socket of IPv4 in the host's namespace, bound to its address and a port that is free, which
 * *addr gets. The descriptor, or a negative errno. */
static int host_socket(const struct floor_host *host, int type, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = host->netns[0] ? make_there(host->netns, type | SOCK_CLOEXEC) :
				  socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return host->netns[0] ? fd : -errno;
	*addr = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = host->address };
	if (bind(fd, (struct sockaddr *)addr, sizeof(*addr)) ||
	    getsockname(fd, (struct sockaddr *)addr, &len)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static int limit_sleep(int fd)
{
	const struct timeval most = { .tv_sec = 1 };

	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) ||
	       setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) ? -errno : 0;
}

static int floor_sockets_udp(const struct floor_host hosts[2], int fd[2])
{
	struct sockaddr_in addr[2];
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		fd[i] = host_socket(&hosts[i], SOCK_DGRAM, &addr[i]);
		err = fd[i] < 0 ? fd[i] : limit_sleep(fd[i]);
	}
	for (int i = 0; i < 2 && !err; i++)
		if (connect(fd[i], (struct sockaddr *)&addr[!i], sizeof(addr[0])))
			err = -errno;
	return err;
}

static int floor_sockets_tcp(const struct floor_host hosts[2], int fd[2])
{
	struct sockaddr_in addr, other;
	const int one = 1;
	int listener = host_socket(&hosts[1], SOCK_STREAM, &addr), err = 0;

	if (listener < 0)
		return listener;
	fd[0] = host_socket(&hosts[0], SOCK_STREAM, &other);
	if (fd[0] < 0)
		err = fd[0];
	else if (listen(listener, 1) || connect(fd[0], (struct sockaddr *)&addr, sizeof(addr)))
		err = -errno;
	if (!err) {
		fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		err = fd[1] < 0 ? -errno : 0;
	}
	for (int i = 0; i < 2 && !err; i++) {
		err = limit_sleep(fd[i]);
		if (!err && setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
			err = -errno;
	}
	close(listener);
	return err;
}

static int floor_sockets_packet(const struct floor_host hosts[2], int fd[2])
{
	static const struct {
		int level, option;
	} options[] = { { IPPROTO_IP, IP_PKTINFO }, { IPPROTO_IP, IP_RECVTOS },
			{ IPPROTO_IP, IP_RECVTTL }, { IPPROTO_UDP, UDP_GRO } };
	struct sockaddr_in addr;
	const int one = 1;
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		fd[i] = host_socket(&hosts[i], SOCK_DGRAM, &addr);
		err = fd[i] < 0 ? fd[i] : 0;
		for (unsigned k = 0; k < ARRAY_SIZE(options) && !err; k++)
			if (setsockopt(fd[i], options[k].level, options[k].option, &one,
				       sizeof(one)))
				err = -errno;
	}
	return err;
}

static void floor_sockets_close(const int fd[2])
{
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

/* ---- round trips ---- */

/* Receives exactly a message, polling or asleep; -ETIMEDOUT: nothing came for a second. */
static int receive(const struct pair *p, int fd, char *buf)
{
	uint64_t deadline_ns = clock_now_ns() + WAIT_MAX_NS;
	unsigned spins = 0;

	for (size_t got = 0; got < p->size_bytes;) {
		ssize_t n = recv(fd, buf + got, p->size_bytes - got, p->sleeps ? 0 : MSG_DONTWAIT);

		if (n > 0)
			got += (size_t)n;
		else if (n == 0)
			return -ECONNRESET;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
		else if (p->sleeps ? errno == EAGAIN :
			 atomic_load_explicit(&p->shared->stop, memory_order_relaxed) ||
				 overdue(&spins, deadline_ns))
			return -ETIMEDOUT;
	}
	return 0;
}

static void echo_partner(struct pair *p)
{
	char message[MESSAGE_MAX];

	while (!receive(p, p->fd[1], message))
		if (send(p->fd[1], message, p->size_bytes, MSG_NOSIGNAL) < 0)
			return;
}

static int socket_trip(struct pair *p)
{
	char message[MESSAGE_MAX] = "";

	if (send(p->fd[0], message, p->size_bytes, MSG_NOSIGNAL) < 0)
		return -errno;
	return receive(p, p->fd[0], message);
}

/* ---- what packets of RoCE v2 need of UDP ---- */

/* BTH and ICRC of a SEND; the acknowledgement beside it has an AETH and no payload. */
#define PACKET_HEADERS 16
#define ACK_BYTES (PACKET_HEADERS + 4)
#define CONTROL_BYTES 256

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

/* ---- one way ---- */

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

static int send_bytes(const struct pair *p, const char *bytes)
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
			err = send_bytes(p, bytes);
			elapsed_ns = clock_ticks_to_ns(clock_ticks() - start);
		}
		came = atomic_load(&p->shared->pong) - before;
		if (i >= 0)
			rounds->value[i] = (double)came / (double)elapsed_ns;
	}
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

/* ---- the measurements ---- */

static int time_trips(const struct floor_measure *m, const struct floor_setting *setting,
		      struct floor_rounds *rounds)
{
	const struct floor_method *method = m->method;
	struct pair p = { .fd = { -1, -1 }, .size_bytes = m->size_bytes,
			  .hosts = setting->hosts, .each = true, .sleeps = method->sleeps };
	int err = method->sockets(setting->hosts, p.fd);

	if (!err)
		err = pair_measure(&p, method, setting, rounds);
	floor_sockets_close(p.fd);
	return err;
}

static int time_stream(const struct floor_measure *m, const struct floor_setting *setting,
		       struct floor_rounds *rounds)
{
	bool trains = m->method->sockets == floor_sockets_udp;
	size_t segments = trains ? MIN(TRAIN_MAX / m->size_bytes, (size_t)SEGMENTS_MAX) : 1;
	struct pair p = { .fd = { -1, -1 }, .size_bytes = m->size_bytes * segments };
	int err = m->method->sockets(setting->hosts, p.fd);

	if (!err && trains)
		err = use_trains(p.fd, (int)m->size_bytes);
	if (!err)
		err = pair_start(&p, &setting->cpus, m->method->partner);
	if (!err) {
		err = stream_rounds(&p, setting->round_ns, rounds);
		pair_stop(&p);
	}
	floor_sockets_close(p.fd);
	return err;
}

const struct floor_method floor_udp = { time_trips, .sockets = floor_sockets_udp,
					.partner = echo_partner, .trip = socket_trip };
const struct floor_method floor_tcp = { time_trips, .sockets = floor_sockets_tcp,
					.partner = echo_partner, .trip = socket_trip };
const struct floor_method floor_udp_sleeping = { time_trips, .sockets = floor_sockets_udp,
						 .partner = echo_partner, .trip = socket_trip,
						 .sleeps = true };
const struct floor_method floor_tcp_sleeping = { time_trips, .sockets = floor_sockets_tcp,
						 .partner = echo_partner, .trip = socket_trip,
						 .sleeps = true };
const struct floor_method floor_udp_packets = { time_trips, .sockets = floor_sockets_packet,
						.partner = packet_partner, .trip = packet_trip };
const struct floor_method floor_udp_stream = { time_stream, .sockets = floor_sockets_udp,
					       .partner = receiving_partner };
const struct floor_method floor_tcp_stream = { time_stream, .sockets = floor_sockets_tcp,
					       .partner = receiving_partner };
