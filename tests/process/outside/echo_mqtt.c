/* SPDX-License-Identifier: BSD-2-Clause */
/* A bare loop over libmosquitto; see echo.h. SERVER: PORT or PORT,QOS of this host. */
#include <mosquitto.h>
#include <poll.h>

#include "echo.h"

struct echo {
	struct mosquitto *m;
	const char *to;
	int qos;
	char data[ECHO_BYTES * 2 * ECHO_AHEAD]; /* each with its length in front */
	size_t first, last;
};

static void on_message(struct mosquitto *m, void *arg, const struct mosquitto_message *msg)
{
	struct echo *e = arg;
	int len = msg->payloadlen;

	if (e->last + sizeof(len) + (size_t)len > sizeof(e->data))
		abort();
	memcpy(e->data + e->last, &len, sizeof(len));
	memcpy(e->data + e->last + sizeof(len), msg->payload, (size_t)len);
	e->last += sizeof(len) + (size_t)len;
}

struct echo *echo_open(const char *server, const char *from, const char *to)
{
	struct echo *e = calloc(1, sizeof(*e));
	const char *qos = strchr(server, ',');

	mosquitto_lib_init();
	e->to = to;
	e->qos = qos ? atoi(qos + 1) : 0;
	e->m = mosquitto_new(NULL, true, e);
	mosquitto_int_option(e->m, MOSQ_OPT_TCP_NODELAY, 1);
	mosquitto_message_callback_set(e->m, on_message);
	if (mosquitto_connect(e->m, "127.0.0.1", atoi(server), 60) ||
	    mosquitto_subscribe(e->m, NULL, from, e->qos)) {
		fprintf(stderr, "cannot connect\n");
		return NULL;
	}
	return e;
}

int echo_send(struct echo *e, const void *data, size_t len)
{
	int rc = mosquitto_publish(e->m, NULL, e->to, (int)len, data, e->qos, false);

	if (rc)
		fprintf(stderr, "publish: %s\n", mosquitto_strerror(rc));
	return rc ? -1 : 0;
}

int echo_wait(struct echo *e, void *buf, size_t size)
{
	double end = now_us() + 1e6;
	int len;

	if (e->first == e->last)
		e->first = e->last = 0;
	while (e->first == e->last) {
		struct pollfd p = { .fd = mosquitto_socket(e->m), .events = POLLIN };

		if (mosquitto_want_write(e->m) && mosquitto_loop_write(e->m, 1))
			return -1;
		if (poll(&p, 1, 100) > 0 && mosquitto_loop_read(e->m, 1))
			return -1;
		if (e->first == e->last && now_us() > end)
			return mosquitto_loop_misc(e->m) ? -1 : 0;
	}
	memcpy(&len, e->data + e->first, sizeof(len));
	memcpy(buf, e->data + e->first + sizeof(len), (size_t)len);
	e->first += sizeof(len) + (size_t)len;
	return len;
}
