/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare loop over nng; see echo.h. SERVER is what FROM and TO are put behind, such as "tcp://"
 * for addresses: a program publishes at TO, where it listens, and subscribes to FROM, which it
 * dials. So do nodes nanomsg by default.
 */
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>

#include "echo.h"

#define QUEUE 1024  /* messages in a socket: it drops what finds no room */
#define AGAIN_MS 50 /* until nng dials a peer again */

struct echo {
	nng_socket pub, sub;
};

static int check(int rv, const char *what)
{
	if (rv)
		fprintf(stderr, "%s: %s\n", what, nng_strerror(rv));
	return rv ? -1 : 0;
}

struct echo *echo_open(const char *server, const char *from, const char *to)
{
	struct echo *e = calloc(1, sizeof(*e));
	char address[256];

	if (!e || check(nng_pub0_open(&e->pub), "a socket") ||
	    check(nng_sub0_open(&e->sub), "a socket") ||
	    check(nng_socket_set_bool(e->pub, NNG_OPT_TCP_NODELAY, true), "options") ||
	    check(nng_socket_set_int(e->pub, NNG_OPT_SENDBUF, QUEUE), "options") ||
	    check(nng_socket_set_int(e->sub, NNG_OPT_RECVBUF, QUEUE), "options") ||
	    check(nng_socket_set_ms(e->sub, NNG_OPT_RECVTIMEO, 1000), "options") ||
	    check(nng_socket_set_ms(e->sub, NNG_OPT_RECONNMINT, AGAIN_MS), "options") ||
	    check(nng_socket_set_ms(e->sub, NNG_OPT_RECONNMAXT, AGAIN_MS), "options") ||
	    check(nng_socket_set(e->sub, NNG_OPT_SUB_SUBSCRIBE, "", 0), "subscribe"))
		return NULL;
	snprintf(address, sizeof(address), "%s%s", server, to);
	if (check(nng_listen(e->pub, address, NULL, 0), address))
		return NULL;
	snprintf(address, sizeof(address), "%s%s", server, from);
	return check(nng_dial(e->sub, address, NULL, NNG_FLAG_NONBLOCK), address) ? NULL : e;
}

int echo_send(struct echo *e, const void *data, size_t len)
{
	return check(nng_send(e->pub, (void *)(uintptr_t)data, len, 0), "send");
}

int echo_wait(struct echo *e, void *buf, size_t size)
{
	int rv = nng_recv(e->sub, buf, &size, 0);

	if (rv == NNG_ETIMEDOUT)
		return 0;
	return check(rv, "receive") ? -1 : (int)size;
}
