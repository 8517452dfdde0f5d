/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects queue pairs of an RNIC, as a connection manager does: over a TCP connection on the loopback
 * interface, with terms that the test knows (hca/path/stream.h). */
#include "stream.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/iwarp/setup.h"
#include "hca/path/stream.h"

enum { READS = 4, FRAME_BYTES = 24 };

struct note {
	uint32_t qpn;
	uint16_t port; /* network order */
	struct stream_how how;
};

static int listener = -1;

static int listen_here(int *fd, in_port_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0 || bind(*fd, (struct sockaddr *)&at, sizeof(at)) || listen(*fd, 1) ||
	    getsockname(*fd, (struct sockaddr *)&at, &length))
		return errno;
	*port = at.sin_port;
	return 0;
}

static int begin_to_listen(struct end *e, void *arg)
{
	struct note *n = arg;

	(void)e;
	return listen_here(&listener, &n->port);
}

static atomic_uint ends;

static void tell(void *arg, enum hca_stream_event event)
{
	(void)arg;
	if (event == HCA_STREAM_ENDED)
		atomic_fetch_add(&ends, 1);
}

unsigned stream_ends(void)
{
	return atomic_load(&ends);
}

/* The frame of MPA with which one end would have agreed on that, for captures. */
static void frame_of(const struct stream_how *how, bool reply, uint8_t to[FRAME_BYTES])
{
	static const uint8_t rest[FRAME_BYTES - 17] = { 2, 0, 4, 0x80, READS, 0x80, READS };

	memcpy(to, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
	to[16] = (uint8_t)(0x10 | (how->markers ? 0x80 : 0) | (how->crc ? 0x40 : 0));
	memcpy(to + 17, rest, sizeof(rest));
}

/* `fd` becomes the adapter's. */
static int attach(uint32_t qpn, int fd, const struct stream_how *how)
{
	uint8_t sent[FRAME_BYTES], received[FRAME_BYTES];
	const struct iwarp_terms terms = {
		.initiator = how->initiator,
		.markers_in = how->markers, .markers_out = how->markers, .crc = how->crc,
		.ird = READS, .ord = READS,
		.rtr = (uint8_t)(how->old ? 0 : how->rtr ? how->rtr : IWARP_RTR_WRITE),
	};
	const struct hca_stream stream = {
		.fd = fd, .terms = &terms, .inbound_reads = READS, .outbound_reads = READS,
		.refused = how->refused,
		.sent = sent, .sent_bytes = sizeof(sent),
		.received = received, .received_bytes = sizeof(received),
		.tell = tell, .arg = &ends,
	};
	int (*function)(uint32_t qpn, const struct hca_stream *stream);

	*(void **)&function = dlsym(RTLD_DEFAULT, "busbar_stream_attach");
	if (!function)
		return ENOSYS;
	frame_of(how, !how->initiator, sent);
	frame_of(how, how->initiator, received);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return -function(qpn, &stream);
}

int stream_attach(struct end *e, int i, int fd, const struct stream_how *how)
{
	return attach(e->qp[i]->qp_num, fd, how);
}

/* Small buffers make TCP take parts of what is written. */
static int set_room(int fd, int bytes)
{
	return bytes && (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) ||
			 setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes))) ? errno : 0;
}

int stream_close(struct end *e, int i)
{
	int (*function)(uint32_t qpn, const void *arg);

	*(void **)&function = dlsym(RTLD_DEFAULT, "busbar_stream_close");
	return function ? -function(e->qp[i]->qp_num, &ends) : ENOSYS;
}

static int initiate(struct end *e, void *arg)
{
	struct note *n = arg;
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = n->port,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)e;
	if (fd < 0 || set_room(fd, n->how.room) ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)))
		return errno;
	n->how.initiator = true;
	return attach(n->qpn, fd, &n->how);
}

void stream_sockets(int fd[2])
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int own;

	expect_eq(listen_here(&own, &to.sin_port), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	expect(fd[0] >= 0 && !connect(fd[0], (struct sockaddr *)&to, sizeof(to)));
	fd[1] = accept4(own, NULL, NULL, SOCK_CLOEXEC);
	expect(fd[1] >= 0);
	close(own);
}

static int respond(struct end *e, void *arg)
{
	const struct note *n = arg;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	(void)e;
	if (fd < 0 || set_room(fd, n->how.room))
		return errno;
	close(listener);
	return attach(n->qpn, fd, &n->how);
}

void stream_join(struct side *a, uint32_t qpn_a, struct side *b, uint32_t qpn_b,
		 const struct stream_how *how)
{
	struct note n = { .how = *how }, initiator;

	expect_eq(side_run(b, begin_to_listen, &n, sizeof(n)), 0);
	initiator = n;
	initiator.qpn = qpn_a;
	n.qpn = qpn_b;
	expect_eq(side_run(a, initiate, &initiator, sizeof(initiator)), 0);
	expect_eq(side_run(b, respond, &n, sizeof(n)), 0);
}

void stream_connect(struct pair *p, int i)
{
	const char *text = getenv("ADAPTER_STREAM");
	const struct stream_how how = { .crc = text && strstr(text, "crc"),
					.markers = text && strstr(text, "markers") };

	stream_join(&p->a, p->a.qpn[i], &p->b, p->b.qpn[i], &how);
}
