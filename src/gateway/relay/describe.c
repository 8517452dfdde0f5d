/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the relay says of itself: / as JSON and /metrics for Prometheus. A worker's thread
 * copies the figures under the lock, and makes the texts of the copy, so that many sessions
 * do not hold up messages. See session.h.
 */
#define LOG_ROOM "gateway/relay"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/control/metrics.h"
#include "gateway/control/metrics_print.h"
#include "gateway/control/query.h"
#include "gateway/relay/session.h"
#include "util/container_of.h"

struct member_copy {
	uint64_t id;
	double created;
	char address[64];
	struct relay_counters n;
	size_t queued_bytes;
	unsigned queued;
};

struct session_copy {
	char *path;
	double created;
	uint64_t connects;
	struct relay_counters n;
	unsigned first, count; /* of the members */
};

struct copy {
	struct session_copy *sessions;
	struct member_copy *members;
	char *paths;
	unsigned session_count, member_count;
	size_t held_bytes;
	struct relay_sums sums;
};

static void copy_free(struct copy *c)
{
	free(c->sessions);
	free(c->members);
	free(c->paths);
}

static void copy_member(struct member_copy *to, const struct relay_member *m)
{
	*to = (struct member_copy){
		.id = m->id, .created = m->created, .n = m->n,
		.queued = m->queue.count, .queued_bytes = m->queue.bytes,
	};
	strcpy(to->address, m->address);
}

static void copy_session(struct copy *c, const struct relay_session *s)
{
	struct session_copy *to = &c->sessions[c->session_count];

	*to = (struct session_copy){
		.path = c->paths + (size_t)c->session_count * CONTROL_PATH_MAX,
		.created = s->created, .connects = s->connects, .n = s->n,
		.first = c->member_count, .count = s->count,
	};
	strcpy(to->path, s->path);
	c->session_count++;
	list_for_each(m, &s->members, struct relay_member, entry)
		copy_member(&c->members[c->member_count++], m);
}

/* False: no memory. */
static bool make_room(struct copy *c, unsigned sessions, unsigned members)
{
	copy_free(c);
	c->sessions = malloc((sessions + 1) * sizeof(*c->sessions));
	c->members = malloc((members + 1) * sizeof(*c->members));
	c->paths = malloc(((size_t)sessions + 1) * CONTROL_PATH_MAX);
	return c->sessions && c->members && c->paths;
}

/* Room for all is made without the lock. */
static bool copy_all(struct relay *r, struct copy *c)
{
	unsigned sessions = 0, members = 0;

	*c = (struct copy){ .sessions = NULL };
	pthread_mutex_lock(&r->lock);
	while (!c->sessions || r->session_count > sessions || r->member_count > members) {
		sessions = r->session_count + r->session_count / 8;
		members = r->member_count + r->member_count / 8;
		pthread_mutex_unlock(&r->lock);
		if (!make_room(c, sessions, members)) {
			copy_free(c);
			return false;
		}
		pthread_mutex_lock(&r->lock);
	}
	c->held_bytes = r->held_bytes;
	c->sums = r->sums;
	for (unsigned i = 0; i < RELAY_BUCKETS; i++)
		list_for_each(s, &r->sessions[i], struct relay_session, entry)
			copy_session(c, s);
	pthread_mutex_unlock(&r->lock);
	return true;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct session_copy *)a)->path,
		      ((const struct session_copy *)b)->path);
}

/* The names are those of VILLASnode's relay, where it has them. */
static json_t *counters_json(const struct relay_counters *n)
{
	return json_pack("{sI sI sI sI sI}", "frames_recvd", (json_int_t)n->frames_in,
			 "frames_sent", (json_int_t)n->frames_out, "bytes_recvd",
			 (json_int_t)n->bytes_in, "bytes_sent", (json_int_t)n->bytes_out,
			 "frames_lost", (json_int_t)n->lost);
}

