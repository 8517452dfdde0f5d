/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions and their members; see session.h. */
#define LOG_ROOM "gateway/relay"
#include "gateway/relay/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/head_text.h"
#include "util/log.h"
#include "util/prng.h"

/* Clients choose the paths, so the seed is not theirs to know. */
static struct list *bucket(struct relay *r, const char *path)
{
	struct prng p = { r->hash_seed };

	for (; *path; path++)
		p.state = prng_next(&p) ^ (unsigned char)*path;
	return &r->sessions[prng_next(&p) % RELAY_BUCKETS];
}

static struct relay_session *find(struct list *bucket, const char *path)
{
	list_for_each(s, bucket, struct relay_session, entry)
		if (!strcmp(s->path, path))
			return s;
	return NULL;
}

static double wall_clock_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)(t.tv_nsec / 1000000) * 1e-3;
}

/* It is shown as JSON, and in log lines. */
static bool can_be_shown(const char *path)
{
	json_t *o = json_string(path);
	bool good = o != NULL;

	json_decref(o);
	for (; good && *path; path++)
		good = !head_is_control(*path);
	return good;
}

static struct relay_session *add_session(struct relay *r, const char *path)
{
	struct relay_session *s = calloc(1, sizeof(*s) + strlen(path) + 1);

	if (!s)
		return NULL;
	strcpy(s->path, path);
	list_init(&s->members);
	s->created = wall_clock_s();
	list_push(bucket(r, path), &s->entry);
	r->session_count++;
	r->sums.sessions++;
	return s;
}

static void drop_session(struct relay *r, struct relay_session *s)
{
	list_remove(&s->entry);
	r->session_count--;
	free(s);
}

static int check(struct relay *r, const char *path, bool exists, const char **why)
{
	const struct relay_settings *s = r->settings;

	*why = "the path is no UTF-8, or has control characters";
	if (!can_be_shown(path))
		return 400;
	*why = "the relay has as many connections as it may have";
	if (r->member_count >= s->connections_max)
		return 503;
	*why = "the relay has as many sessions as it may have";
	return exists || r->session_count < s->sessions_max ? 0 : 503;
}

static struct relay_member *add_member(struct relay *r, struct relay_session *s,
				       const char *address)
{
	struct relay_member *m = calloc(1, sizeof(*m));

	if (!m || ws_peer_init(&m->peer, NULL, r->settings->message_bytes_max, r->now_ns)) {
		free(m);
		return NULL;
	}
	m->relay = r;
	m->session = s;
	m->id = ++r->sums.accepted;
	m->created = wall_clock_s();
	snprintf(m->address, sizeof(m->address), "%s", address);
	list_push(&s->members, &m->entry);
	list_push(&r->members, &m->all);
	r->member_count++;
	s->count++;
	s->connects++;
	return m;
}

struct relay_member *relay_join(struct relay *r, const char *path, const char *address,
				int *status, const char **why)
{
	struct relay_session *s = find(bucket(r, path), path);
	bool exists = s;
	struct relay_member *m;

	*status = check(r, path, exists, why);
	if (*status)
		return NULL;
	*status = 503;
	*why = "the relay has no memory";
	if (!exists)
		s = add_session(r, path);
	if (!s)
		return NULL;
	m = add_member(r, s, address);
	if (!m && !exists)
		drop_session(r, s);
	return m;
}

void relay_leave(struct relay_member *m)
{
	struct relay *r = m->relay;
	struct relay_session *s = m->session;

	relay_queue_clear(m);
	r->held_bytes -= m->partial_bytes;
	list_remove(&m->entry);
	list_remove(&m->all);
	r->member_count--;
	if (!--s->count)
		drop_session(r, s);
	ws_peer_destroy(&m->peer);
	free(m->queue.at);
	free(m);
}
