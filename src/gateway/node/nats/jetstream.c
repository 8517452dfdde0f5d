/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that a stream of the server keeps (JetStream). The node publishes each message with
 * the subject of an inbox, to which the stream answers when it has stored it. It reads from a
 * durable consumer: it asks for a number of messages at a time and acknowledges each one.
 */
#define LOG_ROOM "gateway/nats"
#include "gateway/node/nats/answer.h"
#include "gateway/node/nats/nats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "util/clock.h"

#define NS_PER_S INT64_C(1000000000)
/* Messages that the node asks for at a time, and when it asks again. */
#define BATCH 256
#define BATCH_LOW (BATCH / 2)
/* The server answers a question within this time, with a status if there are no messages. */
#define EXPIRES_NS (20 * NS_PER_S)
#define SLACK_NS (5 * NS_PER_S)
/* After this time without an acknowledgement the server sends a message again. */
#define ACK_WAIT_NS (2 * NS_PER_S)
#define ACK_WAIT_MAX_NS (30 * NS_PER_S)
#define ACK_PENDING_MAX 20000
/* A stream that is away for longer is an error of the connection; before that, messages are
 * sent again after each pause. */
#define AWAY_NS (2 * NSEC_PER_SEC)
#define PAUSE_NS (NSEC_PER_SEC / 10)
/* For the last acknowledgements of a connection. */
#define GENTLY_NS (200 * UINT64_C(1000000))
/* By this header a stream knows a message that it has stored. */
#define MSG_ID "Nats-Msg-Id"
/* Statuses instead of messages. */
#define STATUS_NOT_FOUND 404
#define STATUS_TIMEOUT 408
#define STATUS_CONFLICT 409
/* The stream is not there now. */
#define CODE_UNAVAILABLE 503

/* ---- settings ---- */

#define OFFSET(field) offsetof(struct nats_node, js.field)

const struct config_key nats_jetstream_keys[NATS_JETSTREAM_KEYS] = {
	{ "stream", CONFIG_STRING, OFFSET(stream), .required = true, .help = "Name of the stream" },
	{ "durable", CONFIG_STRING, OFFSET(durable),
	  .help = "Name of the consumer, by which the server knows what was read" },
	{ "create", CONFIG_BOOL, OFFSET(create), "false",
	  .help = "A stream that does not exist is made, of the node's subjects" },
	{ "memory", CONFIG_BOOL, OFFSET(memory), "false",
	  .help = "It is made in the server's memory, not in files" },
	{ "max_bytes", CONFIG_INT, OFFSET(max_bytes), "1073741824", .min = 4096,
	  .max = INT64_C(1) << 50, .help = "Bytes that it keeps; the oldest messages make room" },
};

static int check_name(struct config *c, const json_t *at, const char *key, const char *name)
{
	if (!name || (*name && strlen(name) < 200 && !name[strcspn(name, ".*> \t\r\n/\\")]))
		return 0;
	config_fail(c, at, key, "is a name without spaces, '.', '*', '>' and '/'");
	return -EINVAL;
}

int nats_jetstream_parse(struct nats_node *m, struct config *c, json_t *cfg)
{
	struct nats_jetstream *js = &m->js;
	int ret;

	if (!m->jetstream_cfg || json_is_null(m->jetstream_cfg))
		return 0;
	if (!json_is_object(m->jetstream_cfg)) {
		config_fail(c, cfg, "jetstream", "expected a group");
		return -EINVAL;
	}
	js->enabled = true;
	if (config_unpack(c, m->jetstream_cfg, nats_jetstream_keys, NATS_JETSTREAM_KEYS, m, NULL, 0))
		return -EINVAL;
	ret = check_name(c, m->jetstream_cfg, "stream", js->stream);
	ret = check_name(c, m->jetstream_cfg, "durable", js->durable) ?: ret;
	if (m->sub_count > 1 || m->pub_count > 1) {
		config_fail(c, cfg, "jetstream",
			    "takes one subject in in.subscribe and one in out.publish");
		ret = -EINVAL;
	}
	if (m->queue_group) {
		config_fail(c, json_object_get(cfg, "in"), "queue_group",
			    "nodes with the same jetstream.durable share the messages: not with it");
		ret = -EINVAL;
	}
	return ret;
}

