/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdict in one word; see judge.h. */
#include "verdict/judge.h"

#define SECOND UINT64_C(1000000000)

static bool within(const struct verdict_facts *f, uint64_t at_ns, unsigned seconds)
{
	return at_ns <= f->since_ns || at_ns - f->since_ns <= seconds * SECOND;
}

static bool ended_by_signal(const struct verdict_ended *e)
{
	return e->how == VERDICT_END_SIGNAL || e->how == VERDICT_END_UNKNOWN;
}

/* It waits for messages of a process that is gone, and nothing told it. */
static bool left_behind(const struct verdict_case *c)
{
	return !c->facts->since_ns && !c->facts->peer_left_ns && c->peer && c->peer != c->facts &&
	       verdict_open_receives(c->facts) && c->peer_ended.how != VERDICT_END_RUNS &&
	       c->peer_ended.at_ns &&
	       c->peer_ended.at_ns + VERDICT_HUNG_S * SECOND <= c->ended.at_ns;
}

/* Nothing moved for long until a signal came, and something should have: requests wait, or the
 * queue pair with the error is still there. */
static bool hung(const struct verdict_case *c)
{
	const struct verdict_facts *f = c->facts;
	uint64_t last_ns = f->progress_ns > f->since_ns ? f->progress_ns : f->since_ns;

	if (!ended_by_signal(&c->ended) || !c->ended.at_ns)
		return false;
	if (c->ended.at_ns < last_ns + VERDICT_HUNG_S * SECOND)
		return false;
	return verdict_open_requests(f) || f->others_open > 0 || left_behind(c) ||
	       (f->since_ns && f->broken && !f->reaction);
}

/* The program gave the broken queue pair up in time, and others went on after that. */
static bool went_on(const struct verdict_facts *f)
{
	return f->reaction && within(f, f->reacted_ns, VERDICT_LATE_S) &&
	       f->others_after_ns > f->reacted_ns;
}

static bool told(const struct verdict_ended *e)
{
	return ended_by_signal(e) || (e->how == VERDICT_END_STATUS && e->code);
}

static enum verdict_word word_of(const struct verdict_case *c)
{
	const struct verdict_facts *f = c->facts;

	if (hung(c))
		return VERDICT_HUNG;
	if (!f->since_ns)
		return f->unfetched_ns ? VERDICT_NOT_SEEN : VERDICT_NO_ERROR;
	/* An event of a port or device alone breaks no queue pair. */
	if (f->flowed || (!f->broken && f->others_after_ns))
		return VERDICT_RECOVERED;
	if (went_on(f))
		return VERDICT_HANDLED;
	if (c->ended.how == VERDICT_END_RUNS)
		return VERDICT_UNDECIDED;
	if (!told(&c->ended))
		return VERDICT_HIDDEN;
	return within(f, c->ended.at_ns, VERDICT_LATE_S) ? VERDICT_HANDLED : VERDICT_TOLD_LATE;
}

void verdict_facts_clean(struct verdict_facts *f)
{
	f->program[sizeof(f->program) - 1] = '\0';
	/* A name must not steer a terminal, nor look like a report. */
	for (char *at = f->program; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	if (f->reaction > VERDICT_DISCONNECTED)
		f->reaction = VERDICT_NO_REACTION;
	f->exit_status &= 0xff;
	for (unsigned i = 0; i < VERDICT_CHANNELS; i++) {
		struct verdict_error *e = &f->errors[i];

		/* Any other byte is no bool. */
		e->receive = *(const unsigned char *)&e->receive == 1;
		e->request_known = *(const unsigned char *)&e->request_known == 1;
	}
}

void verdict_judge(const struct verdict_case *c, struct verdict *v)
{
	const struct verdict_facts *f = c->facts;

	*v = (struct verdict){ .word = word_of(c) };
	verdict_answers(c, v);
	/* Without an error few questions are left. */
	for (unsigned i = 0; i < VERDICT_QUESTIONS && !f->since_ns; i++)
		if (i != VERDICT_FIRST && i != VERDICT_PEER &&
		    !(i == VERDICT_FETCHED && f->unfetched_ns))
			verdict_answer(&v->answers[i], VERDICT_MOOT, "no error is known");
}
