/* SPDX-License-Identifier: BSD-2-Clause */
/* While the connections last: commands with samples, and replies. */
#define LOG_ROOM "gateway/redis"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/node/redis/redis.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/num.h"

/* Replies that are taken before others have their turn. */
#define REPLIES_MAX 256
/* A read of a stream waits so long at the server. */
#define BLOCK_MS 1000
/* While entries wait for room, or to be read. */
#define LOOK_AGAIN_NS (NSEC_PER_SEC / 1000)

/* Each acknowledgement costs a server that writes to the disk as much as an entry. */
#define ACKNOWLEDGE_NS (20 * LOOK_AGAIN_NS)
#define ID_SIZE (2 * NUM_INT_MAX + 2)

static int no_sense(struct redis_node *m, const char *what)
{
	return outside_fail(&m->outside, -EPROTO, "it answers %s with no sense", what);
}

static int broken_by(struct redis_node *m, const char *what, const struct redis_value *v)
{
	char text[REDIS_ERROR_MAX];

	return outside_fail(&m->outside, -EIO, "the server refuses %s: %s", what,
			    redis_value_shown(v, text, sizeof(text)));
}

/* ---- sending ---- */

static int put_entry(struct redis_node *m, const struct outbox_message *msg)
{
	char max[NUM_INT_MAX + 1];
	struct redis_word words[8] = { redis_word("XADD"), redis_word(m->key) };
	unsigned n = 2;

	if (m->max_length) {
		*num_print_i64(max, m->max_length) = 0;
		words[n++] = redis_word("MAXLEN");
		words[n++] = redis_word("~");
		words[n++] = redis_word(max);
	}
	words[n++] = redis_word("*");
	words[n++] = redis_word(m->field);
	words[n++] = (struct redis_word){ msg->data, msg->len };
	return redis_link_put(&m->data, REDIS_OWED_MESSAGE, msg->tag, n, words);
}

static int put_message(struct redis_node *m, const struct outbox_message *msg)
{
	struct redis_word words[3] = { redis_word("SET"), redis_word(m->key),
				       { msg->data, msg->len } };
	int ret = 0;

	if (m->mode == REDIS_HASH)
		return redis_link_put_raw(&m->data, REDIS_OWED_MESSAGE, msg->tag, msg->data,
					  msg->len);
	if (m->mode == REDIS_STREAM)
		return put_entry(m, msg);
	if (m->mode == REDIS_KEY)
		return redis_link_put(&m->data, REDIS_OWED_MESSAGE, msg->tag, 3, words);
	words[0] = redis_word("PUBLISH");
	for (unsigned i = 0; i < m->channel_count && !ret; i++) {
		words[1] = redis_word(m->channels[i]);
		ret = redis_link_put(&m->data, i + 1 < m->channel_count ? REDIS_OWED_PART :
									   REDIS_OWED_MESSAGE,
				     msg->tag, 3, words);
	}
	return ret;
}

int redis_send(struct outside *o, struct outbox_message *msg)
{
	struct redis_node *m = redis_of(o);
	int ret;

	if (!redis_link_has_room(&m->data, m->mode == REDIS_CHANNEL ? m->channel_count : 1))
		return -EAGAIN;
	msg->tag = outside_new_tag(o);
	ret = put_message(m, msg) ?: redis_link_flush(&m->data);
	if (ret)
		return ret;
	if (stream_buffer_filled(&m->data.stream.out))
		outside_wake(o);
	return OUTSIDE_UNCONFIRMED;
}

static int on_written(struct redis_node *m, const struct redis_owed *owed,
		      const struct redis_value *v)
{
	char text[REDIS_ERROR_MAX];

	if (v->type == REDIS_ERROR) {
		if (redis_error_is_of_state(v)) {
			m->wary = true;
			return broken_by(m, "data", v);
		}
		outside_reject(&m->outside, owed->tag, redis_value_shown(v, text, sizeof(text)));
		return 0;
	}
	if (m->mode == REDIS_KEY ? v->type != REDIS_STATUS :
	    m->mode == REDIS_STREAM ? v->type != REDIS_TEXT : v->type != REDIS_NUMBER)
		return no_sense(m, "data");
	if (m->mode == REDIS_CHANNEL && !v->number)
		node_figure_add(m->outside.node, REDIS_UNHEARD, 1);
	if (owed->kind == REDIS_OWED_MESSAGE)
		outside_confirm(&m->outside, owed->tag, false);
	return 0;
}

/* ---- keys and hashes ---- */

