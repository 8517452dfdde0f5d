/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to the broker: the entity is created or asked for, then updates follow one another
 * in the order of the samples, and polls go on beside them. At most one of each is on its way.
 */
#define LOG_ROOM "gateway/ngsi"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/ending.h"
#include "gateway/node/ngsi/ngsi.h"
#include "util/clock.h"
#include "util/log.h"

#define MS UINT64_C(1000000)
/* At the end, for the answer to the deletion. */
#define DELETE_MS 300
#define MARGIN_MS 50

static const char *const update_methods[] = { "POST", "PATCH" };

/* ---- addresses ---- */

/* Without them, the broker sends all attributes. */
static void append_attributes(struct ngsi_node *x)
{
	const struct signal_list *signals = x->outside.node->in.signals;
	size_t len = strlen(x->read_url);
	const char *before = strchr(x->read_url, '?') ? "&attrs=" : "?attrs=";

	for (unsigned i = 0; signals && i < signals->count; i++) {
		const char *name = ngsi_attribute_name(&x->entity.in, i, signals);

		if (strchr(name, ',') || !outside_http_append(x->read_url, i ? "," : before, name)) {
			x->read_url[len] = '\0';
			return;
		}
	}
}

static int make_urls(struct ngsi_node *x)
{
	size_t len = strlen(x->endpoint);
	bool good;

	while (len && x->endpoint[len - 1] == '/')
		len--;
	snprintf(x->create_url, OUTSIDE_HTTP_URL, "%.*s/%s/entities", (int)len, x->endpoint,
		 x->entity.ld ? "ngsi-ld/v1" : "v2");
	memcpy(x->delete_url, x->create_url, OUTSIDE_HTTP_URL);
	good = outside_http_append(x->delete_url, "/", x->entity.id);
	memcpy(x->update_url, x->delete_url, OUTSIDE_HTTP_URL);
	good = good && outside_http_append(x->update_url, "/attrs", "");
	/* Entities of NGSI-v2 may differ by their types alone. */
	if (!x->entity.ld)
		good = good && outside_http_append(x->delete_url, "?type=", x->entity.type) &&
		       outside_http_append(x->update_url, "?type=", x->entity.type);
	memcpy(x->read_url, x->delete_url, OUTSIDE_HTTP_URL);
	append_attributes(x);
	return good ? 0 : outside_fail(&x->outside, -ENAMETOOLONG, "the address is too long");
}

/* ---- the entity ---- */

static int begin_step(struct ngsi_node *x)
{
	x->step_ns = UINT64_MAX;
	if (x->step == NGSI_CHECK)
		return outside_http_begin(&x->reader, "GET", x->read_url, NULL, 0);
	x->body_len = ngsi_entity_create(&x->entity, x->body, x->body_size);
	return outside_http_begin(&x->writer, "POST", x->create_url, x->body, x->body_len);
}

static void go_up(struct ngsi_node *x)
{
	x->step = NGSI_UP;
	x->poll_ns = clock_now_ns();
	outside_is_up(&x->outside);
}

static int refuse(struct ngsi_node *x, const struct outside_http_call *call)
{
	char why[OUTSIDE_WHY];

	outside_http_reason(call, why, sizeof(why));
	if (call->status == 404)
		return outside_fail(&x->outside, -ENOENT, "the entity %.100s does not exist: %s",
				    x->entity.id, why);
	return outside_fail(&x->outside, -EACCES, "%s", why);
}

static int on_created(struct ngsi_node *x, const struct outside_http_call *call)
{
	/* It is there already: NGSI-v2 says 422, NGSI-LD 409. */
	if (!outside_http_is_good(call) && call->status != 422 && call->status != 409)
		return refuse(x, call);
	go_up(x);
	return 0;
}

/* ---- updates ---- */

static int begin_update(struct ngsi_node *x)
{
	x->update_ns = UINT64_MAX;
	return outside_http_begin(&x->writer, update_methods[x->update], x->update_url, x->body,
				  x->body_len);
}

