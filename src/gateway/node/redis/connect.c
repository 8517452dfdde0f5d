/* SPDX-License-Identifier: BSD-2-Clause */
/* The way to connections that can be used: logging in, choosing the database, subscribing. */
#define LOG_ROOM "gateway/redis"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/node/redis/redis.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/num.h"

#define SLICE_MS 50
/* Events of strings and of hashes in notify-keyspace-events. */
#define NOTIFY_SIZE 64

/* Waits for the next reply while connecting. 0 or a negative errno with outside.why. */
static int await(struct redis_link *l, const struct redis_value **out)
{
	struct outside *o = &l->node->outside;
	int ret;

	for (;;) {
		struct pollfd p = { .fd = l->stream.fd };

		/* Before the look: a server may send without end what nobody waits for. */
		if (outside_is_ending(o))
			return -ECANCELED;
		if (clock_now_ns() >= l->node->until_ns)
			return outside_fail(o, -ETIMEDOUT,
					    "it does not answer within %g s (connect_timeout)",
					    o->connect_timeout_s);
		ret = redis_link_flush(l) ?: redis_link_next(l, out);
		if (ret)
			return MIN(ret, 0);
		p.events = stream_events(&l->stream, true, false);
		poll(&p, 1, SLICE_MS);
	}
}

static int ask(struct redis_link *l, const struct redis_value **out, unsigned count,
	       const struct redis_word words[])
{
	struct redis_owed owed;
	int ret = redis_link_put(l, REDIS_OWED_ANSWER, 0, count, words) ?: await(l, out);

	redis_link_take_owed(l, &owed);
	return ret;
}

#define ASK(l, out, ...) \
	ask(l, out, sizeof((struct redis_word[]){ __VA_ARGS__ }) / sizeof(struct redis_word), \
	    (const struct redis_word[]){ __VA_ARGS__ })

static int refused(struct redis_link *l, const char *what, const struct redis_value *v)
{
	char text[REDIS_ERROR_MAX];

	if (v->type != REDIS_ERROR)
		return outside_fail(&l->node->outside, -EPROTO, "it answers %s with no sense", what);
	return outside_fail(&l->node->outside, -EACCES, "the server refuses %s: %s", what,
			    redis_value_shown(v, text, sizeof(text)));
}

/* ---- logging in ---- */

static int send_password(struct redis_link *l, const char *user, const char *password)
{
	struct outside *o = &l->node->outside;
	const struct redis_value *v;
	int ret = *user ? ASK(l, &v, redis_word("AUTH"), redis_word(user), redis_word(password)) :
			  ASK(l, &v, redis_word("AUTH"), redis_word(password));

	if (ret || redis_value_is(v, "OK"))
		return ret;
	/* A server may repeat what it does not understand. */
	if (v->type == REDIS_ERROR && strstr(v->text, password))
		return outside_fail(o, -EACCES, "the server refuses the password");
	return refused(l, "the password", v);
}

static int log_in(struct redis_link *l)
{
	struct redis_node *m = l->node;
	const char *user = *m->address.user ? m->address.user : m->user ? m->user : "";
	const char *given = *m->address.password ? m->address.password : m->password;
	char buf[OUTSIDE_SECRET_MAX], db[NUM_INT_MAX + 1];
	const struct redis_value *v;
	int ret = 0;

	if (given || m->password_file) {
		if (!outside_secret(given, m->password_file, buf, m->outside.why,
				    sizeof(m->outside.why)))
			return -EACCES;
		ret = send_password(l, user, buf);
		explicit_bzero(buf, sizeof(buf));
	}
	if (!ret)
		ret = ASK(l, &v, redis_word("PING"));
	if (!ret && !redis_value_is(v, "PONG"))
		ret = refused(l, "the connection", v);
	if (ret || !m->address.db)
		return ret;
	*num_print_i64(db, m->address.db) = 0;
	ret = ASK(l, &v, redis_word("SELECT"), redis_word(db));
	return ret ?: redis_value_is(v, "OK") ? 0 : refused(l, "the database", v);
}