static int ask_value(struct redis_node *m)
{
	const struct redis_word words[] = {
		redis_word(m->mode == REDIS_HASH ? "HGETALL" : "GET"), redis_word(m->key),
	};

	m->asked = true;
	m->ask_again = false;
	m->poll_ns = m->notified ? UINT64_MAX : clock_now_ns() + (uint64_t)(1e9 / m->rate);
	return redis_link_put(&m->data, REDIS_OWED_VALUE, 0, 2, words);
}

/* The server tells that the value has changed. */
static int on_change(struct redis_node *m)
{
	if (!m->asked)
		return ask_value(m);
	if (m->ask_again)
		node_figure_add(m->outside.node, REDIS_OVERWRITTEN, 1);
	m->ask_again = true;
	return 0;
}

static size_t put_text(char *to, size_t at, const struct redis_value *v)
{
	memcpy(to + at, &v->len, sizeof(v->len));
	memcpy(to + at + sizeof(v->len), v->text, v->len);
	return at + sizeof(v->len) + v->len;
}

/* Whether it is the value that was read last; else it is that from now on. After two changes in
 * quick succession both reads find the second one. */
static bool is_same(struct redis_node *m, const struct redis_value *v)
{
	struct redis_value *const one[] = { (struct redis_value *)v };
	struct redis_value *const *items = v->type == REDIS_ARRAY ? v->items : one;
	size_t count = v->type == REDIS_ARRAY ? v->len : 1, size = 0, at = 0;
	char *value;
	bool same;

	for (size_t i = 0; i < count; i++) {
		if (items[i]->type != REDIS_TEXT)
			return false;
		size += sizeof(size_t) + items[i]->len;
	}
	value = malloc(size + 1);
	if (!value)
		return false;
	for (size_t i = 0; i < count; i++)
		at = put_text(value, at, items[i]);
	same = m->value && size == m->value_len && !memcmp(value, m->value, size);
	free(m->value);
	m->value = value;
	m->value_len = size;
	return same;
}

static int on_value(struct redis_node *m, const struct redis_value *v)
{
	char text[REDIS_ERROR_MAX];
	bool is_hash = m->mode == REDIS_HASH;

	m->asked = false;
	if (v->type == REDIS_ERROR) {
		if (redis_error_is_of_state(v))
			return broken_by(m, "to read the key", v);
		outside_malformed(&m->outside, "key %.100s: %s", m->key,
				  redis_value_shown(v, text, sizeof(text)));
	} else if (v->type != REDIS_NIL && v->type != (is_hash ? REDIS_ARRAY : REDIS_TEXT)) {
		return no_sense(m, "a question for the key");
	} else if (v->type != REDIS_NIL && v->len) {
		if (m->notified && is_same(m, v))
			node_figure_add(m->outside.node, REDIS_UNCHANGED, 1);
		else if (is_hash)
			redis_hash_received(m, v);
		else
			outside_received(&m->outside, v->text, v->len);
	}
	return m->ask_again ? ask_value(m) : 0;
}

/* ---- streams ---- */

static void print_id(const struct redis_id *id, char buf[ID_SIZE])
{
	snprintf(buf, ID_SIZE, "%llu-%llu", id->ms, id->seq);
}

static int ask_entries(struct redis_node *m)
{
	double limit_ms = m->socket_timeout_s * 1e3 / 2;
	char block[NUM_INT_MAX + 1], id[ID_SIZE];
	struct redis_word words[12];
	unsigned n = 0;

	*num_print_i64(block, limit_ms > 0 && limit_ms < BLOCK_MS ? (int64_t)limit_ms + 1 :
								       BLOCK_MS) = 0;
	print_id(m->group ? &m->old : &m->last, id);
	words[n++] = redis_word(m->group ? "XREADGROUP" : "XREAD");
	if (m->group) {
		words[n++] = redis_word("GROUP");
		words[n++] = redis_word(m->group);
		words[n++] = redis_word(m->consumer);
	}
	words[n++] = redis_word("COUNT");
	words[n++] = redis_word("64");
	words[n++] = redis_word("BLOCK");
	words[n++] = redis_word(block);
	words[n++] = redis_word("STREAMS");
	words[n++] = redis_word(m->key);
	words[n++] = redis_word(!m->group || m->old_ones ? id : ">");
	m->entries_asked = true;
	return redis_link_put(&m->feed, REDIS_OWED_ENTRIES, 0, n, words);
}

