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
	int qp;
	uint16_t port; /* network order */
	bool crc, markers;
};

static int listener = -1;

static int begin_to_listen(struct end *e, void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	struct note *n = arg;

	(void)e;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&at, &length))
		return errno;
	n->port = at.sin_port;
	return 0;
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

int stream_attach(struct end *e, int i, int fd, const struct stream_how *how)
{
	uint8_t sent[FRAME_BYTES], received[FRAME_BYTES];
	const struct iwarp_terms terms = {
		.initiator = how->initiator,
		.markers_in = how->markers, .markers_out = how->markers, .crc = how->crc,
		.ird = READS, .ord = READS, .rtr = IWARP_RTR_WRITE,
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
	return -function(e->qp[i]->qp_num, &stream);
}

/* `fd` becomes the adapter's. */
static int attach(struct end *e, const struct note *n, int fd, bool initiator)
{
	return stream_attach(e, n->qp, fd, &(struct stream_how){
		.initiator = initiator, .crc = n->crc, .markers = n->markers });
}

int stream_close(struct end *e, int i)
{
	int (*function)(uint32_t qpn, const void *arg);

	*(void **)&function = dlsym(RTLD_DEFAULT, "busbar_stream_close");
	return function ? -function(e->qp[i]->qp_num, &ends) : ENOSYS;
}

static int initiate(struct end *e, void *arg)
{
	const struct note *n = arg;
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = n->port,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)))
		return errno;
	return attach(e, n, fd, true);
}

void stream_sockets(int fd[2])
{
	struct note n = { 0 };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	expect_eq(begin_to_listen(NULL, &n), 0);
	to.sin_port = n.port;
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	expect(fd[0] >= 0 && !connect(fd[0], (struct sockaddr *)&to, sizeof(to)));
	fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	expect(fd[1] >= 0);
	close(listener);
}

static int respond(struct end *e, void *arg)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return errno;
	close(listener);
	return attach(e, arg, fd, false);
}

void stream_connect(struct pair *p, int i)
{
	const char *how = getenv("ADAPTER_STREAM");
	struct note n = { .qp = i, .crc = how && strstr(how, "crc"),
			  .markers = how && strstr(how, "markers") };

	expect_eq(side_run(&p->b, begin_to_listen, &n, sizeof(n)), 0);
	expect_eq(side_run(&p->a, initiate, &n, sizeof(n)), 0);
	expect_eq(side_run(&p->b, respond, &n, sizeof(n)), 0);
}
