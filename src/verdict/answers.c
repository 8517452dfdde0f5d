/* SPDX-License-Identifier: BSD-2-Clause */
/* The questions behind the first; see judge.h. Times are relative to the first error. */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verdict/judge.h"

static struct verdict_time later(const struct verdict_facts *f, uint64_t at_ns)
{
	return verdict_between(f->since_ns, at_ns);
}

static void answer_fetched(const struct verdict_case *c, struct verdict_answer *a)
{
	const struct verdict_facts *f = c->facts;
	const struct verdict_error *e = &f->errors[VERDICT_COMPLETION];

	if (!e->at_ns && f->errors[VERDICT_FLUSH].at_ns)
		verdict_answer(a, VERDICT_NO,
			       "only flushes of queue pair 0x%x were fetched, no completion that names the cause",
			       f->errors[VERDICT_FLUSH].qp);
	else if (!e->at_ns && verdict_first(f) && !verdict_first(f)->qp)
		verdict_answer(a, VERDICT_MOOT, "it belongs to no queue pair");
	else if (!e->at_ns && verdict_first(f) &&
		 verdict_first_channel(f) == VERDICT_CONNECTION)
		verdict_answer(a, VERDICT_MOOT, "a connection that is not made has no completions");
	else if (!e->at_ns)
		verdict_answer(a, VERDICT_NO,
			       "no completion with an error was fetched from a completion queue");
	else if (f->flushes_behind)
		verdict_answer(a, VERDICT_UNSEEN,
			       "one call fetched it with %u flushes behind it; which of them the program looked at cannot be seen",
			       f->flushes_behind);
	else
		verdict_answer(a, VERDICT_YES, "fetched %s after the first error, without a flush behind it in the same call",
			       later(f, e->at_ns).text);
}

static void answer_reacted(const struct verdict_case *c, struct verdict_answer *a)
{
	static const char *const ways[] = {
		[VERDICT_NO_REACTION] = "",
		[VERDICT_DESTROYED] = "destroyed",
		[VERDICT_MOVED] = "moved to another state",
		[VERDICT_DISCONNECTED] = "disconnected",
	};
	const struct verdict_facts *f = c->facts;
	char posts[160] = "nothing was posted to it after that";

	if (f->posts_broken)
		snprintf(posts, sizeof(posts),
			 "the program posted %" PRIu64 " more requests to it, none of which can succeed; %" PRIu64
			 " flushes were fetched",
			 f->posts_broken, f->flushes_broken);
	if (!f->broken)
		verdict_answer(a, VERDICT_MOOT, "the error belongs to no queue pair");
	else if (f->reaction)
		verdict_answer(a, VERDICT_YES, "queue pair 0x%x was %s %s after the first error; %s",
			       f->broken, ways[f->reaction], later(f, f->reacted_ns).text, posts);
	else
		verdict_answer(a, VERDICT_NO,
			       "queue pair 0x%x was not destroyed, moved or disconnected; %s", f->broken,
			       posts);
}

static void answer_told(const struct verdict_case *c, struct verdict_answer *a)
{
	const struct verdict_ended *e = &c->ended;
	struct verdict_time t = later(c->facts, e->at_ns);

	switch (e->how) {
	case VERDICT_END_STATUS:
		if (e->code)
			verdict_answer(a, VERDICT_YES, "exit status %d, %s after the first error",
				       e->code, t.text);
		else
			verdict_answer(a, VERDICT_NO, "exit status 0, %s after the first error",
				       t.text);
		break;
	case VERDICT_END_SIGNAL:
		verdict_answer(a, VERDICT_YES, "signal %d (SIG%s), %s after the first error", e->code,
			       sigabbrev_np(e->code) ? sigabbrev_np(e->code) : "?", t.text);
		break;
	case VERDICT_END_RUNS:
		verdict_answer(a, VERDICT_UNSEEN, "the process still runs, %s after the first error",
			       t.text);
		break;
	default:
		verdict_answer(a, VERDICT_UNSEEN,
			       "it ended without exit(), by a signal that is not known");
	}
}