static int on_updated(struct ngsi_node *x, const struct outside_http_call *call)
{
	char why[OUTSIDE_WHY];

	if (call->attempts > 1)
		node_figure_add(x->outside.node, OUTSIDE_REPEATED, x->samples);
	if (call->status == 404 && !x->update)
		return refuse(x, call);
	if (outside_http_is_good(call) && call->status != 207) {
		outside_confirm(&x->outside, x->tag, false);
	} else if ((call->status >= 400 && call->status < 500 && call->status != 401 &&
		    call->status != 403 && call->status != 405) || call->status == 207) {
		/* This sample alone: a value or name that the broker does not take. */
		outside_http_reason(call, why, sizeof(why));
		outside_reject(&x->outside, x->tag, why);
	} else {
		return refuse(x, call);
	}
	x->has_update = false;
	return 0;
}

static int on_written(struct outside_http_call *call, int ret)
{
	struct ngsi_node *x = container_of(call, struct ngsi_node, writer);

	if (ret)
		return ret;
	if (!outside_http_is_later(call))
		return x->step == NGSI_UP ? on_updated(x, call) : on_created(x, call);
	node_figure_add(x->outside.node, NGSI_LATER, 1);
	if (x->step == NGSI_UP)
		x->update_ns = outside_http_later_ns(call);
	else
		x->step_ns = outside_http_later_ns(call);
	return 0;
}

static int ngsi_send(struct outside *o, struct outbox_message *m)
{
	struct ngsi_node *x = ngsi_of(o);
	int ret;

	if (x->has_update)
		return -EAGAIN;
	x->tag = m->tag = outside_new_tag(o);
	x->samples = m->samples;
	memcpy(x->body, m->data, m->len);
	x->body_len = m->len;
	ret = begin_update(x);
	x->has_update = !ret;
	return ret ?: OUTSIDE_UNCONFIRMED;
}

static int ngsi_print(struct outside *o, char *buf, size_t size, size_t *used,
		      struct sample *const smps[], unsigned cnt)
{
	struct ngsi_node *x = ngsi_of(o);
	char why[NGSI_WHY];
	unsigned left_out = 0;
	int n = ngsi_entity_print(&x->entity, o->node->out.signals, smps[0], buf, size, used,
				  &left_out, why);

	if (n < 0)
		return outside_unprintable(o, n, "%s", why);
	node_figure_add(o->node, NGSI_LEFT_OUT, n ? left_out : 0);
	return n;
}

/* ---- polls ---- */

static bool is_same(const struct sample *a, const struct sample *b)
{
	return a->length == b->length && a->flags == b->flags &&
	       (!(a->flags & SAMPLE_HAS_SEQUENCE) || a->sequence == b->sequence) &&
	       (!(a->flags & SAMPLE_HAS_ORIGIN) || (a->origin.tv_sec == b->origin.tv_sec &&
						    a->origin.tv_nsec == b->origin.tv_nsec)) &&
	       !memcmp(a->data, b->data, a->length * sizeof(a->data[0]));
}

/* Whether the sample is for the path. */
static bool is_wanted(struct ngsi_node *x, struct sample *s)
{
	bool same = x->last && is_same(x->last, s);

	if (same) {
		node_figure_add(x->outside.node, NGSI_UNCHANGED, 1);
		if (x->changed_only)
			return false;
		/* The same number twice would be a sample that comes twice. */
		s->flags &= ~(uint32_t)SAMPLE_HAS_SEQUENCE;
		return true;
	}
	if (x->last)
		sample_copy(x->last, s);
	return true;
}

static void deliver(struct ngsi_node *x, const struct outside_http_call *call)
{
	struct outside *o = &x->outside;
	char why[NGSI_WHY];
	struct sample *s;
	int n;

	if (!outside_samples_take(o, &s, 1))
		return;
	memset(s->data, 0, s->capacity * sizeof(s->data[0]));
	n = ngsi_entity_scan(&x->entity, o->node->in.signals, call->answer ?: "", call->answer_len,
			     s, why);
	if (n < 0)
		outside_malformed(o, "%s", why);
	else if (!n)
		node_figure_add(o->node, NGSI_EMPTY, 1);
	outside_samples_give(o, &s, 1, n > 0 && is_wanted(x, s) ? 1 : 0);
}

/* The answer to NGSI_CHECK. */
static int on_checked(struct ngsi_node *x, const struct outside_http_call *call)
{
	json_t *entity;
	const char *id;
	bool good;

	if (!outside_http_is_good(call))
		return refuse(x, call);
	entity = json_loadb(call->answer ?: "", call->answer_len, 0, NULL);
	id = json_string_value(json_object_get(entity, "id"));
	good = id && !strcmp(id, x->entity.id);
	json_decref(entity);
	if (!good)
		return outside_fail(&x->outside, -EPROTO, "the answer is not the entity");
	go_up(x);
	return 0;
}

