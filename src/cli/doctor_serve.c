/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar doctor --serve`: answers the probes of other hosts. */
#include "cli/doctor.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/doctor_probe.h"
#include "util/abstract.h"
#include "util/clock.h"
#include "util/container_of.h"

/* Who asked last; the oldest gives way. */
#define CLIENTS 32
#define SHORT_REPLY 64 /* what everybody gets, no longer than a request may be */

struct client {
	struct in6_addr address;
	uint64_t token; /* never 0 */
};

struct server {
	int fds[2];
	uint16_t ports[2];
	struct client clients[CLIENTS];
	unsigned next;
	uint64_t answers;
};

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

/* NULL: there is no randomness, so nobody gets a token. */
static const struct client *client_of(struct server *s, const struct in6_addr *address)
{
	struct client *c;

	for (unsigned i = 0; i < CLIENTS; i++)
		if (s->clients[i].token &&
		    IN6_ARE_ADDR_EQUAL(&s->clients[i].address, address))
			return &s->clients[i];
	c = &s->clients[s->next++ % CLIENTS];
	c->token = 0;
	if (getrandom(&c->token, sizeof(c->token), GRND_NONBLOCK) != sizeof(c->token))
		return NULL;
	c->token |= 1;
	c->address = *address;
	if (s->next <= 1000) {
		char text[INET6_ADDRSTRLEN];
		const struct sockaddr_in6 from = { .sin6_addr = *address };

		doctor_good("probes come from %s", doctor_text(&from, text));
	}
	return c;
}

/* The reply leaves from the address that was asked: `m` has it in its control message. */
static void answer(struct server *s, int fd, struct msghdr *m, const struct doctor_probe *request)
{
	static uint8_t bytes[DOCTOR_PROBE_MAX];
	const struct sockaddr_in6 *from = m->msg_name;
	struct sockaddr_in6 mapped = *from;
	const struct client *c;
	struct iovec iov = { bytes, 0 };
	struct doctor_probe reply = {
		.kind = DOCTOR_REPLY,
		.session = request->session,
		.sequence = request->sequence,
		.length = request->other,
		.other = request->length,
	};

	doctor_map(m->msg_name, &mapped);
	c = client_of(s, &mapped.sin6_addr);
	reply.token = c ? c->token : 0;
	if (reply.length > SHORT_REPLY && reply.length > request->length &&
	    (!c || request->token != c->token)) {
		reply.length = DOCTOR_PROBE_BYTES;
		reply.status = DOCTOR_TOKEN;
	}
	m->msg_iov = &iov;
	m->msg_iovlen = 1;
	m->msg_flags = 0;
	doctor_probe_encode(&reply, bytes);
	iov.iov_len = reply.length;
	if (sendmsg(fd, m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EMSGSIZE) {
		reply.status = DOCTOR_TOO_LONG;
		reply.length = DOCTOR_PROBE_BYTES;
		doctor_probe_encode(&reply, bytes);
		iov.iov_len = reply.length;
		sendmsg(fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	s->answers++;
}

static void receive(struct server *s, int fd)
{
	static uint8_t bytes[DOCTOR_PROBE_MAX + 1];

	for (unsigned i = 0; i < 64; i++) {
		union {
			struct cmsghdr header;
			uint8_t room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		} control;
		struct sockaddr_in6 from = { .sin6_family = AF_UNSPEC };
		struct iovec iov = { bytes, sizeof(bytes) };
		struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from),
				    .msg_iov = &iov, .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control) };
		struct doctor_probe p;
		ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT);

		if (got < 0 && errno == EAGAIN)
			return;
		if (got < 0 || m.msg_flags & MSG_TRUNC ||
		    doctor_probe_decode(bytes, (size_t)got, &p) || p.kind != DOCTOR_REQUEST)
			continue;
		answer(s, fd, &m, &p);
	}
}

static int open_ports(struct server *s, uint16_t port)
{
	s->ports[0] = port;
	s->ports[1] = DOCTOR_SECOND_PORT;
	s->fds[1] = -1;
	s->fds[0] = doctor_socket(SOCK_DGRAM, port);
	if (s->fds[0] < 0)
		return s->fds[0];
	/* Without the second one a client cannot tell a filter from a host that is away. */
	if (port != DOCTOR_SECOND_PORT)
		s->fds[1] = doctor_socket(SOCK_DGRAM, DOCTOR_SECOND_PORT);
	return 0;
}

void doctor_serve_begin(void)
{
	struct sigaction action = { .sa_handler = end };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool doctor_serve_wait(struct pollfd *polled, unsigned count, uint64_t until)
{
	uint64_t now;

	while (!ended && (now = clock_now_ns()) < until) {
		uint64_t wait_ms = (until - now) / 1000000 + 1;

		/* Not for ever, as a signal may come before the call. */
		if (poll(polled, count, (int)MIN(wait_ms, 500)) > 0)
			return true;
	}
	return false;
}

static void run(struct server *s, unsigned seconds)
{
	uint64_t until = seconds ? clock_now_ns() + seconds * NSEC_PER_SEC : UINT64_MAX;
	struct pollfd polled[2] = { { .fd = s->fds[0], .events = POLLIN },
				    { .fd = s->fds[1], .events = POLLIN } };

	while (doctor_serve_wait(polled, 2, until)) {
		for (unsigned i = 0; i < 2; i++)
			if (s->fds[i] >= 0 && polled[i].revents)
				receive(s, s->fds[i]);
	}
}

int doctor_serve(uint16_t port, unsigned seconds)
{
	struct server s = { .next = 0 };
	struct abstract_name name;
	int ret = open_ports(&s, port), mark = -1;

	if (ret) {
		doctor_bad("try again", "UDP port %u was taken meanwhile: %s", port, strerror(-ret));
		return CLI_FAILED;
	}
	/* For a `busbar doctor` on this host, which finds the port taken. */
	if (!abstract_name(&name, "busbar.doctor.%u", port))
		mark = abstract_open(&name, SOCK_SEQPACKET, 1);
	doctor_serve_begin();
	doctor_good("answering probes on UDP port %u%s", port, s.fds[1] >= 0 ?
		    ", and on 14791 to tell a filter from a host that is away" : "");
	run(&s, seconds);
	for (unsigned i = 0; i < 2; i++)
		if (s.fds[i] >= 0)
			close(s.fds[i]);
	if (mark >= 0)
		close(mark);
	if (s.answers) {
		doctor_good("%llu probes were answered", (unsigned long long)s.answers);
		return CLI_OK;
	}
	doctor_bad("if another host sent some, a filter drops them: see busbar-doctor(1)",
		   "no probe came");
	return CLI_FAILED;
}
