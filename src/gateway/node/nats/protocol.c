/* SPDX-License-Identifier: BSD-2-Clause */
/* See protocol.h. */
#include "gateway/node/nats/protocol.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "util/container_of.h"
#include "util/num.h"

/* One more than the most words of a valid line. */
#define WORDS_MAX 7
#define VERSION "NATS/1.0"
#define TAG_DIGITS_MAX 18

/* ---- words ---- */

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* The words of a line; more than WORDS_MAX are WORDS_MAX. */
static unsigned split(const struct nats_piece *line, struct nats_piece words[WORDS_MAX])
{
	const char *at = line->at, *end = at + line->len;
	unsigned count = 0;

	while (count < WORDS_MAX) {
		while (at < end && is_space(*at))
			at++;
		if (at == end)
			break;
		words[count].at = at;
		while (at < end && !is_space(*at))
			at++;
		words[count].len = (size_t)(at - words[count].at);
		count++;
	}
	return count;
}

static bool read_number(const struct nats_piece *p, uint64_t *out)
{
	const char *end = p->at + p->len;

	return p->len && *p->at >= '0' && *p->at <= '9' && num_parse_u64(p->at, end, out) == end;
}

bool nats_piece_is(const struct nats_piece *p, const char *text)
{
	return p->len == strlen(text) && !memcmp(p->at, text, p->len);
}

const char *nats_piece_shown(const struct nats_piece *p, char *buf, size_t size)
{
	size_t len = MIN(p->len, size - 1);

	for (size_t i = 0; i < len; i++)
		buf[i] = p->at[i] >= ' ' && p->at[i] <= '~' ? p->at[i] : ' ';
	buf[len] = 0;
	return buf;
}

/* ---- frames ---- */

/* "MSG subject sid [reply] bytes", "HMSG subject sid [reply] bytes-of-the-head bytes" */
static int read_message(struct nats_frame *f, const struct nats_piece words[], unsigned count,
			bool has_head, const struct nats_piece *rest)
{
	unsigned numbers = has_head ? 2 : 1, args = count - numbers;
	uint64_t size, head = 0;

	if (count < numbers + 3 || args > 4 || !read_number(&words[2], &f->sid) ||
	    !read_number(&words[count - 1], &size) || size > NATS_MESSAGE_MAX ||
	    (has_head && !read_number(&words[count - 2], &head)) || head > size)
		return -EPROTO;
	if (rest->len < size + 2)
		return 0;
	if (memcmp(rest->at + size, "\r\n", 2))
		return -EPROTO;
	f->op = NATS_MSG;
	f->subject = words[1];
	if (args == 4)
		f->reply = words[3];
	f->head = (struct nats_piece){ rest->at, head };
	f->data = (struct nats_piece){ rest->at + head, size - head };
	f->size += size + 2;
	return 1;
}

static struct nats_piece without_quotes(struct nats_piece p)
{
	if (p.len >= 2 && *p.at == '\'' && p.at[p.len - 1] == '\'')
		p = (struct nats_piece){ p.at + 1, p.len - 2 };
	return p;
}

static int read_line(struct nats_frame *f, const struct nats_piece *line,
		     const struct nats_piece *rest)
{
	static const struct {
		const char *name;
		enum nats_op op;
	} ops[] = { { "MSG", NATS_MSG }, { "HMSG", NATS_MSG }, { "PING", NATS_PING },
		    { "PONG", NATS_PONG }, { "INFO", NATS_INFO }, { "+OK", NATS_OK },
		    { "-ERR", NATS_ERR } };
	struct nats_piece words[WORDS_MAX];
	unsigned count = split(line, words), i;

	for (i = 0; count && i < ARRAY_SIZE(ops); i++)
		if (words[0].len == strlen(ops[i].name) &&
		    !strncasecmp(words[0].at, ops[i].name, words[0].len))
			break;
	if (!count || i == ARRAY_SIZE(ops))
		return -EPROTO;
	f->op = ops[i].op;
	if (f->op == NATS_MSG)
		return read_message(f, words, count, i == 1, rest);
	if (count > 1)
		f->data = (struct nats_piece){ words[1].at,
					       (size_t)(line->at + line->len - words[1].at) };
	if (f->op == NATS_ERR)
		f->data = without_quotes(f->data);
	return 1;
}

int nats_frame_read(struct nats_frame *f, const char *at, size_t len)
{
	const char *end = memchr(at, '\n', MIN(len, (size_t)NATS_LINE_MAX));
	struct nats_piece line, rest;

	if (!end)
		return len < NATS_LINE_MAX ? 0 : -EPROTO;
	rest = (struct nats_piece){ end + 1, len - (size_t)(end + 1 - at) };
	line = (struct nats_piece){ at, (size_t)(end - at) };
	if (line.len && line.at[line.len - 1] == '\r')
		line.len--;
	*f = (struct nats_frame){ .size = (size_t)(end + 1 - at),
				  .subject.at = at, .reply.at = at, .head.at = at, .data.at = at };
	return read_line(f, &line, &rest);
}

/* ---- JetStream ---- */

int nats_head_status(const struct nats_piece *head, struct nats_piece *text)
{
	size_t version = strlen(VERSION);
	const char *end = memchr(head->at, '\r', head->len);
	struct nats_piece line, words[WORDS_MAX];
	uint64_t status;

	*text = (struct nats_piece){ head->at, 0 };
	if (head->len < version || memcmp(head->at, VERSION, version) || !end)
		return 0;
	line = (struct nats_piece){ head->at + version, (size_t)(end - head->at) - version };
	if (!split(&line, words) || !read_number(&words[0], &status) || status > 999)
		return 0;
	text->at = words[0].at + words[0].len;
	text->len = (size_t)(end - text->at);
	return (int)status;
}

/* "$JS.ACK.STREAM.CONSUMER.DELIVERED.NUMBER.x.y.z", with two more words in front of STREAM, and
 * others behind, for streams of other domains. */
uint64_t nats_reply_number(const struct nats_piece *reply)
{
	static const char prefix[] = "$JS.ACK.";
	const char *at = reply->at, *end = at + reply->len;
	struct nats_piece words[16];
	unsigned count = 0;
	uint64_t number;

	if (reply->len < strlen(prefix) || memcmp(at, prefix, strlen(prefix)))
		return 0;
	for (; at < end && count < ARRAY_SIZE(words); count++) {
		const char *dot = memchr(at, '.', (size_t)(end - at));

		words[count] = (struct nats_piece){ at, (size_t)((dot ? dot : end) - at) };
		at = dot ? dot + 1 : end;
	}
	if (at < end || (count != 9 && count < 11))
		return 0;
	return read_number(&words[count == 9 ? 5 : 7], &number) ? number : 0;
}

uint64_t nats_subject_tag(const struct nats_piece *subject)
{
	const char *dot = memrchr(subject->at, '.', subject->len);
	struct nats_piece digits;
	uint64_t tag;

	if (!dot)
		return 0;
	digits = (struct nats_piece){ dot + 1, (size_t)(subject->at + subject->len - dot - 1) };
	return digits.len <= TAG_DIGITS_MAX && read_number(&digits, &tag) ? tag : 0;
}
