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
/* Bytes of an answer to a question. */
#define ANSWER_MAX (1 << 20)
/* Bytes of a subject for an acknowledgement, at most. */
#define REPLY_MAX 800
/* Numbers of subscriptions. */
#define SID_ANSWERS 1
#define SID_MESSAGES 2
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

/* ---- of open(): the stream and the consumer ---- */

/* Publishes `body` (used up; NULL: none) and waits for the answer: an object of JSON, or NULL with
 * the reason in outside.why. */
static json_t *request(struct nats_node *m, const char *what, const char *name, json_t *body)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	char subject[512], reply[NATS_INBOX_SIZE + 2];
	struct nats_piece status;
	struct nats_frame f = { .op = NATS_PING };
	json_t *answer;
	int ret;

	json_decref(body);
	snprintf(subject, sizeof(subject), "$JS.API.%s.%s", what, name);
	snprintf(reply, sizeof(reply), "%s.q", m->js.inbox);
	ret = nats_publish(m, subject, reply, NULL, text ? text : "", text ? strlen(text) : 0);
	free(text);
	while (!ret && !(f.op == NATS_MSG && nats_piece_is(&f.subject, reply)))
		ret = nats_await(m, &f) ?: nats_take(m, &f);
	if (ret)
		return NULL;
	answer = f.data.len <= ANSWER_MAX ? json_loadb(f.data.at, f.data.len, 0, NULL) : NULL;
	if (json_is_object(answer))
		return answer;
	json_decref(answer);
	outside_fail(&m->outside, -EPROTO, nats_head_status(&f.head, &status) == CODE_UNAVAILABLE ?
						    "the server has no JetStream for the node" :
						    "an answer of JetStream cannot be read");
	return NULL;
}

/* The code of an error; 0: it is none. */
static int error_of(struct nats_node *m, const json_t *answer, const char *name)
{
	const json_t *error = json_object_get(answer, "error");
	const char *text = json_string_value(json_object_get(error, "description"));
	struct nats_piece piece = { text ? text : "it is refused", 0 };
	char shown[120];

	if (!error)
		return 0;
	piece.len = strlen(piece.at);
	outside_fail(&m->outside, -EACCES, "%.100s: %s", name,
		     nats_piece_shown(&piece, shown, sizeof(shown)));
	return (int)json_integer_value(json_object_get(error, "code")) ?: -1;
}

/* As request(), with an error for an answer that is one, but for *missing if that is asked for. */
static json_t *ask(struct nats_node *m, const char *what, const char *name, json_t *body,
		   bool *missing)
{
	json_t *answer = request(m, what, name, body);
	int code = answer ? error_of(m, answer, name) : 0;

	if (missing)
		*missing = code == STATUS_NOT_FOUND;
	if (!code)
		return answer;
	json_decref(answer);
	return NULL;
}

static json_t *make_stream(struct nats_node *m)
{
	json_t *subjects = json_array();

	if (m->sub_count)
		json_array_append_new(subjects, json_string(m->sub[0]));
	if (m->pub_count && !(m->sub_count && !strcmp(m->sub[0], m->pub[0])))
		json_array_append_new(subjects, json_string(m->pub[0]));
	return ask(m, "STREAM.CREATE", m->js.stream,
		   json_pack("{ss so ss ss ss sI si si si}", "name", m->js.stream, "subjects", subjects,
			     "retention", "limits", "discard", "old", "storage",
			     m->js.memory ? "memory" : "file", "max_bytes",
			     (json_int_t)m->js.max_bytes, "max_msgs", -1, "max_consumers", -1,
			     "num_replicas", 1), NULL);
}

static int find_stream(struct nats_node *m)
{
	bool missing;
	json_t *info = ask(m, "STREAM.INFO", m->js.stream, NULL, &missing);
	const char *created;
	json_int_t last;

	if (!info && missing && m->js.create)
		info = make_stream(m);
	if (!info)
		return -EIO;
	created = json_string_value(json_object_get(info, "created"));
	last = json_integer_value(json_object_get(json_object_get(info, "state"), "last_seq"));
	/* Another stream with this name has other messages. A server that was killed can have lost
	 * the last ones, and then gives their numbers to others. */
	if (!created || strcmp(created, m->js.created))
		m->js.highest = 0;
	m->js.highest = MIN(m->js.highest, (uint64_t)MAX(last, (json_int_t)0));
	snprintf(m->js.created, sizeof(m->js.created), "%s", created ? created : "");
	json_decref(info);
	return 0;
}

static json_t *make_consumer(struct nats_node *m, const char *name)
{
	json_t *config = json_pack("{ss ss ss sI ss ss si}", "durable_name", m->js.durable,
				   "deliver_policy", "all", "ack_policy", "explicit", "ack_wait",
				   (json_int_t)ACK_WAIT_NS, "filter_subject", m->sub[0],
				   "replay_policy", "instant", "max_ack_pending", ACK_PENDING_MAX);

	return ask(m, "CONSUMER.DURABLE.CREATE", name,
		   json_pack("{ss so}", "stream_name", m->js.stream, "config", config), NULL);
}