static int on_entries(struct redis_node *m, const struct redis_value *v)
{
	const struct redis_value *stream;

	m->entries_asked = false;
	if (v->type == REDIS_ERROR)
		return broken_by(m, "to read the stream", v);
	/* Nothing has come. */
	if (v->type == REDIS_NIL)
		return 0;
	if (v->type != REDIS_ARRAY || v->len != 1 || v->items[0]->type != REDIS_ARRAY)
		return no_sense(m, "a read");
	stream = v->items[0];
	if (stream->len != 2 || stream->items[1]->type != REDIS_ARRAY ||
	    stream->items[1]->len > REDIS_ENTRIES_MAX)
		return no_sense(m, "a read");
	m->entries = stream->items[1];
	m->entries_at = 0;
	if (!m->entries->len)
		m->old_ones = false;
	return 0;
}

/* [ID, [FIELD, VALUE, ...]], or nil for the fields of one that was deleted meanwhile. */
static void take_fields(struct redis_node *m, const struct redis_value *e)
{
	const struct redis_value *fields = e->items[1], *found = NULL;

	if (fields->type == REDIS_NIL)
		return;
	for (size_t i = 0; fields->type == REDIS_ARRAY && i + 1 < fields->len && !found; i += 2)
		if (redis_value_is(fields->items[i], m->field) &&
		    fields->items[i + 1]->type == REDIS_TEXT)
			found = fields->items[i + 1];
	if (found)
		outside_received(&m->outside, found->text, found->len);
	else
		outside_malformed(&m->outside, "entry %s has no field %s", e->items[0]->text,
				  m->field);
}

static void remember_unread(struct redis_node *m, const struct redis_id *id)
{
	unsigned at = (m->first_unread + m->unread_count++) % REDIS_UNREAD_MAX;

	m->unread[at] = (struct redis_unread){ *id, outside_samples_put(&m->outside) };
}

static int take_entry(struct redis_node *m, const struct redis_value *e)
{
	struct redis_id id;

	if (e->type != REDIS_ARRAY || e->len != 2 || !redis_id_parse(e->items[0], &id))
		return no_sense(m, "a read");
	if (m->old_ones)
		m->old = id;
	/* The last connection ended before the server heard that it was read. */
	if (m->has_read && redis_id_compare(&id, &m->last) <= 0) {
		node_figure_add(m->outside.node, REDIS_AGAIN, 1);
	} else {
		m->last = id;
		m->has_read = true;
		take_fields(m, e);
	}
	if (m->group)
		remember_unread(m, &id);
	return 0;
}

int redis_acknowledge(struct redis_node *m)
{
	char ids[REDIS_ENTRIES_MAX][ID_SIZE];
	struct redis_word words[3 + REDIS_ENTRIES_MAX] = { redis_word("XACK") };
	uint64_t read = outside_samples_read(&m->outside);
	unsigned n = 0;

	while (m->unread_count) {
		const struct redis_unread *u = &m->unread[m->first_unread];

		if (u->samples > read || n == REDIS_ENTRIES_MAX)
			break;
		print_id(&u->id, ids[n]);
		words[3 + n] = redis_word(ids[n]);
		n++;
		m->first_unread = (m->first_unread + 1) % REDIS_UNREAD_MAX;
		m->unread_count--;
	}
	if (!n)
		return 0;
	words[1] = redis_word(m->key);
	words[2] = redis_word(m->group);
	/* Not by the other connection, which waits for entries. */
	return redis_link_put(&m->data, REDIS_OWED_ACK, 0, 3 + n, words) ?: n == REDIS_ENTRIES_MAX;
}

/* Entries are taken while samples find room; they are safe at the server. */
static int go_on_with_stream(struct redis_node *m)
{
	unsigned enough = (unsigned)m->outside.queuelen / 2;
	uint64_t now = clock_now_ns();
	int ret = 0;

	if (m->unread_count && redis_link_has_room(&m->data, 1) &&
	    (now >= m->acknowledge_ns || m->unread_count >= REDIS_ENTRIES_MAX)) {
		ret = MIN(redis_acknowledge(m), 0);
		m->acknowledge_ns = now + ACKNOWLEDGE_NS;
	}
	if (ret)
		return ret;
	while (m->entries && m->entries_at < m->entries->len) {
		if (outside_room(&m->outside) < enough || outside_is_enough(&m->outside))
			return 0;
		ret = take_entry(m, m->entries->items[m->entries_at++]);
		if (ret)
			return ret;
	}
	m->entries = NULL;
	if (m->entries_asked || REDIS_UNREAD_MAX - m->unread_count < REDIS_ENTRIES_MAX)
		return 0;
	return ask_entries(m) ?: redis_link_flush(&m->feed);
}

/* ---- replies ---- */