/* ---- of the helper: the stream and the consumer ---- */

static natsStatus make_stream(struct nats_node *m, jsCtx *js, jsOptions *options,
			      jsStreamInfo **info)
{
	const char *subjects[2];
	jsStreamConfig stream;
	int count = 0;
	natsStatus s = jsStreamConfig_Init(&stream);

	if (m->sub_count)
		subjects[count++] = m->sub[0];
	if (m->pub_count && !(count && !strcmp(subjects[0], m->pub[0])))
		subjects[count++] = m->pub[0];
	stream.Name = m->js.stream;
	stream.Subjects = subjects;
	stream.SubjectsLen = count;
	stream.Storage = m->js.memory ? js_MemoryStorage : js_FileStorage;
	stream.MaxBytes = m->js.max_bytes;
	stream.Discard = js_DiscardOld;
	return s ?: js_AddStream(info, js, &stream, options, NULL);
}

static natsStatus find_stream(struct nats_node *m, jsCtx *js, jsOptions *options)
{
	jsStreamInfo *info = NULL;
	natsStatus s = js_GetStreamInfo(&info, js, m->js.stream, options, NULL);

	if (s == NATS_NOT_FOUND && m->js.create)
		s = make_stream(m, js, options, &info);
	/* Another stream with this name has other messages. A server that was killed can have lost
	 * the last ones, and then gives their numbers to others. */
	if (!s && info->Created != m->js.created)
		m->js.highest = 0;
	if (!s) {
		m->js.created = info->Created;
		m->js.highest = MIN(m->js.highest, info->State.LastSeq);
	}
	jsStreamInfo_Destroy(info);
	return s;
}

static natsStatus make_consumer(struct nats_node *m, jsCtx *js, jsOptions *options,
				jsConsumerInfo **info)
{
	jsConsumerConfig consumer;
	natsStatus s = jsConsumerConfig_Init(&consumer);

	consumer.Durable = m->js.durable;
	consumer.AckPolicy = js_AckExplicit;
	consumer.AckWait = ACK_WAIT_NS;
	consumer.DeliverPolicy = js_DeliverAll;
	consumer.FilterSubject = m->sub[0];
	consumer.MaxAckPending = ACK_PENDING_MAX;
	return s ?: js_AddConsumer(info, js, m->js.stream, &consumer, options, NULL);
}

static int check_consumer(struct nats_link *l, const jsConsumerInfo *info)
{
	const jsConsumerConfig *config = info->Config;
	const char *wrong = !config ? "without settings" :
			    config->DeliverSubject && *config->DeliverSubject ?
				    "it pushes messages, and the node pulls them" :
			    config->AckPolicy != js_AckExplicit ?
				    "its acknowledgement is not explicit" : NULL;

	if (!wrong)
		return 0;
	snprintf(l->why, sizeof(l->why), "the consumer %.100s: %s", l->node->js.durable, wrong);
	return -EINVAL;
}

static int find_consumer(struct nats_link *l, jsCtx *js, jsOptions *options)
{
	struct nats_node *m = l->node;
	jsConsumerInfo *info = NULL;
	natsStatus s = js_GetConsumerInfo(&info, js, m->js.stream, m->js.durable, options, NULL);
	int ret;

	if (s == NATS_NOT_FOUND)
		s = make_consumer(m, js, options, &info);
	if (s)
		return nats_link_fail(l, s, m->js.durable);
	ret = check_consumer(l, info);
	if (!ret && info->NumAckPending > 0) {
		int64_t wait_ns = MIN(MAX(info->Config->AckWait, INT64_C(0)), ACK_WAIT_MAX_NS);

		/* Messages that a lost connection has swallowed come again after this time. Newer
		 * ones would overtake them. */
		l->pull_from_ns = clock_now_ns() + (uint64_t)wait_ns + (uint64_t)NS_PER_S / 10;
	}
	jsConsumerInfo_Destroy(info);
	return ret;
}