static int check_consumer(struct nats_node *m, const json_t *config)
{
	const char *policy = json_string_value(json_object_get(config, "ack_policy"));
	const char *subject = json_string_value(json_object_get(config, "deliver_subject"));
	const char *wrong = subject && *subject ? "it pushes messages, and the node pulls them" :
			    !policy || strcmp(policy, "explicit") ?
				    "its acknowledgement is not explicit" : NULL;

	return wrong ? outside_fail(&m->outside, -EINVAL, "the consumer %.100s: %s", m->js.durable,
				    wrong) : 0;
}

static int find_consumer(struct nats_node *m)
{
	char name[420];
	bool missing;
	json_t *info;
	const json_t *config;
	int ret;

	snprintf(name, sizeof(name), "%s.%s", m->js.stream, m->js.durable);
	info = ask(m, "CONSUMER.INFO", name, NULL, &missing);
	if (!info && missing)
		info = make_consumer(m, name);
	if (!info)
		return -EIO;
	config = json_object_get(info, "config");
	ret = check_consumer(m, config);
	m->js.pull_from_ns = 0;
	if (json_integer_value(json_object_get(info, "num_ack_pending")) > 0) {
		json_int_t wait_ns = json_integer_value(json_object_get(config, "ack_wait"));

		/* Messages that a lost connection has swallowed come again after this time. Newer
		 * ones would overtake them. */
		wait_ns = MIN(MAX(wait_ns, (json_int_t)0), (json_int_t)ACK_WAIT_MAX_NS);
		m->js.pull_from_ns = clock_now_ns() + (uint64_t)wait_ns + (uint64_t)NS_PER_S / 10;
	}
	json_decref(info);
	return ret;
}

int nats_jetstream_setup(struct nats_node *m)
{
	bool reads = m->outside.node->is_source;
	uint64_t random;
	int ret;

	if (!m->has_heads)
		return outside_fail(&m->outside, -EPROTO, "the server is too old for JetStream");
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	m->js.awaited = 0;
	m->js.away_ns = m->js.pause_ns = 0;
	snprintf(m->js.inbox, sizeof(m->js.inbox), "_INBOX.%016llx", (unsigned long long)random);
	snprintf(m->js.consumer_inbox, sizeof(m->js.consumer_inbox), "%sm", m->js.inbox);
	ret = nats_put_line(m, "SUB %s.* %d", m->js.inbox, SID_ANSWERS) ?: find_stream(m);
	if (!ret && reads)
		ret = find_consumer(m) ?: nats_put_line(m, "SUB %s %d", m->js.consumer_inbox, SID_MESSAGES);
	return ret;
}

/* ---- publishing ---- */