static int on_read(struct outside_http_call *call, int ret)
{
	struct ngsi_node *x = container_of(call, struct ngsi_node, reader);
	uint64_t *due = x->step == NGSI_UP ? &x->poll_ns : &x->step_ns;

	if (ret)
		return ret;
	if (outside_http_is_later(call)) {
		*due = MAX(x->step == NGSI_UP ? *due : 0, outside_http_later_ns(call));
		node_figure_add(x->outside.node, NGSI_LATER, 1);
		return 0;
	}
	if (x->step != NGSI_UP)
		return on_checked(x, call);
	if (!outside_http_is_good(call))
		return refuse(x, call);
	deliver(x, call);
	return 0;
}

static int poll_entity(struct ngsi_node *x, uint64_t now)
{
	uint64_t period = (uint64_t)(1e9 / x->rate_hz);
	uint64_t late = (now - x->poll_ns) / period;

	x->poll_ns += (late + 1) * period;
	node_figure_add(x->outside.node, NGSI_POLLS, 1);
	node_figure_add(x->outside.node, NGSI_SKIPPED, late);
	return outside_http_begin(&x->reader, "GET", x->read_url, NULL, 0);
}

/* ---- what is due ---- */

static int do_due(struct ngsi_node *x)
{
	uint64_t now = clock_now_ns();
	int ret = 0;

	if (x->step != NGSI_UP)
		return now >= x->step_ns ? begin_step(x) : 0;
	if (x->has_update && !x->writer.busy && now >= x->update_ns)
		ret = begin_update(x);
	if (!ret && x->outside.node->is_source && !x->reader.busy && now >= x->poll_ns)
		ret = poll_entity(x, now);
	return ret;
}

static int ngsi_turn(struct outside *o)
{
	struct ngsi_node *x = ngsi_of(o);
	int ret = outside_http_turn(&x->http) ?: do_due(x);

	x->broken = ret < 0;
	return ret;
}

static unsigned ngsi_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct ngsi_node *x = ngsi_of(o);
	unsigned count = outside_http_wait(&x->http, fds, until_ns);

	if (x->step != NGSI_UP)
		*until_ns = MIN(*until_ns, x->step_ns);
	else if (x->has_update && !x->writer.busy)
		*until_ns = MIN(*until_ns, x->update_ns);
	if (x->step == NGSI_UP && o->node->is_source && !x->reader.busy)
		*until_ns = MIN(*until_ns, x->poll_ns);
	return count;
}

/* ---- connecting ---- */

static int set_token(struct ngsi_node *x, struct outside_http_call *call)
{
	char buf[OUTSIDE_SECRET_MAX], header[OUTSIDE_SECRET_MAX + 32];
	int ret;

	if (!x->access_token && !x->access_token_file)
		return 0;
	if (!outside_secret(x->access_token, x->access_token_file, buf, x->outside.why,
			    sizeof(x->outside.why)))
		return -EACCES;
	snprintf(header, sizeof(header), "%s%s",
		 x->token_header ? "Authorization: Bearer " : "X-Auth-Token: ", buf);
	ret = outside_http_call_header(call, header);
	explicit_bzero(buf, sizeof(buf));
	explicit_bzero(header, sizeof(header));
	return ret;
}

/* A header with a text of the settings; NULL: none. */
static int set_header(struct outside_http_call *call, const char *name, const char *value,
		      const char *more)
{
	char header[OUTSIDE_HTTP_URL];

	if (!value)
		return 0;
	snprintf(header, sizeof(header), "%s%s%s", name, value, more);
	return outside_http_call_header(call, header);
}