/* The server has refused data because of its state: does it still? The command changes nothing,
 * and is refused for the same reasons. */
static int try_writing(struct redis_node *m)
{
	const struct redis_value *v;
	int ret;

	if (!m->wary || m->mode == REDIS_CHANNEL)
		return 0;
	ret = ASK(&m->data, &v, redis_word("SETRANGE"), redis_word(m->key), redis_word("0"),
		  redis_word(""));
	if (!ret && redis_error_is_of_state(v))
		ret = refused(&m->data, "data", v);
	if (!ret)
		m->wary = false;
	return ret;
}

/* ---- subscribing ---- */

/* All that was asked for is confirmed; messages may come in between. */
static int await_subscriptions(struct redis_link *l, unsigned count)
{
	const struct redis_value *v;

	while (count) {
		int ret = await(l, &v);

		if (ret)
			return ret;
		if (v->type != REDIS_ARRAY || !v->len)
			return refused(l, "a subscription", v);
		if (redis_value_is(v->items[0], "subscribe") ||
		    redis_value_is(v->items[0], "psubscribe"))
			count--;
		else if (l->node->mode == REDIS_CHANNEL && v->items[v->len - 1]->type == REDIS_TEXT)
			outside_received(&l->node->outside, v->items[v->len - 1]->text,
					 v->items[v->len - 1]->len);
	}
	return 0;
}

static int subscribe(struct redis_link *l, const char *command, const char *const names[],
		     unsigned count)
{
	struct redis_word words[1 + REDIS_CHANNELS_MAX] = { redis_word(command) };

	for (unsigned i = 0; i < count; i++)
		words[1 + i] = redis_word(names[i]);
	l->subscribed = true;
	return count ? redis_link_put(l, REDIS_OWED_ANSWER, 0, 1 + count, words) : 0;
}

static int subscribe_channels(struct redis_node *m)
{
	struct redis_link *l = &m->feed;

	return subscribe(l, "SUBSCRIBE", m->channels, m->channel_count) ?:
	       subscribe(l, "PSUBSCRIBE", m->patterns, m->pattern_count) ?:
	       await_subscriptions(l, m->channel_count + m->pattern_count);
}

/* ---- being told about changes of a key ---- */

/* Asks the server to tell. 1: it does; 0: it refuses; or a negative errno. All nodes ask for
 * strings and hashes, so that none undoes what another one asks for at the same time. */
static int ask_to_notify(struct redis_node *m)
{
	const struct redis_word name = redis_word("notify-keyspace-events");
	const struct redis_value *v;
	char flags[NOTIFY_SIZE];
	int ret = ASK(&m->data, &v, redis_word("CONFIG"), redis_word("GET"), name);
	size_t len;

	if (ret)
		return ret;
	if (v->type != REDIS_ARRAY || v->len != 2 || v->items[1]->type != REDIS_TEXT ||
	    v->items[1]->len > NOTIFY_SIZE - 4)
		return 0;
	len = v->items[1]->len;
	memcpy(flags, v->items[1]->text, len + 1);
	for (const char *kind = strchr(flags, 'A') ? "K" : "K$h"; *kind; kind++)
		if (!memchr(flags, *kind, len))
			flags[len++] = *kind;
	if (len == v->items[1]->len)
		return 1;
	ret = ASK(&m->data, &v, redis_word("CONFIG"), redis_word("SET"), name, { flags, len });
	return ret ?: redis_value_is(v, "OK");
}

static int watch_key(struct redis_node *m)
{
	char name[1200];
	const char *names[] = { name };
	int ret;

	m->notified = false;
	if (!m->notify)
		return 0;
	ret = ask_to_notify(m);
	if (ret < 0)
		return ret;
	if (!ret) {
		if (!m->said_polling)
			log_warn("node %s: the server does not let itself be told to notify (CONFIG SET notify-keyspace-events); the node asks %g times a second",
				 m->outside.node->name, m->rate);
		m->said_polling = true;
		return 0;
	}
	ret = redis_link_open(&m->feed, m) ?: log_in(&m->feed);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "__keyspace@%lld__:%s", (long long)m->address.db, m->key);
	ret = subscribe(&m->feed, "SUBSCRIBE", names, 1) ?: await_subscriptions(&m->feed, 1);
	m->notified = !ret;
	return ret;
}