int nats_jetstream_publish(struct nats_node *m, const struct outbox_message *msg)
{
	char reply[NATS_INBOX_SIZE + 24], head[NATS_JETSTREAM_HEAD_MAX];

	if (!*m->js.id) {
		uint64_t random[2] = { 0 };

		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		snprintf(m->js.id, sizeof(m->js.id), "%016llx%016llx",
			 (unsigned long long)random[0], (unsigned long long)random[1]);
	}
	snprintf(reply, sizeof(reply), "%s.%llu", m->js.inbox, (unsigned long long)msg->tag);
	/* By this id a stream recognises a message that it has stored. */
	snprintf(head, sizeof(head), "NATS/1.0\r\nNats-Msg-Id: %s-%llu\r\n\r\n", m->js.id,
		 (unsigned long long)msg->tag);
	return nats_publish(m, m->pub[0], reply, head, msg->data, msg->len);
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

static int take_answer(struct nats_node *m, const struct nats_frame *f)
{
	uint64_t tag = nats_subject_tag(&f->subject);
	struct nats_answer answer;
	struct nats_piece text;

	if (!tag)
		return 0;
	if (nats_head_status(&f->head, &text) == CODE_UNAVAILABLE)
		return await_stream(m, "no stream takes the subject");
	if (!nats_answer_read(&answer, f->data.at, f->data.len))
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

/* ---- reading ---- */

int nats_jetstream_start(struct nats_node *m)
{
	m->js.highest = 0;
	m->js.created[0] = 0;
	if (m->js.enabled && m->outside.node->is_source)
		m->js.taken = calloc(NATS_REMEMBERED / 8, 1);
	return m->js.enabled && m->outside.node->is_source && !m->js.taken ? -ENOMEM : 0;
}

void nats_jetstream_stop(struct nats_node *m)
{
	free(m->js.taken);
	m->js.taken = NULL;
}

/* Numbers from `first` on, NATS_REMEMBERED at most, are those of messages that were not taken. */
static void forget_taken(struct nats_jetstream *js, uint64_t first, uint64_t count)
{
	for (; count && first % 8; first++, count--)
		js->taken[first % NATS_REMEMBERED / 8] &= (uint8_t)~(1u << first % 8);
	/* A server may jump with each message. */
	while (count >= 8) {
		uint64_t at = first % NATS_REMEMBERED / 8;
		uint64_t bytes = MIN(count / 8, NATS_REMEMBERED / 8 - at);

		memset(js->taken + at, 0, bytes);
		first += 8 * bytes;
		count -= 8 * bytes;
	}
	for (; count; first++, count--)
		js->taken[first % NATS_REMEMBERED / 8] &= (uint8_t)~(1u << first % 8);
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
	if (number > js->highest + 1)
		forget_taken(js, js->highest + 1,
			     MIN(number - js->highest - 1, (uint64_t)NATS_REMEMBERED));
	*byte |= bit;
	js->highest = MAX(js->highest, number);
	return false;
}

/* Acknowledges what the path has read. */
static int acknowledge_read(struct nats_node *m)
{
	struct nats_jetstream *js = &m->js;
	uint64_t read = outside_samples_read(&m->outside);
	int ret = 0;

	while (!ret && js->unread_count && js->unread[js->unread_first].put <= read) {
		ret = nats_publish(m, js->unread[js->unread_first].reply, NULL, NULL, "+ACK", 4);
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

static int take_status(struct nats_node *m, const struct nats_frame *f)
{
	char shown[100];
	struct nats_piece text;
	int code = nats_head_status(&f->head, &text);

	if (!code)
		return 0;
	nats_piece_shown(&text, shown, sizeof(shown));
	m->js.awaited = 0;
	/* A server that refuses at once is not asked all the time. */
	m->js.pull_from_ns = MAX(m->js.pull_from_ns, m->js.asked_ns + PAUSE_NS);
	if (code == STATUS_NOT_FOUND || code == STATUS_TIMEOUT)
		return 0;
	/* A limit of the server is exceeded, which passes after a while. */
	if (code == STATUS_CONFLICT && strcasestr(shown, "exceeded"))
		return 0;
	return outside_fail(&m->outside, -EIO, "the consumer %.100s: %d%s", m->js.durable, code,
			    shown);
}

static int take_message(struct nats_node *m, const struct nats_frame *f)
{
	struct nats_jetstream *js = &m->js;
	/* A message of a stream has a subject for its acknowledgement. */
	uint64_t number = nats_reply_number(&f->reply);
	unsigned at;

	if (!number)
		return take_status(m, f);
	js->awaited--;
	/* The server has sent more than was asked for: it will send the message again. */
	if (js->unread_count == NATS_UNREAD_MAX || f->reply.len > REPLY_MAX)
		return 0;
	if (is_duplicate(js, number))
		node_figure_add(m->outside.node, NATS_DUPLICATES, 1);
	else
		nats_received(m, f);
	at = (js->unread_first + js->unread_count) % NATS_UNREAD_MAX;
	js->unread[at].put = outside_samples_put(&m->outside);
	js->unread[at].reply = strndup(f->reply.at, f->reply.len);
	if (!js->unread[at].reply)
		return outside_fail(&m->outside, -ENOMEM, "%s", strerror(ENOMEM));
	js->unread_count++;
	return 0;
}

int nats_jetstream_message(struct nats_node *m, const struct nats_frame *f)
{
	if (f->sid == SID_ANSWERS)
		return take_answer(m, f);
	return m->outside.node->is_source ? take_message(m, f) : 0;
}

/* Asks for more messages. */
static int pull(struct nats_node *m)
{
	uint64_t now = clock_now_ns();
	char subject[512], body[80];
	int ret;

	if (now < m->js.pull_from_ns)
		return 0;
	if (now - m->js.asked_ns > (uint64_t)(EXPIRES_NS + SLACK_NS))
		m->js.awaited = 0;
	/* Asks only for as many messages as find room. */
	if (m->js.awaited > BATCH_LOW ||
	    m->js.unread_count + MAX(m->js.awaited, INT64_C(0)) + BATCH > NATS_UNREAD_MAX)
		return 0;
	snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", m->js.stream,
		 m->js.durable);
	snprintf(body, sizeof(body), "{\"batch\":%d,\"expires\":%lld}", BATCH,
		 (long long)EXPIRES_NS);
	ret = nats_publish(m, subject, m->js.consumer_inbox, NULL, body, strlen(body));
	if (ret)
		return ret;
	m->js.awaited = MAX(m->js.awaited, INT64_C(0)) + BATCH;
	m->js.asked_ns = now;
	return 0;
}

int nats_jetstream_turn(struct nats_node *m)
{
	return m->outside.node->is_source ? acknowledge_read(m) ?: pull(m) : 0;
}

void nats_jetstream_close(struct nats_node *m)
{
	struct outside *o = &m->outside;

	if (o->node->is_source && outside_is_ending(o) && !acknowledge_read(m) &&
	    !stream_flush(&m->stream, NULL) && !stream_buffer_filled(&m->stream.out))
		outside_stream_end_gently(&m->stream);
	forget_unread(&m->js);
}