static int open_call(struct ngsi_node *x, struct outside_http_call *call, bool has_body,
		     int (*done)(struct outside_http_call *call, int ret))
{
	const char *tenant = x->entity.ld ? "NGSILD-Tenant: " : "Fiware-Service: ";

	return outside_http_call_open(call, &x->http, done) ?:
	       set_token(x, call) ?:
	       set_header(call, tenant, x->tenant, "") ?:
	       set_header(call, "Fiware-ServicePath: ", x->service_path, "") ?:
	       set_header(call, "Link: <", x->context,
			  ">; rel=\"http://www.w3.org/ns/json-ld#context\"; type=\"application/ld+json\"") ?:
	       outside_http_call_header(call, "Accept: application/json") ?:
	       /* Some brokers refuse it where no body follows. */
	       outside_http_call_header(call, has_body ? "Content-Type: application/json" :
							 "Content-Type:");
}

static void end_connection(struct ngsi_node *x)
{
	outside_http_call_close(&x->writer);
	outside_http_call_close(&x->reader);
	outside_http_close(&x->http);
	free(x->body);
	free(x->last);
	x->body = NULL;
	x->last = NULL;
}

static int ngsi_open(struct outside *o)
{
	struct ngsi_node *x = ngsi_of(o);
	unsigned values = o->node->in.signals ? o->node->in.signals->count : 0;
	int ret;

	x->http.o = o;
	x->http.tls = &x->tls;
	x->http.timeout_s = x->timeout_s;
	x->http.answer_max = x->http.keep_max = (size_t)x->answer_max;
	x->has_update = x->broken = false;
	x->step = x->creates_always || (x->create && o->node->is_destination) ? NGSI_CREATE :
										 NGSI_CHECK;
	x->body_size = MAX((size_t)o->message_max, (size_t)OUTSIDE_HTTP_URL);
	ret = make_urls(x) ?: outside_http_open(&x->http);
	if (ret)
		return ret;
	x->body = malloc(x->body_size);
	x->last = calloc(1, sizeof(*x->last) + values * sizeof(x->last->data[0]));
	ret = x->body && x->last ? 0 : -ENOMEM;
	if (!ret)
		x->last->capacity = values;
	ret = ret ?: open_call(x, &x->writer, true, on_written) ?:
		     open_call(x, &x->reader, false, on_read) ?: begin_step(x);
	if (!ret)
		return 1;
	end_connection(x);
	return ret;
}

static int on_deleted(struct outside_http_call *call, int ret)
{
	struct ngsi_node *x = container_of(call, struct ngsi_node, reader);
	char why[OUTSIDE_WHY];

	x->step = NGSI_CHECK;
	if (!ret && !outside_http_is_good(call))
		log_warn("node %s: the entity %s is not deleted: %s", x->outside.node->name,
			 x->entity.id, outside_http_reason(call, why, sizeof(why)));
	return ret;
}

/* The node stops. Nobody else waits for the lock of the connection then. */
static void delete_entity(struct ngsi_node *x)
{
	int ms = ending_left_ms(ENDING_JOIN_MS, DELETE_MS + MARGIN_MS) - MARGIN_MS;
	uint64_t end_ns = clock_now_ns() + (uint64_t)MAX(ms, 0) * MS;
	struct outside_http_call *call = &x->reader;
	int ret;

	outside_http_call_close(call);
	ret = open_call(x, call, false, on_deleted) ?:
	      outside_http_begin(call, "DELETE", x->delete_url, NULL, 0);
	while (!ret && call->busy && clock_now_ns() < end_ns) {
		struct pollfd fds[OUTSIDE_FDS];
		uint64_t until_ns = end_ns, now = clock_now_ns();
		unsigned count = outside_http_wait(&x->http, fds, &until_ns);

		poll(fds, count, until_ns > now ? (int)((until_ns - now) / MS) + 1 : 0);
		ret = outside_http_turn(&x->http);
	}
	if (ret || call->busy)
		log_warn("node %s: the entity %s is not deleted: %s", x->outside.node->name,
			 x->entity.id, ret ? x->outside.why : "no answer in time");
}

static void ngsi_close(struct outside *o)
{
	struct ngsi_node *x = ngsi_of(o);

	if (x->delete && outside_is_ending(o) && x->step == NGSI_UP && !x->broken)
		delete_entity(x);
	end_connection(x);
}

const struct outside_ops ngsi_ops = {
	/* libcurl is used by one thread. */
	.flags = OUTSIDE_MAY_WAIT,
	.open = ngsi_open,
	.close = ngsi_close,
	.send = ngsi_send,
	.turn = ngsi_turn,
	.wait = ngsi_wait,
	.print = ngsi_print,
};
