/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare loop over libzmq; see echo.h. SERVER is what FROM and TO are put behind, such as
 * "tcp://" for addresses: a program publishes at TO, where it binds, and subscribes to FROM, where
 * it connects. So do nodes zeromq by default.
 */
#include <errno.h>
#include <zmq.h>

#include "echo.h"

struct echo {
	void *pub, *sub;
};

static int check(int rc, const char *what)
{
	if (rc < 0)
		fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
	return rc < 0 ? -1 : 0;
}

struct echo *echo_open(const char *server, const char *from, const char *to)
{
	static void *context; /* with one thread for all pairs, as a gateway's */
	struct echo *e = calloc(1, sizeof(*e));
	int second = 1000, none = 0, yes = 1;
	char address[256];

	if (!context)
		context = zmq_ctx_new();
	if (!e || !context)
		return NULL;
	e->pub = zmq_socket(context, ZMQ_PUB);
	e->sub = zmq_socket(context, ZMQ_SUB);
	if (!e->pub || !e->sub)
		return NULL;
	zmq_setsockopt(e->pub, ZMQ_LINGER, &none, sizeof(none));
	/* libzmq learns of 500 messages at a time, late, that they have left, and would drop some
	 * though there are few. Nodes do the same. */
	zmq_setsockopt(e->pub, ZMQ_XPUB_NODROP, &yes, sizeof(yes));
	zmq_setsockopt(e->pub, ZMQ_SNDTIMEO, &second, sizeof(second));
	zmq_setsockopt(e->sub, ZMQ_RCVTIMEO, &second, sizeof(second));
	zmq_setsockopt(e->sub, ZMQ_SUBSCRIBE, "", 0);
	snprintf(address, sizeof(address), "%s%s", server, to);
	if (check(zmq_bind(e->pub, address), address))
		return NULL;
	snprintf(address, sizeof(address), "%s%s", server, from);
	if (check(zmq_connect(e->sub, address), address))
		return NULL;
	return e;
}

int echo_send(struct echo *e, const void *data, size_t len)
{
	return check(zmq_send(e->pub, data, len, 0), "send");
}

int echo_wait(struct echo *e, void *buf, size_t size)
{
	int n = zmq_recv(e->sub, buf, size, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (check(n, "receive"))
		return -1;
	if ((size_t)n > size) {
		fprintf(stderr, "a message has %d bytes\n", n);
		return -1;
	}
	return n;
}