json_t *relay_sums_json(const struct relay_sums *s)
{
	json_t *o = counters_json(&s->n);

	if (o)
		json_object_update_new(o, json_pack("{sI sI sI sI sI}",
			"sessions", (json_int_t)s->sessions,
			"accepted", (json_int_t)s->accepted,
			"refused", (json_int_t)s->refused,
			"malformed", (json_int_t)s->malformed,
			"timeouts", (json_int_t)s->timeouts));
	return o;
}

/* "ADDRESS port PORT" */
static json_t *member_json(const struct member_copy *m)
{
	json_t *o = counters_json(&m->n);
	size_t len = strcspn(m->address, " ");
	const char *port = strrchr(m->address, ' ');

	json_object_update_new(o, json_pack("{sI ss% si sf si sI}",
		"id", (json_int_t)m->id, "ip", m->address, len,
		"port", port ? atoi(port) : 0, "created", m->created,
		"frames_waiting", (int)m->queued,
		"bytes_waiting", (json_int_t)m->queued_bytes));
	return o;
}

static json_t *session_json(const struct copy *c, const struct session_copy *s)
{
	json_t *o = counters_json(&s->n), *members = json_array();
	char uuid[UUID_SIZE];

	uuid_from_text(uuid, "session", s->path);
	for (unsigned i = 0; i < s->count; i++)
		json_array_append_new(members, member_json(&c->members[s->first + i]));
	json_object_update_new(o, json_pack("{ss ss sf sI so}",
		"identifier", s->path, "uuid", uuid, "created", s->created,
		"connects", (json_int_t)s->connects, "connections", members));
	return o;
}

static json_t *options_json(const struct relay *r)
{
	const struct relay_settings *s = r->settings;

	return json_pack("{sb ss si si sI sI sI}", "loopback", s->loopback,
			 "protocol", s->protocol,
			 "sessions", (int)s->sessions_max,
			 "connections", (int)s->connections_max,
			 "message", (json_int_t)s->message_bytes_max,
			 "backlog", (json_int_t)s->backlog_bytes_max,
			 "memory", (json_int_t)s->memory_bytes_max);
}

static json_t *all_json(const struct relay *r, const struct copy *c)
{
	json_t *sessions = json_array();
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	for (unsigned i = 0; i < c->session_count; i++)
		json_array_append_new(sessions, session_json(c, &c->sessions[i]));
	return json_pack("{ss ss ss so so sI so}", "version", GATEWAY_VERSION,
			 "hostname", host, "uuid", r->settings->uuid,
			 "options", options_json(r),
			 "counters", relay_sums_json(&c->sums),
			 "bytes_held", (json_int_t)c->held_bytes,
			 "sessions", sessions);
}

static void gauge(struct metrics *m, const char *family, const char *help, uint64_t value)
{
	metrics_family(m, family, METRICS_GAUGE, help);
	metrics_count(m, NULL, value);
}

static void counter(struct metrics *m, const char *family, const char *help, uint64_t value)
{
	metrics_family(m, family, METRICS_COUNTER, help);
	metrics_count(m, NULL, value);
}

static void print_sums(struct metrics *m, const struct copy *c)
{
	const struct relay_sums *s = &c->sums;

	gauge(m, "busbar_relay_sessions", "Sessions now", c->session_count);
	gauge(m, "busbar_relay_connections", "Connections now", c->member_count);
	gauge(m, "busbar_relay_held_bytes",
	      "Messages that wait for somebody or have not come as a whole", c->held_bytes);
	counter(m, "busbar_relay_accepted_connections", "Connections that joined a session",
		s->accepted);
	counter(m, "busbar_relay_refused_connections", "Connections that were refused",
		s->refused);
	counter(m, "busbar_relay_malformed_frames",
		"Connections ended for what is no WebSocket frame, or too long", s->malformed);
	counter(m, "busbar_relay_timeouts", "Connections that did not answer a ping",
		s->timeouts);
	counter(m, "busbar_relay_received_bytes", "Contents of messages that came",
		s->n.bytes_in);
	counter(m, "busbar_relay_sent_bytes", "Contents of messages that were sent",
		s->n.bytes_out);
	counter(m, "busbar_relay_received_messages", "Messages that came", s->n.frames_in);
	counter(m, "busbar_relay_sent_messages", "Messages that were sent", s->n.frames_out);
	counter(m, "busbar_relay_lost_messages",
		"Messages that a connection was too slow for", s->n.lost);
}