/* The peer's process ran under the same call. */
static void answer_peer_known(const struct verdict_case *c, struct verdict_answer *a)
{
	const struct verdict_facts *f = c->facts, *p = c->peer;
	uint64_t heard_ns = p->since_ns ? p->since_ns : p->peer_left_ns;
	uint64_t open = verdict_open_receives(p);

	if (p == f)
		verdict_answer(a, VERDICT_MOOT, "both ends of the connection are in this process");
	else if (heard_ns)
		verdict_answer(a, VERDICT_YES, "process %u (%s) %s, %s %s the first error here", p->pid,
			       p->program, p->since_ns ? "had an error" : "read the end of the connection",
			       heard_ns < f->since_ns ? verdict_between(heard_ns, f->since_ns).text :
							later(f, heard_ns).text,
			       heard_ns < f->since_ns ? "before" : "after");
	else if (c->peer_ended.how != VERDICT_END_RUNS && c->peer_ended.at_ns &&
		 c->peer_ended.at_ns <= f->since_ns)
		verdict_answer(a, VERDICT_MOOT, "process %u (%s) at the other side had ended %s before",
			       p->pid, p->program,
			       verdict_between(c->peer_ended.at_ns, f->since_ns).text);
	else
		verdict_answer(a, VERDICT_NO,
			       "process %u (%s) at the other side was told of no error and read no event of it; %" PRIu64
			       " of its receives have not completed",
			       p->pid, p->program, open);
}

/* Without an error of its own the process may be the one that heard nothing. */
static void answer_left_behind(const struct verdict_case *c, struct verdict_answer *a)
{
	const struct verdict_facts *f = c->facts, *p = c->peer;
	uint64_t open = verdict_open_receives(f);

	if (!open || f->peer_left_ns)
		verdict_answer(a, VERDICT_MOOT, "%s", open ? "the end of the connection was read" :
							    "no receives were left");
	else if (!p)
		verdict_answer(a, VERDICT_UNSEEN,
			       "%" PRIu64
			       " receives were left, and no error or event told why; whether the peer was gone is for the report of the peer's process",
			       open);
	else if (p->since_ns && p->since_ns <= c->ended.at_ns)
		verdict_answer(a, VERDICT_NO,
			       "%" PRIu64
			       " receives were left when process %u (%s) at the other side had its error, and no error or event told this process",
			       open, p->pid, p->program);
	else if ((c->peer_ended.how == VERDICT_END_SIGNAL ||
		  c->peer_ended.how == VERDICT_END_UNKNOWN) &&
		 c->peer_ended.at_ns <= c->ended.at_ns)
		verdict_answer(a, VERDICT_NO,
			       "%" PRIu64
			       " receives were left when a signal ended process %u (%s) at the other side, and no error or event told this process",
			       open, p->pid, p->program);
	else
		verdict_answer(a, VERDICT_MOOT,
			       "%" PRIu64 " receives were left, and process %u (%s) at the other side had no error before",
			       open, p->pid, p->program);
}

static void answer_peer(const struct verdict_case *c, struct verdict_answer *a)
{
	uint64_t open = verdict_open_receives(c->facts);

	if (!c->facts->since_ns)
		answer_left_behind(c, a);
	else if (verdict_first_channel(c->facts) == VERDICT_CONNECTION)
		verdict_answer(a, VERDICT_MOOT, "there was no connection");
	else if (c->peer)
		answer_peer_known(c, a);
	else
		verdict_answer(a, VERDICT_UNSEEN,
			       "the process at the other side is not under this verdict, its own report would say; %" PRIu64
			       " receives of this process have not completed",
			       open);
}

static void answer_second(const struct verdict_case *c, struct verdict_answer *a)
{
	const struct verdict_facts *f = c->facts;
	uint64_t at_ns = f->errors[VERDICT_EVENT].at_ns;
	const char *what = "an asynchronous event";

	if (!at_ns || (f->errors[VERDICT_CONNECTION].at_ns &&
		       f->errors[VERDICT_CONNECTION].at_ns < at_ns)) {
		at_ns = f->errors[VERDICT_CONNECTION].at_ns ? f->errors[VERDICT_CONNECTION].at_ns :
							      at_ns;
		what = "a failed connection";
	}
	if (f->peer_left_ns && (!at_ns || f->peer_left_ns < at_ns)) {
		at_ns = f->peer_left_ns;
		what = "RDMA_CM_EVENT_DISCONNECTED";
	}
	if (!at_ns)
		verdict_answer(a, VERDICT_NO,
			       "%" PRIu64 " asynchronous events and %" PRIu64
			       " events of rdma_cm were read, none of them told of an error",
			       f->events, f->cm_events);
	else if (at_ns < f->since_ns)
		verdict_answer(a, VERDICT_YES, "%s was read %s before the first error", what,
			       verdict_between(at_ns, f->since_ns).text);
	else if (at_ns == f->since_ns)
		verdict_answer(a, VERDICT_YES, "%s is the first error", what);
	else
		verdict_answer(a, VERDICT_YES, "%s was read %s after the first error", what,
			       later(f, at_ns).text);
}

