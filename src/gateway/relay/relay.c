/* SPDX-License-Identifier: BSD-2-Clause */
/* Start and end of a relay, and the calls of the server; see relay.h. */
#define LOG_ROOM "gateway/relay"
#include "gateway/relay/relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "gateway/http/service.h"
#include "gateway/ws/handshake.h"
#include "gateway/relay/session.h"
#include "util/clock.h"

static void begin(struct relay *r)
{
	pthread_mutex_lock(&r->lock);
	r->now_ns = clock_now_ns();
}

static int member_open(struct web_endpoint *e, struct web_stream *s,
		       const struct web_request *q, char *head, size_t size, void **client)
{
	struct relay *r = e->arg;
	struct relay_member *m = NULL;
	const char *why = NULL;
	int status = ws_handshake_answer(q, r->settings->protocol, head, size);

	begin(r);
	if (status == 101) {
		m = relay_join(r, q->path, q->address, &status, &why);
		if (!m)
			*head = '\0';
	}
	if (m) {
		m->peer.stream = s;
		*client = m;
		status = 101;
	} else {
		r->sums.refused++;
	}
	pthread_mutex_unlock(&r->lock);
	if (why && !m)
		snprintf(q->why, q->why_size, "%s", why);
	return status;
}

static int member_received(void *client, const void *data, size_t len)
{
	struct relay_member *m = client;
	struct relay *r = m->relay;
	int ret;

	begin(r);
	ret = relay_member_take(m, data, len);
	pthread_mutex_unlock(&r->lock);
	return ret;
}

static void member_writable(void *client)
{
	struct relay_member *m = client;
	struct relay *r = m->relay;

	begin(r);
	relay_member_send(m);
	pthread_mutex_unlock(&r->lock);
}

static void member_closed(void *client)
{
	struct relay_member *m = client;
	struct relay *r = m->relay;

	begin(r);
	relay_leave(m);
	pthread_mutex_unlock(&r->lock);
}

static void member_goodbye(void *client)
{
	struct relay_member *m = client;
	struct relay *r = m->relay;

	begin(r);
	relay_member_end(m, WS_GOING_AWAY, "the relay ends");
	pthread_mutex_unlock(&r->lock);
}

static void watch(struct web_endpoint *e, uint64_t now_ns)
{
	struct relay *r = e->arg;

	begin(r);
	list_for_each(m, &r->members, struct relay_member, all)
		relay_member_watch(m);
	pthread_mutex_unlock(&r->lock);
}

static const struct web_endpoint_ops endpoint_ops = {
	.open = member_open,
	.received = member_received,
	.writable = member_writable,
	.closed = member_closed,
	.watch = watch,
	.goodbye = member_goodbye,
};

static const struct http_requests relay_requests = {
	.server = "relay",
	.find = relay_find,
	.ask = relay_ask,
};

static void relay_free(struct relay *r)
{
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int relay_start(struct relay **out, const struct relay_settings *s)
{
	struct relay *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	r->settings = s;
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->members);
	for (unsigned i = 0; i < RELAY_BUCKETS; i++)
		list_init(&r->sessions[i]);
	if (getrandom(&r->hash_seed, sizeof(r->hash_seed), GRND_NONBLOCK) < 0)
		r->hash_seed = clock_now_ns();
	r->endpoint = (struct web_endpoint){ .path = "", .match = WEB_BELOW, .commands = true,
					     .ops = &endpoint_ops, .arg = r };
	ret = web_endpoint_add(&r->endpoint);
	if (ret)
		goto err_relay;
	ret = http_server_start(&r->server, &relay_requests, r, &s->http);
	if (ret)
		goto err_endpoint;
	*out = r;
	return 0;
err_endpoint:
	web_endpoint_remove(&r->endpoint);
err_relay:
	relay_free(r);
	return ret;
}

int relay_port(const struct relay *r)
{
	return http_server_port(r->server);
}

void relay_refresh(struct relay *r)
{
	http_server_refresh(r->server);
}

void relay_stop(struct relay *r, json_t **counters)
{
	web_endpoint_remove(&r->endpoint);
	if (counters)
		*counters = relay_sums_json(&r->sums);
	if (http_server_stop(r->server))
		relay_free(r);
}