/* What a subscription brings: ["message", CHANNEL, TEXT], ["pmessage", PATTERN, CHANNEL, TEXT]. */
static int on_push(struct redis_link *l, const struct redis_value *v)
{
	struct redis_node *m = l->node;
	const struct redis_value *last;

	if (v->type == REDIS_ERROR)
		return broken_by(m, "the subscription", v);
	if (v->type != REDIS_ARRAY || v->len < 2)
		return no_sense(m, "a subscription");
	last = v->items[v->len - 1];
	if (redis_value_is(v->items[0], "pong")) {
		l->pings = 0;
	} else if ((redis_value_is(v->items[0], "message") && v->len == 3) ||
		   (redis_value_is(v->items[0], "pmessage") && v->len == 4)) {
		if (m->mode != REDIS_CHANNEL)
			return on_change(m);
		if (last->type != REDIS_TEXT)
			return no_sense(m, "a subscription");
		outside_received(&m->outside, last->text, last->len);
	}
	return 0;
}

static int on_reply(struct redis_link *l, const struct redis_value *v)
{
	struct redis_node *m = l->node;
	struct redis_owed owed;

	if (l->subscribed)
		return on_push(l, v);
	if (!redis_link_take_owed(l, &owed))
		return v->type == REDIS_ERROR ? broken_by(m, "the connection", v) :
						outside_fail(&m->outside, -EPROTO,
							     "it answers what nobody has asked");
	switch (owed.kind) {
	case REDIS_OWED_PART:
	case REDIS_OWED_MESSAGE:
		return on_written(m, &owed, v);
	case REDIS_OWED_VALUE:
		return on_value(m, v);
	case REDIS_OWED_ENTRIES:
		return on_entries(m, v);
	default:
		return v->type == REDIS_ERROR ? broken_by(m, "the connection", v) : 0;
	}
}

/* What comes unasked waits for the next turn; answers do not wait behind it. */
static bool has_enough(const struct redis_link *l)
{
	return l == &l->node->feed && outside_is_enough(&l->node->outside);
}

static int take_replies(struct redis_link *l)
{
	const struct redis_value *v;
	int ret;

	if (l->stream.fd < 0)
		return 0;
	ret = redis_link_flush(l);
	l->more = false;
	for (unsigned i = 0; i < REPLIES_MAX && !ret && !has_enough(l); i++) {
		/* They are in the memory of the reader. */
		if (l == &l->node->feed && l->node->entries)
			return 0;
		ret = redis_link_next(l, &v);
		if (ret <= 0)
			return ret;
		ret = on_reply(l, v);
	}
	l->more = true;
	return ret;
}

static int keep(struct redis_link *l)
{
	/* One that was not opened belongs to no node. */
	if (l->stream.fd < 0)
		return 0;
	return l == &l->node->feed && l->node->entries ? 0 : redis_link_keep(l);
}

int redis_turn(struct outside *o)
{
	struct redis_node *m = redis_of(o);
	bool reads_value = o->node->is_source && (m->mode == REDIS_KEY || m->mode == REDIS_HASH);
	int ret = take_replies(&m->feed) ?: take_replies(&m->data);

	if (!ret && o->node->is_source && m->mode == REDIS_STREAM)
		ret = go_on_with_stream(m);
	if (!ret && reads_value && !m->asked && clock_now_ns() >= m->poll_ns)
		ret = ask_value(m);
	if (!ret && m->data.stream.fd >= 0)
		ret = redis_link_flush(&m->data);
	return ret ?: keep(&m->feed) ?: keep(&m->data);
}

static unsigned wait_for(const struct redis_link *l, struct pollfd *fd, uint64_t *until_ns)
{
	if (l->stream.fd < 0)
		return 0;
	if (l == &l->node->feed && l->node->entries) {
		*until_ns = MIN(*until_ns, clock_now_ns() + LOOK_AGAIN_NS);
		return 0;
	}
	if (l == &l->node->feed && l->node->unread_count)
		*until_ns = MIN(*until_ns, MAX(l->node->acknowledge_ns,
					       clock_now_ns() + LOOK_AGAIN_NS));
	*until_ns = MIN(*until_ns, l->more ? 0 : redis_link_due_ns(l));
	*fd = (struct pollfd){ .fd = l->stream.fd,
				  .events = stream_events(&l->stream, true, false) };
	return 1;
}

unsigned redis_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct redis_node *m = redis_of(o);
	unsigned count = wait_for(&m->data, fds, until_ns);

	if (o->node->is_source && (m->mode == REDIS_KEY || m->mode == REDIS_HASH) && !m->asked)
		*until_ns = MIN(*until_ns, m->poll_ns);
	return count + wait_for(&m->feed, fds + count, until_ns);
}
