/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the brokers are asked, and what comes from them. The library connects, and connects
 * again, by itself, in threads of its own; its clients stay when a connection is lost. The node
 * is connected when a broker has answered for each topic, and for a group when the node's
 * partitions are known; it is not when the library says that no broker is connected.
 */
#define LOG_ROOM "gateway/kafka"
#include "gateway/node/kafka/kafka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "util/clock.h"
#include "util/log.h"

#define MS UINT64_C(1000000)
/* Messages that are taken before others have their turn. */
#define READS_MAX 64
/* A question is asked again after this time, which doubles; in between, the node looks what the
 * library says and whether it has to end. */
#define ASK_FIRST_MS 2
#define ASK_LAST_MS 500
/* Between questions for a topic that is not there yet, and looks for a group's answer. */
#define REST_MS 20
#define PARTITIONS_MAX 4096

static int refuse(struct kafka_node *m, const char *what, rd_kafka_resp_err_t err)
{
	m->refused = -EACCES;
	return outside_fail(&m->outside, -EACCES, "%s: %s", what, rd_kafka_err2str(err));
}

static void take_error(struct kafka_node *m, const rd_kafka_message_t *message)
{
	const char *text = rd_kafka_message_errstr(message);

	switch (message->err) {
	case RD_KAFKA_RESP_ERR__PARTITION_EOF:
		return;
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
		refuse(m, message->rkt ? rd_kafka_topic_name(message->rkt) : "the group",
		       message->err);
		return;
	default:
		if (strcmp(text, m->last_error))
			log_warn("node %s: from %s: %s", m->outside.node->name, m->target, text);
		kafka_note_error(m, text);
	}
}

static void take(struct kafka_node *m, const rd_kafka_message_t *message)
{
	if (message->err) {
		take_error(m, message);
		return;
	}
	outside_received(&m->outside, message->payload, message->len);
	/* From now on it may be committed. */
	if (m->group_id)
		rd_kafka_offset_store(message->rkt, message->partition, message->offset);
}

static bool has_more(const struct kafka_client *client)
{
	return client->queue && rd_kafka_queue_length(client->queue);
}

/* Locked. */
static void look(struct kafka_node *m)
{
	unsigned taken = 0;
	eventfd_t count;

	eventfd_read(m->event_fd, &count);
	if (m->producer.rk)
		rd_kafka_poll(m->producer.rk, 0);
	while (m->consumer.rk && taken < READS_MAX && !outside_is_enough(&m->outside)) {
		rd_kafka_message_t *message = rd_kafka_consumer_poll(m->consumer.rk, 0);

		if (!message)
			break;
		take(m, message);
		rd_kafka_message_destroy(message);
		taken++;
	}
	/* The library writes to the descriptor only when a queue was empty, and a poll that has
	 * called a callback returns no message. */
	m->more = taken == READS_MAX || outside_is_enough(&m->outside) ||
		  has_more(&m->producer) || has_more(&m->consumer);
}

/* ---- connecting ---- */

static bool is_over(const struct kafka_node *m, uint64_t end_ns)
{
	return outside_is_ending(&m->outside) || clock_now_ns() >= end_ns;
}

/* Gives up an attempt. */
static int fail(struct kafka_node *m, const char *what)
{
	return outside_fail(&m->outside, -EHOSTUNREACH, "%s", *m->last_error ? m->last_error : what);
}

static void look_locked(struct kafka_node *m)
{
	outside_lock(&m->outside);
	look(m);
	outside_unlock(&m->outside);
}

static void rest(struct kafka_node *m)
{
	struct pollfd fd = { .fd = m->event_fd, .events = POLLIN };

	poll(&fd, 1, REST_MS);
	look_locked(m);
}

/* What the answer says about the topic. */
static rd_kafka_resp_err_t examine(const struct rd_kafka_metadata *answer, int *partitions)
{
	const rd_kafka_metadata_topic_t *t = answer->topics;

	if (!answer->topic_cnt)
		return RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	*partitions = t->partition_cnt;
	for (int i = 0; !t->err && i < t->partition_cnt; i++)
		if (t->partitions[i].id < 0 || t->partitions[i].id >= t->partition_cnt)
			return RD_KAFKA_RESP_ERR__BAD_MSG;
	return t->err || t->partition_cnt ? t->err : RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
}