static void answer_repeated(const struct verdict_case *c, struct verdict_answer *a)
{
	const struct verdict_facts *f = c->facts;
	const struct verdict_error *e = &f->errors[VERDICT_COMPLETION];

	if (!e->at_ns || e->receive)
		verdict_answer(a, VERDICT_MOOT, "no request is known to have failed");
	else if (!e->request_known)
		verdict_answer(a, VERDICT_UNSEEN,
			       "the request that failed is not among the last %d of its queue pair",
			       VERDICT_REQUESTS);
	else if (!f->repeats)
		verdict_answer(a, VERDICT_NO,
			       "no %s of %" PRIu64 " bytes to the same address was posted to a queue pair that works",
			       verdict_opcode(e->request.opcode), e->request.bytes);
	else
		verdict_answer(a, VERDICT_YES,
			       "%s of %" PRIu64 " bytes to 0x%" PRIx64
			       " was posted again on queue pair 0x%x, first %s after the first error, %" PRIu64
			       " in all%s",
			       verdict_opcode(e->request.opcode), e->request.bytes,
			       e->request.remote_addr, f->repeat_qp, later(f, f->repeat_ns).text,
			       f->repeats,
			       e->request.opcode == IBV_WR_RDMA_READ ?
				       "; for a READ that is harmless" :
				       "; it may have been carried out twice: nothing asked whether the first was");
}

static void answer_others(const struct verdict_case *c, struct verdict_answer *a)
{
	const struct verdict_facts *f = c->facts;
	const struct verdict_error *e = verdict_first(f);
	uint64_t gap_ns = f->others_gap_ns;
	bool open = f->others_open > 0;

	if (open && c->ended.at_ns > f->others_last_ns &&
	    c->ended.at_ns - f->others_last_ns > gap_ns)
		gap_ns = c->ended.at_ns - f->others_last_ns;
	if (!f->broken)
		verdict_answer(a, VERDICT_MOOT, "the error belongs to no queue pair");
	else if (f->others_good)
		verdict_answer(a, VERDICT_NO,
			       "%" PRIu64
			       " good completions of other queue pairs followed; the longest time without any while requests waited is %s",
			       f->others_good, verdict_between(0, gap_ns).text);
	else if (open)
		verdict_answer(a, VERDICT_YES,
			       "%" PRId64 " requests of other queue pairs waited, none completed in %s",
			       f->others_open, verdict_between(0, gap_ns).text);
	else if (e && e->others)
		verdict_answer(a, VERDICT_UNSEEN, "%u other queue pairs had no requests that waited",
			       e->others);
	else
		verdict_answer(a, VERDICT_MOOT, "there were no other queue pairs");
}

static void answer_flowed(const struct verdict_case *c, struct verdict_answer *a)
{
	const struct verdict_facts *f = c->facts;

	if (f->flowed)
		verdict_answer(a, VERDICT_YES,
			       "%" PRIu64
			       " good completions on queue pairs that were made or reset after it, the first %s after the first error",
			       f->flowed, later(f, f->flowed_ns).text);
	else if (!f->broken && f->others_after_ns)
		verdict_answer(a, VERDICT_YES,
			       "the error belongs to no queue pair, and good completions followed, the last %s after the first error",
			       later(f, f->others_after_ns).text);
	else
		verdict_answer(a, VERDICT_NO,
			       "no good completion on a queue pair that was made or reset after it");
}

void verdict_answers(const struct verdict_case *c, struct verdict *v)
{
	static void (*const answers[VERDICT_QUESTIONS])(const struct verdict_case *,
							struct verdict_answer *) = {
		[VERDICT_FIRST] = verdict_first_answer, [VERDICT_FETCHED] = answer_fetched,
		[VERDICT_REACTED] = answer_reacted,     [VERDICT_TOLD] = answer_told,
		[VERDICT_PEER] = answer_peer,           [VERDICT_SECOND] = answer_second,
		[VERDICT_REPEATED] = answer_repeated,   [VERDICT_OTHERS] = answer_others,
		[VERDICT_FLOWED] = answer_flowed,
	};

	for (unsigned i = 0; i < VERDICT_QUESTIONS; i++)
		answers[i](c, &v->answers[i]);
}
