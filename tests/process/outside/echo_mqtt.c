/* SPDX-License-Identifier: BSD-2-Clause */
/* A bare loop over libmosquitto; see echo.h. SERVER: HOST:PORT or HOST:PORT,QOS. */
#include <mosquitto.h>
#include <poll.h>

#include "echo.h"

struct echo {
	struct mosquitto *m;
	const char *to;
	int qos;
	bool overflow;
	char data[ECHO_BYTES * 2 * ECHO_AHEAD]; /* each with its length in front */
	size_t first, last;
};

static void on_message(struct mosquitto *m, void *arg, const struct mosquitto_message *msg)
{
	struct echo *e = arg;
	int len = msg->payloadlen;
	size_t needed = sizeof(len) + (size_t)len;

	(void)m;
	if (e->last + needed > sizeof(e->data)) {
		memmove(e->data, e->data + e->first, e->last - e->first);
		e->last -= e->first;
		e->first = 0;
	}
	if (len > ECHO_BYTES || e->last + needed > sizeof(e->data)) {
		e->overflow = true;
		return;
	}
	memcpy(e->data + e->last, &len, sizeof(len));
	memcpy(e->data + e->last + sizeof(len), msg->payload, (size_t)len);
	e->last += needed;
}

static int check(int rc, const char *what)
{
	if (rc)
		fprintf(stderr, "%s: %s\n", what, mosquitto_strerror(rc));
	return rc ? -1 : 0;
}

struct echo *echo_open(const char *server, const char *from, const char *to)
{
	struct echo *e = calloc(1, sizeof(*e));
	const char *qos = strchr(server, ',');
	char host[256];
	int port = echo_host(server, host, sizeof(host));

	mosquitto_lib_init();
	if (!e)
		return NULL;
	e->to = to;
	e->qos = qos ? atoi(qos + 1) : 0;
	e->m = mosquitto_new(NULL, true, e);
	if (!e->m)
		return NULL;
	mosquitto_int_option(e->m, MOSQ_OPT_TCP_NODELAY, 1);
	mosquitto_message_callback_set(e->m, on_message);
	if (check(mosquitto_connect(e->m, host, port, 60), "connect") ||
	    check(mosquitto_subscribe(e->m, NULL, from, e->qos), "subscribe"))
		return NULL;
	return e;
}

int echo_send(struct echo *e, const void *data, size_t len)
{
	return check(mosquitto_publish(e->m, NULL, e->to, (int)len, data, e->qos, false), "publish");
}

int echo_wait(struct echo *e, void *buf, size_t size)
{
	double end = 0;
	int len;

	while (e->first == e->last) {
		struct pollfd p = { .fd = mosquitto_socket(e->m), .events = POLLIN };

		e->first = e->last = 0;
		if (mosquitto_want_write(e->m)) {
			if (check(mosquitto_loop_write(e->m, 1), "write"))
				return -1;
			if (mosquitto_want_write(e->m))
				p.events |= POLLOUT;
		}
		if (poll(&p, 1, 100) > 0) {
			if ((p.revents & ~POLLOUT) &&
			    check(mosquitto_loop_read(e->m, 1), "read"))
				return -1;
		} else if (end <= 0) {
			end = now_us() + 0.9e6;
		} else if (now_us() > end) {
			return check(mosquitto_loop_misc(e->m), "connection");
		}
		if (e->overflow) {
			fprintf(stderr, "more messages have come than were sent\n");
			return -1;
		}
	}
	memcpy(&len, e->data + e->first, sizeof(len));
	if ((size_t)len > size)
		return -1;
	memcpy(buf, e->data + e->first + sizeof(len), (size_t)len);
	e->first += sizeof(len) + (size_t)len;
	return len;
}