static natsStatus subscribe_inbox(struct nats_link *l)
{
	natsInbox *inbox = NULL;
	natsStatus s = natsInbox_Create(&inbox);

	if (s)
		return s;
	snprintf(l->consumer_inbox, sizeof(l->consumer_inbox), "%s", inbox);
	natsInbox_Destroy(inbox);
	s = natsConnection_SubscribeSync(&l->subs[0], l->connection, l->consumer_inbox);
	l->sub_count = !s;
	return s;
}

static natsStatus subscribe_answers(struct nats_link *l)
{
	char subject[80];
	natsStatus s = natsInbox_Create(&l->inbox);

	if (s)
		return s;
	snprintf(subject, sizeof(subject), "%s.*", l->inbox);
	return natsConnection_SubscribeSync(&l->answers, l->connection, subject);
}

int nats_jetstream_setup(struct nats_link *l)
{
	struct nats_node *m = l->node;
	int64_t timeout_ms = (int64_t)(m->outside.connect_timeout_s * 1e3);
	const struct node *n = m->outside.node;
	jsOptions options;
	jsCtx *js = NULL;
	natsStatus s = jsOptions_Init(&options);
	int ret;

	options.Wait = timeout_ms;
	s = s ?: natsConnection_JetStream(&js, l->connection, &options);
	s = s ?: find_stream(m, js, &options);
	if (s) {
		jsCtx_Destroy(js);
		return nats_link_fail(l, s, m->js.stream);
	}
	ret = n->is_source ? find_consumer(l, js, &options) : 0;
	jsCtx_Destroy(js);
	if (ret)
		return ret;
	s = n->is_source ? subscribe_inbox(l) : NATS_OK;
	if (!s && n->is_destination)
		s = subscribe_answers(l);
	s = s ?: natsConnection_FlushTimeout(l->connection, timeout_ms);
	return s ? nats_link_fail(l, s, NULL) : 0;
}

/* ---- publishing ---- */

natsStatus nats_jetstream_publish(struct nats_node *m, const struct outbox_message *msg)
{
	char reply[128], id[80];
	natsMsg *message = NULL;
	natsStatus s;

	if (!*m->js.id) {
		uint64_t random[2] = { 0 };

		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return NATS_SYS_ERROR;
		snprintf(m->js.id, sizeof(m->js.id), "%016llx%016llx",
			 (unsigned long long)random[0], (unsigned long long)random[1]);
	}
	snprintf(reply, sizeof(reply), "%s.%llu", m->link->inbox, (unsigned long long)msg->tag);
	snprintf(id, sizeof(id), "%s-%llu", m->js.id, (unsigned long long)msg->tag);
	s = natsMsg_Create(&message, m->pub[0], reply, msg->data, (int)msg->len) ?:
	    natsMsgHeader_Set(message, MSG_ID, id) ?:
	    natsConnection_PublishMsg(m->link->connection, message);
	natsMsg_Destroy(message);
	return s;
}

/* A server that has just started answers for its streams a little later than for itself. */
static int await_stream(struct nats_node *m, const char *why)
{
	uint64_t now = clock_now_ns();

	if (!m->js.away_ns)
		m->js.away_ns = now;
	if (now - m->js.away_ns > AWAY_NS)
		return outside_fail(&m->outside, -ENOENT, "%s", why);
	if (now >= m->js.pause_ns) {
		m->js.pause_ns = now + PAUSE_NS;
		outside_repeat(&m->outside);
	}
	return 0;
}

static int take_answer(struct nats_node *m, natsMsg *msg)
{
	uint64_t tag = nats_answer_tag(natsMsg_GetSubject(msg));
	struct nats_answer answer;

	if (!tag)
		return 0;
	if (natsMsg_IsNoResponders(msg))
		return await_stream(m, "no stream takes the subject");
	if (!nats_answer_read(&answer, natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg)))
		return outside_fail(&m->outside, -EPROTO, "an answer cannot be read");
	if (answer.code == CODE_UNAVAILABLE)
		return await_stream(m, answer.text);
	m->js.away_ns = 0;
	if (answer.good)
		outside_confirm(&m->outside, tag, false);
	else
		outside_reject(&m->outside, tag, answer.text);
	return 0;
}

