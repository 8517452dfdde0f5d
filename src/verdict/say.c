/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of a process; see say.h. */
#include "verdict/say.h"

#include <inttypes.h>
#include <string.h>

static const struct {
	const char *text, *key;
} questions[VERDICT_QUESTIONS] = {
	[VERDICT_FIRST] = { "first error", "first_error" },
	[VERDICT_FETCHED] = { "fetched it", "fetched" },
	[VERDICT_REACTED] = { "reacted", "reacted" },
	[VERDICT_TOLD] = { "told by its end", "told" },
	[VERDICT_PEER] = { "other side heard", "other_side_heard" },
	[VERDICT_SECOND] = { "second channel", "second_channel" },
	[VERDICT_REPEATED] = { "repeated it", "repeated" },
	[VERDICT_OTHERS] = { "stopped others", "stopped_others" },
	[VERDICT_FLOWED] = { "data flowed on", "flowed_on" },
};

static const char *const says[] = {
	[VERDICT_MOOT] = "-",
	[VERDICT_YES] = "yes",
	[VERDICT_NO] = "no",
	[VERDICT_UNSEEN] = "could not be seen",
};

static void end_text(const struct verdict_ended *e, char *text, size_t size)
{
	switch (e->how) {
	case VERDICT_END_STATUS: snprintf(text, size, "exit status %d", e->code); break;
	case VERDICT_END_SIGNAL:
		snprintf(text, size, "signal %d (SIG%s)", e->code,
			 sigabbrev_np(e->code) ? sigabbrev_np(e->code) : "?");
		break;
	case VERDICT_END_RUNS: snprintf(text, size, "still runs"); break;
	default: snprintf(text, size, "ended without exit()"); break;
	}
}

void verdict_say_text(FILE *out, const struct verdict_case *c, const struct verdict *v)
{
	const struct verdict_facts *f = c->facts;
	char end[64];

	end_text(&c->ended, end, sizeof(end));
	fprintf(out, "busbar verdict: %s: process %u (%s), %s\n", verdict_word(v->word), f->pid,
		f->program, end);
	for (unsigned i = 0; i < VERDICT_QUESTIONS; i++) {
		const struct verdict_answer *a = &v->answers[i];

		/* What does not apply is left out. */
		if (a->says != VERDICT_MOOT)
			fprintf(out, "  %-17s %s: %s\n", questions[i].text, says[a->says], a->evidence);
	}
	if (f->not_followed)
		fprintf(out, "  %u queue pairs were not followed: at most %d at the same time are\n",
			f->not_followed, VERDICT_QPS);
}

static void put_string(FILE *out, const char *s)
{
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			fprintf(out, "\\u%04x", (unsigned char)*s);
		else
			putc(*s, out);
	}
	putc('"', out);
}

/* "told_late": without blanks, so that scripts need no quotes. */
static void put_word(FILE *out, const char *word)
{
	putc('"', out);
	for (; *word; word++)
		putc(*word == ' ' ? '_' : *word, out);
	putc('"', out);
}

static void put_error(FILE *out, const struct verdict_facts *f)
{
	static const char *const channels[] = {
		[VERDICT_COMPLETION] = "completion", [VERDICT_FLUSH] = "completion",
		[VERDICT_EVENT] = "event",           [VERDICT_REFUSAL] = "refused_post",
		[VERDICT_CONNECTION] = "connection",
	};
	const struct verdict_error *e = verdict_first(f);

	if (!e)
		return;
	fprintf(out,
		",\"error\":{\"channel\":\"%s\",\"code\":%u,\"vendor\":%u,\"queue_pair\":%u,\"wr_id\":%" PRIu64
		",\"time\":%.6f",
		channels[e - f->errors], e->code, e->vendor, e->qp, e->request.wr_id,
		(double)(e->at_ns - f->start_ns) / 1e9);
	if (e->request_known)
		fprintf(out, ",\"opcode\":\"%s\",\"bytes\":%" PRIu64, verdict_opcode(e->request.opcode),
			e->request.bytes);
	putc('}', out);
}

void verdict_say_json(FILE *out, const struct verdict_case *c, const struct verdict *v)
{
	static const char *const answers[] = {
		[VERDICT_MOOT] = "does_not_apply",
		[VERDICT_YES] = "yes",
		[VERDICT_NO] = "no",
		[VERDICT_UNSEEN] = "could_not_be_seen",
	};
	const struct verdict_facts *f = c->facts;

	fprintf(out, "{\"verdict\":");
	put_word(out, verdict_word(v->word));
	fprintf(out, ",\"pid\":%u,\"program\":", f->pid);
	put_string(out, f->program);
	if (c->ended.how == VERDICT_END_STATUS || c->ended.how == VERDICT_END_SIGNAL)
		fprintf(out, ",\"%s\":%d",
			c->ended.how == VERDICT_END_STATUS ? "exit_status" : "signal", c->ended.code);
	put_error(out, f);
	for (unsigned i = 0; i < VERDICT_QUESTIONS; i++) {
		fprintf(out, ",\"%s\":{\"answer\":\"%s\",\"evidence\":", questions[i].key,
			answers[v->answers[i].says]);
		put_string(out, v->answers[i].evidence);
		putc('}', out);
	}
	fprintf(out, ",\"queue_pairs_not_followed\":%u}\n", f->not_followed);
}