/* ---- streams ---- */

/* The newest entry, after which reading begins. */
static int find_newest(struct redis_node *m)
{
	const struct redis_value *v;
	int ret = ASK(&m->feed, &v, redis_word("XREVRANGE"), redis_word(m->key), redis_word("+"),
		      redis_word("-"), redis_word("COUNT"), redis_word("1"));

	if (ret)
		return ret;
	if (v->type != REDIS_ARRAY)
		return refused(&m->feed, "the stream", v);
	if (v->len && (v->items[0]->type != REDIS_ARRAY || !v->items[0]->len ||
		       !redis_id_parse(v->items[0]->items[0], &m->last)))
		return outside_fail(&m->outside, -EPROTO, "its stream has entries without sense");
	return 0;
}

static int make_group(struct redis_node *m)
{
	const struct redis_value *v;
	char id[2 * NUM_INT_MAX + 4];
	int ret;

	snprintf(id, sizeof(id), "%llu-%llu", m->last.ms, m->last.seq);
	ret = ASK(&m->feed, &v, redis_word("XGROUP"), redis_word("CREATE"), redis_word(m->key),
		  redis_word(m->group), redis_word(id), redis_word("MKSTREAM"));
	if (ret)
		return ret;
	return redis_value_is(v, "OK") || redis_error_is(v, "BUSYGROUP") ?
		       0 : refused(&m->feed, "the group", v);
}

static int prepare_stream(struct redis_node *m)
{
	int ret = m->has_last || m->from == REDIS_FROM_OLDEST ? 0 : find_newest(m);

	/* What comes from here on is read, also after the next connection. */
	if (!ret)
		m->has_last = true;
	if (!ret && m->group)
		ret = make_group(m);
	m->old_ones = m->group;
	m->old = (struct redis_id){ 0 };
	m->first_unread = m->unread_count = 0;
	return ret;
}

/* ---- all of it ---- */

static int open_feed(struct redis_node *m)
{
	int ret;

	if (!m->outside.node->is_source)
		return 0;
	if (m->mode == REDIS_KEY || m->mode == REDIS_HASH)
		return watch_key(m);
	ret = redis_link_open(&m->feed, m) ?: log_in(&m->feed);
	if (ret)
		return ret;
	return m->mode == REDIS_CHANNEL ? subscribe_channels(m) : prepare_stream(m);
}

static int open_data(struct redis_node *m)
{
	bool reads_only = m->outside.node->is_source && !m->outside.node->is_destination;

	/* Of a group it tells what was read. */
	if (reads_only && (m->mode == REDIS_CHANNEL || (m->mode == REDIS_STREAM && !m->group)))
		return 0;
	return redis_link_open(&m->data, m) ?: log_in(&m->data) ?: try_writing(m);
}

int redis_open(struct outside *o)
{
	struct redis_node *m = redis_of(o);
	int ret;

	m->until_ns = clock_now_ns() + (uint64_t)(o->connect_timeout_s * 1e9);
	m->data.stream.fd = m->feed.stream.fd = -1;
	m->asked = m->ask_again = m->entries_asked = m->notified = false;
	m->entries = NULL;
	m->poll_ns = 0;
	ret = open_data(m) ?: open_feed(m);
	if (ret)
		redis_close(o);
	/* Messages may have come behind the last answer. */
	m->feed.more = m->data.more = !ret;
	if (!ret)
		outside_wake(o);
	return ret;
}

void redis_close(struct outside *o)
{
	struct redis_node *m = redis_of(o);

	m->entries = NULL;
	while (m->data.stream.fd >= 0 && redis_link_has_room(&m->data, 1) && redis_acknowledge(m) > 0)
		;
	m->unread_count = 0;
	redis_link_close(&m->data);
	redis_link_close(&m->feed);
	free(m->value);
	m->value = NULL;
	m->value_len = 0;
}