static int take_answers(struct nats_node *m)
{
	natsMsg *msg = NULL;
	int ret = 0;

	while (!ret && !natsSubscription_NextMsg(&msg, m->link->answers, 0)) {
		ret = take_answer(m, msg);
		natsMsg_Destroy(msg);
	}
	return ret;
}

/* ---- reading ---- */

int nats_jetstream_start(struct nats_node *m)
{
	m->js.highest = 0;
	m->js.created = 0;
	if (m->js.enabled && m->outside.node->is_source)
		m->js.taken = calloc(NATS_REMEMBERED / 8, 1);
	return m->js.enabled && m->outside.node->is_source && !m->js.taken ? -ENOMEM : 0;
}

void nats_jetstream_stop(struct nats_node *m)
{
	free(m->js.taken);
	m->js.taken = NULL;
}

/* Was the message with this number of the stream taken already? It is now. */
static bool is_duplicate(struct nats_jetstream *js, uint64_t number)
{
	uint8_t *byte = js->taken + number % NATS_REMEMBERED / 8;
	uint8_t bit = (uint8_t)(1u << number % 8);

	if (number + NATS_REMEMBERED <= js->highest)
		return false;
	if (number <= js->highest && *byte & bit)
		return true;
	if (number > js->highest + NATS_REMEMBERED)
		memset(js->taken, 0, NATS_REMEMBERED / 8);
	else
		for (uint64_t n = js->highest + 1; n < number; n++)
			js->taken[n % NATS_REMEMBERED / 8] &= (uint8_t)~(1u << n % 8);
	*byte |= bit;
	js->highest = MAX(js->highest, number);
	return false;
}

static int acknowledge(struct nats_node *m, const char *reply)
{
	return natsConnection_Publish(m->link->connection, reply, "+ACK", 4) ?
		       outside_fail(&m->outside, -EIO, "an acknowledgement cannot be sent") : 0;
}

/* Acknowledges what the path has read. */
static int acknowledge_read(struct nats_node *m)
{
	struct nats_jetstream *js = &m->js;
	uint64_t read = outside_samples_read(&m->outside);
	int ret = 0;

	while (!ret && js->unread_count && js->unread[js->unread_first].put <= read) {
		ret = acknowledge(m, js->unread[js->unread_first].reply);
		free(js->unread[js->unread_first].reply);
		js->unread_first = (js->unread_first + 1) % NATS_UNREAD_MAX;
		js->unread_count--;
	}
	return ret;
}

static void forget_unread(struct nats_jetstream *js)
{
	for (; js->unread_count; js->unread_count--) {
		free(js->unread[js->unread_first].reply);
		js->unread_first = (js->unread_first + 1) % NATS_UNREAD_MAX;
	}
}

static int take_status(struct nats_node *m, natsMsg *msg)
{
	const char *status = NULL, *text = NULL;
	int code;

	if (natsMsgHeader_Get(msg, "Status", &status) || !status)
		return 0;
	natsMsgHeader_Get(msg, "Description", &text);
	code = atoi(status);
	m->js.awaited = 0;
	if (code == STATUS_NOT_FOUND || code == STATUS_TIMEOUT)
		return 0;
	/* Too many of something: after a while there are fewer. */
	if (code == STATUS_CONFLICT && text && strcasestr(text, "exceeded"))
		return 0;
	return outside_fail(&m->outside, -EIO, "the consumer %.100s: %.10s %.100s", m->js.durable,
			    status, text ? text : "");
}

static int take_message(struct nats_node *m, natsMsg *msg)
{
	struct nats_jetstream *js = &m->js;
	jsMsgMetaData *meta = NULL;
	uint64_t number;
	unsigned at;

	/* A message of a stream has a subject for its acknowledgement. */
	if (natsMsg_GetMetaData(&meta, msg))
		return take_status(m, msg);
	number = meta->Sequence.Stream;
	jsMsgMetaData_Destroy(meta);
	js->awaited--;
	/* More than was asked for: the server will send it again. */
	if (js->unread_count == NATS_UNREAD_MAX)
		return 0;
	if (is_duplicate(js, number))
		node_figure_add(m->outside.node, NATS_DUPLICATES, 1);
	else
		outside_received(&m->outside, natsMsg_GetData(msg),
				 (size_t)natsMsg_GetDataLength(msg));
	at = (js->unread_first + js->unread_count) % NATS_UNREAD_MAX;
	js->unread[at].put = outside_samples_put(&m->outside);
	js->unread[at].reply = strdup(natsMsg_GetReply(msg));
	if (!js->unread[at].reply)
		return outside_fail(&m->outside, -ENOMEM, "%s", strerror(ENOMEM));
	js->unread_count++;
	return 0;
}