/* A broker has to answer, and to know the topic; without one (NULL), only to answer. Returns
 * the number of partitions, or a negative errno. */
static int ask(struct kafka_node *m, struct kafka_client *client, rd_kafka_topic_t *topic,
	       uint64_t end_ns)
{
	int partitions = 0, slice_ms = ASK_FIRST_MS;

	for (;;) {
		const struct rd_kafka_metadata *answer = NULL;
		rd_kafka_resp_err_t err;
		bool answered;

		client->down = false;
		err = rd_kafka_metadata(client->rk, 0, topic, &answer, slice_ms);
		answered = !err;
		if (answered) {
			err = topic ? examine(answer, &partitions) : 0;
			rd_kafka_metadata_destroy(answer);
		}
		if (!err)
			return partitions;
		look_locked(m);
		if (answered && err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
			return refuse(m, rd_kafka_topic_name(topic), err);
		if (!answered && client->down)
			return fail(m, "no broker can be reached");
		if (is_over(m, end_ns))
			return answered	       ? refuse(m, rd_kafka_topic_name(topic), err) :
			       *m->last_error ? fail(m, NULL) :
						outside_fail_silent(&m->outside);
		if (answered)
			rest(m);
		slice_ms = MIN(2 * slice_ms, ASK_LAST_MS);
	}
}

static int ask_for_topic(struct kafka_node *m, const char *name, uint64_t end_ns)
{
	rd_kafka_topic_t *topic = rd_kafka_topic_new(m->consumer.rk, name, NULL);
	int ret = topic ? ask(m, &m->consumer, topic, end_ns) :
			  outside_fail(&m->outside, -EINVAL, "in.consume: %s",
				       rd_kafka_err2str(rd_kafka_last_error()));

	if (topic)
		rd_kafka_topic_destroy(topic);
	return ret;
}

/* Where to begin: the end is that of now, not that of a moment later. */
static int find_start(struct kafka_node *m, const char *topic, int partition, int64_t *offset,
		      uint64_t end_ns)
{
	int64_t low, high;
	rd_kafka_resp_err_t err;

	if (m->reset) {
		*offset = RD_KAFKA_OFFSET_BEGINNING;
		return 0;
	}
	do {
		err = rd_kafka_query_watermark_offsets(m->consumer.rk, topic, partition, &low,
						       &high, ASK_LAST_MS);
		*offset = high;
	} while (err && !is_over(m, end_ns));
	if (!err)
		return 0;
	return outside_fail(&m->outside, -EIO, "partition %d of %s: %s", partition, topic,
			    rd_kafka_err2str(err));
}

/* Without a group: all partitions of the topics. */
static int assign_all(struct kafka_node *m, const int counts[], uint64_t end_ns)
{
	rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(16);
	rd_kafka_resp_err_t err;
	int ret = 0;

	for (unsigned i = 0; i < m->topic_count; i++) {
		for (int p = 0; p < counts[i] && !ret; p++) {
			if (all->cnt == PARTITIONS_MAX)
				ret = outside_fail(&m->outside, -E2BIG,
						   "more than %d partitions", PARTITIONS_MAX);
			else
				ret = find_start(m, m->topics[i], p,
						 &rd_kafka_topic_partition_list_add(
							  all, m->topics[i], p)->offset,
						 end_ns);
		}
	}
	err = ret ? 0 : rd_kafka_assign(m->consumer.rk, all);
	if (err)
		ret = outside_fail(&m->outside, -EIO, "%s", rd_kafka_err2str(err));
	m->assigned = !ret;
	if (!ret) {
		node_figure_set(m->outside.node, KAFKA_PARTITIONS, (uint64_t)all->cnt);
		node_figure_add(m->outside.node, KAFKA_ASSIGNMENTS, 1);
	}
	rd_kafka_topic_partition_list_destroy(all);
	return ret;
}

static int subscribe(struct kafka_node *m)
{
	rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(16);
	rd_kafka_resp_err_t err;

	for (unsigned i = 0; i < m->topic_count; i++)
		rd_kafka_topic_partition_list_add(all, m->topics[i], RD_KAFKA_PARTITION_UA);
	err = rd_kafka_subscribe(m->consumer.rk, all);
	rd_kafka_topic_partition_list_destroy(all);
	m->subscribed = !err;
	return err ? outside_fail(&m->outside, -EIO, "the group %s: %s", m->group_id,
				  rd_kafka_err2str(err)) : 0;
}

static int join_group(struct kafka_node *m, uint64_t end_ns)
{
	int ret = m->subscribed ? 0 : subscribe(m);

	while (!ret && !m->assigned) {
		rest(m);
		if (m->refused || m->consumer.down)
			return m->refused ?: fail(m, "no broker can be reached");
		if (!m->assigned && is_over(m, end_ns))
			return outside_fail(&m->outside, -EBUSY,
					    "the group %s has not given the node its partitions yet",
					    m->group_id);
	}
	return ret;
}

static int open_consumer(struct kafka_node *m, uint64_t end_ns)
{
	int counts[KAFKA_TOPICS_MAX] = { 0 }, ret;

	for (unsigned i = 0; i < m->topic_count; i++) {
		/* Which topics a pattern fits is the group's affair. */
		bool pattern = m->topics[i][0] == '^';

		ret = pattern ? ask(m, &m->consumer, NULL, end_ns) :
				ask_for_topic(m, m->topics[i], end_ns);
		if (ret < 0)
			return ret;
		counts[i] = ret;
	}
	if (m->group_id)
		return join_group(m, end_ns);
	return m->assigned ? 0 : assign_all(m, counts, end_ns);
}

static int open_producer(struct kafka_node *m, uint64_t end_ns)
{
	int ret = ask(m, &m->producer, m->topic, end_ns);

	if (ret >= 0 && m->topic && m->partition >= ret)
		return outside_fail(&m->outside, -ENOENT,
				    "out.partition is %d, but %s has %d partitions",
				    (int)m->partition, m->produce, ret);
	return MIN(ret, 0);
}

int kafka_open(struct outside *o)
{
	struct kafka_node *m = kafka_of(o);
	uint64_t end_ns = clock_now_ns() + (uint64_t)(o->connect_timeout_s * 1e9);
	int ret = kafka_make_clients(m);

	m->refused = 0;
	if (!ret && m->producer.rk)
		ret = open_producer(m, end_ns);
	if (!ret && m->consumer.rk)
		ret = open_consumer(m, end_ns);
	m->disturbed = false;
	/* The library does not say the same again. */
	if (!ret)
		m->last_error[0] = 0;
	return ret;
}

/* The clients stay, so that the library repeats what was not confirmed. */
void kafka_close(struct outside *o)
{
	struct kafka_node *m = kafka_of(o);

	o->ops = m->fatal ? m->again_ops : m->ops;
	if (m->fatal || outside_is_ending(o))
		kafka_end_producer(m);
	if (outside_is_ending(o))
		kafka_end_consumer(m, true);
}

/* ---- while it lasts ---- */

/* The library has said that all connections are down: in the meantime one may be up again. */
static bool is_down(struct kafka_client *client)
{
	const struct rd_kafka_metadata *answer = NULL;
	rd_kafka_resp_err_t err;

	if (likely(!client->down))
		return false;
	client->down = false;
	/* Waits for nothing; other errors say that a broker was asked. */
	err = rd_kafka_metadata(client->rk, 0, NULL, &answer, 0);
	if (!err)
		rd_kafka_metadata_destroy(answer);
	return err == RD_KAFKA_RESP_ERR__TRANSPORT;
}

int kafka_turn(struct outside *o)
{
	struct kafka_node *m = kafka_of(o);

	look(m);
	if (unlikely(m->fatal))
		return fail(m, "the producer cannot go on");
	if (unlikely(m->refused))
		return m->refused;
	if (unlikely(is_down(&m->producer) || is_down(&m->consumer)))
		return fail(m, "no broker is connected");
	/* Another broker takes over, and the library has sent again what was on its way. */
	if (unlikely(m->disturbed) && !m->idempotence)
		node_figure_add(o->node, OUTSIDE_REPEATED, o->unconfirmed.samples);
	m->disturbed = false;
	return 0;
}

unsigned kafka_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct kafka_node *m = kafka_of(o);

	if (m->more)
		*until_ns = clock_now_ns();
	fds[0] = (struct pollfd){ .fd = m->event_fd, .events = POLLIN };
	return 1;
}