/* Of sessions that are there now. */
static void print_sessions(struct metrics *m, const struct copy *c)
{
	static const struct {
		const char *family, *help;
		size_t offset;
	} figures[] = {
		{ "busbar_relay_session_received_messages", "Messages that came, by session",
		  offsetof(struct session_copy, n.frames_in) },
		{ "busbar_relay_session_sent_messages", "Messages that were sent, by session",
		  offsetof(struct session_copy, n.frames_out) },
		{ "busbar_relay_session_lost_messages",
		  "Messages that a connection was too slow for, by session",
		  offsetof(struct session_copy, n.lost) },
	};

	metrics_family(m, "busbar_relay_session_connections", METRICS_GAUGE,
		       "Connections now, by session");
	for (unsigned i = 0; i < c->session_count; i++) {
		struct metrics_labels l = { { { "session", c->sessions[i].path } } };

		metrics_count(m, &l, c->sessions[i].count);
	}
	for (size_t f = 0; f < ARRAY_SIZE(figures); f++) {
		metrics_family(m, figures[f].family, METRICS_COUNTER, figures[f].help);
		for (unsigned i = 0; i < c->session_count; i++) {
			const struct session_copy *s = &c->sessions[i];
			struct metrics_labels l = { { { "session", s->path } } };

			metrics_count(m, &l, *(const uint64_t *)((const char *)s +
								 figures[f].offset));
		}
	}
}

static void answer_metrics(const struct copy *c, const char *accept, struct control_answer *a)
{
	struct metrics m = {
		.out = open_memstream(&a->text, &a->text_len),
		.open = !query_prefers(accept ? accept : "", METRICS_PLAIN, METRICS_OPEN),
	};

	if (!m.out)
		return;
	print_sums(&m, c);
	print_sessions(&m, c);
	metrics_end(&m);
	if (fclose(m.out)) {
		free(a->text);
		a->text = NULL;
	}
	a->type = m.open ? METRICS_OPEN_TYPE : METRICS_PLAIN_TYPE;
}

static bool is_path(const char *path, const char *wanted)
{
	size_t len = strlen(wanted);

	return !strncmp(path, wanted, len) && (!path[len] || path[len] == '?');
}

int relay_find(const char *method, const char *path, struct http_found *f)
{
	f->why = "a session is joined by WebSocket; / lists them";
	if (!is_path(path, "/") && !is_path(path, "/metrics"))
		return 404;
	f->allow = "GET";
	f->rule = (struct control_rule){ .role = HTTP_WATCH };
	return strcmp(method, "GET") ? 405 : 200;
}

void relay_ask(void *arg, const struct control_question *q, struct control_answer *a)
{
	struct relay *r = arg;
	struct copy c;

	*a = (struct control_answer){ .status = 200, .type = CONTROL_JSON };
	if (copy_all(r, &c)) {
		qsort(c.sessions, c.session_count, sizeof(*c.sessions), compare_paths);
		if (is_path(q->path, "/metrics"))
			answer_metrics(&c, q->accept, a);
		else
			a->body = all_json(r, &c);
		copy_free(&c);
	}
	if (!a->text && !a->body) {
		a->status = 503;
		a->type = CONTROL_JSON;
		a->body = json_pack("{ss}", "error", "no memory, ask again later");
	}
}