/* Asks for more messages. */
static int pull(struct nats_node *m)
{
	struct nats_link *l = m->link;
	uint64_t now = clock_now_ns();
	char subject[512], body[80];

	if (now < l->pull_from_ns)
		return 0;
	if (now - m->js.asked_ns > (uint64_t)(EXPIRES_NS + SLACK_NS))
		m->js.awaited = 0;
	/* All that comes has to find room. */
	if (m->js.awaited > BATCH_LOW ||
	    m->js.unread_count + MAX(m->js.awaited, INT64_C(0)) + BATCH > NATS_UNREAD_MAX)
		return 0;
	snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", m->js.stream,
		 m->js.durable);
	snprintf(body, sizeof(body), "{\"batch\":%d,\"expires\":%lld}", BATCH,
		 (long long)EXPIRES_NS);
	if (natsConnection_PublishRequest(l->connection, subject, l->consumer_inbox, body,
					  (int)strlen(body)))
		return outside_fail(&m->outside, -EIO, "messages cannot be asked for");
	m->js.awaited = MAX(m->js.awaited, INT64_C(0)) + BATCH;
	m->js.asked_ns = now;
	return 0;
}

static int take_messages(struct nats_node *m)
{
	natsMsg *msg = NULL;
	int ret = acknowledge_read(m);

	while (!ret && !natsSubscription_NextMsg(&msg, m->link->subs[0], 0)) {
		ret = take_message(m, msg);
		natsMsg_Destroy(msg);
	}
	return ret ?: pull(m);
}

int nats_jetstream_turn(struct nats_node *m)
{
	struct nats_link *l = m->link;
	const char *text = NULL;
	int ret = 0;

	/* The server does not say which message it was, and nobody will answer to it. */
	if (unlikely(natsConnection_GetLastError(l->connection, &text) == NATS_NOT_PERMITTED))
		return outside_fail(&m->outside, -EACCES, "%.250s", text ? text : "not permitted");
	nats_link_enter();
	if (l->answers)
		ret = take_answers(m);
	if (!ret && l->sub_count)
		ret = take_messages(m);
	nats_link_leave();
	nats_link_process(l, false);
	return ret;
}

/* Ends the connection's half of the node, and reads until the server has ended the other one.
 * Else the kernel, which still has messages for the node, would reset the connection, and the
 * server would not read the last acknowledgements. */
static void end_gently(struct nats_link *l)
{
	uint64_t now, end_ns = clock_now_ns() + GENTLY_NS;
	struct pollfd fd = { .fd = atomic_load(&l->fd), .events = POLLIN };
	char buf[16384];
	ssize_t n = 1;

	shutdown(fd.fd, SHUT_WR);
	while (n > 0 && (now = clock_now_ns()) < end_ns) {
		struct timespec left = timespec_from_ns(end_ns - now);

		if (ppoll(&fd, 1, &left, NULL) == 1)
			n = recv(fd.fd, buf, sizeof(buf), MSG_DONTWAIT);
	}
}

void nats_jetstream_close(struct nats_node *m)
{
	struct nats_link *l = m->link;

	if (m->outside.node->is_source && outside_is_ending(&m->outside) &&
	    atomic_load(&l->state) == NATS_LINK_READY && !natsConnection_IsClosed(l->connection)) {
		nats_link_enter();
		acknowledge_read(m);
		nats_link_leave();
		nats_link_process(l, false);
		if (!atomic_load(&l->want_write))
			end_gently(l);
	}
	forget_unread(&m->js);
}
