/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare loop over libnats; see echo.h. SERVER: HOST:PORT; FROM and TO are subjects. The thread
 * that sends and receives also reads from and writes to the socket, which is less work than
 * threads of the library that wake each other. So does a node nats.
 */
#include <nats/nats.h>
#include <poll.h>

#include "echo.h"

struct echo {
	natsConnection *connection;
	natsSubscription *sub;
	const char *to;
	natsSock fd;
	atomic_bool writes; /* the library has data to write; its timer sets this, too */
};

static int check(natsStatus s, const char *what)
{
	const char *text = nats_GetLastError(NULL);

	if (s)
		fprintf(stderr, "%s: %s: %s\n", what, natsStatus_GetText(s), text ? text : "");
	return s ? -1 : 0;
}

/* ---- what the library asks of an event loop ---- */

static natsStatus attach(void **data, void *loop, natsConnection *connection, natsSock fd)
{
	struct echo *e = loop;

	(void)connection;
	*data = e;
	e->fd = fd;
	return NATS_OK;
}

static natsStatus want_read(void *data, bool add)
{
	(void)data;
	(void)add;
	return NATS_OK;
}

static natsStatus want_write(void *data, bool add)
{
	struct echo *e = data;

	atomic_store(&e->writes, add);
	return NATS_OK;
}

static natsStatus detach(void *data)
{
	(void)data;
	return NATS_OK;
}

static void write_out(struct echo *e)
{
	if (atomic_load(&e->writes))
		natsConnection_ProcessWriteEvent(e->connection);
}

struct echo *echo_open(const char *server, const char *from, const char *to)
{
	struct echo *e = calloc(1, sizeof(*e));
	natsOptions *o = NULL;
	char url[300];

	if (!e)
		return NULL;
	e->to = to;
	snprintf(url, sizeof(url), "nats://%s", server);
	if (check(natsOptions_Create(&o), "options") || check(natsOptions_SetURL(o, url), url) ||
	    check(natsOptions_SetAllowReconnect(o, false), "options") ||
	    check(natsOptions_SetSendAsap(o, true), "options") ||
	    check(natsOptions_SetEventLoop(o, e, attach, want_read, want_write, detach), "options") ||
	    check(natsConnection_Connect(&e->connection, o), "connect") ||
	    check(natsConnection_SubscribeSync(&e->sub, e->connection, from), "subscribe"))
		return NULL;
	natsOptions_Destroy(o);
	write_out(e);
	return e;
}

int echo_send(struct echo *e, const void *data, size_t len)
{
	int ret = check(natsConnection_Publish(e->connection, e->to, data, (int)len), "publish");

	if (!ret)
		write_out(e);
	return ret;
}

int echo_wait(struct echo *e, void *buf, size_t size)
{
	natsMsg *msg = NULL;
	natsStatus s;
	size_t len;

	while ((s = natsSubscription_NextMsg(&msg, e->sub, 0)) == NATS_TIMEOUT) {
		struct pollfd p = { .fd = e->fd, .events = POLLIN };

		if (atomic_load(&e->writes))
			p.events |= POLLOUT;
		if (poll(&p, 1, 1000) <= 0)
			return 0;
		if (p.revents & ~POLLOUT)
			natsConnection_ProcessReadEvent(e->connection);
		write_out(e);
		if (natsConnection_IsClosed(e->connection))
			return check(NATS_CONNECTION_CLOSED, "connection");
	}
	if (check(s, "message"))
		return -1;
	len = (size_t)natsMsg_GetDataLength(msg);
	if (len <= size)
		memcpy(buf, natsMsg_GetData(msg), len);
	else
		fprintf(stderr, "a message has %zu bytes\n", len);
	natsMsg_Destroy(msg);
	return len <= size ? (int)len : -1;
}
