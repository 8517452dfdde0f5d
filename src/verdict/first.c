/* SPDX-License-Identifier: BSD-2-Clause */
/* Which error was the first, and what is known of it; see judge.h. */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#include "verdict/judge.h"

/* The completion that names the cause counts, also if a flush behind it was fetched before. */
static bool is_behind(const struct verdict_facts *f, unsigned channel)
{
	return channel == VERDICT_FLUSH && f->errors[VERDICT_COMPLETION].at_ns &&
	       f->errors[VERDICT_COMPLETION].qp == f->errors[VERDICT_FLUSH].qp;
}

const struct verdict_error *verdict_first(const struct verdict_facts *f)
{
	const struct verdict_error *first = NULL;

	for (unsigned i = 0; i < VERDICT_CHANNELS; i++)
		if (f->errors[i].at_ns && !is_behind(f, i) &&
		    (!first || f->errors[i].at_ns < first->at_ns))
			first = &f->errors[i];
	return first;
}

enum verdict_channel verdict_first_channel(const struct verdict_facts *f)
{
	return (enum verdict_channel)(verdict_first(f) - f->errors);
}

uint64_t verdict_open_requests(const struct verdict_facts *f)
{
	uint64_t open = 0;

	for (unsigned i = 0; i < VERDICT_QPS; i++) {
		const struct verdict_qp *qp = &f->qps[i];

		if (qp->number && !qp->gone_ns && qp->signaled > qp->done)
			open += qp->signaled - qp->done;
	}
	return open;
}

uint64_t verdict_open_receives(const struct verdict_facts *f)
{
	uint64_t open = f->receives_lost;

	for (unsigned i = 0; i < VERDICT_QPS; i++) {
		const struct verdict_qp *qp = &f->qps[i];

		if (qp->number && !qp->gone_ns && qp->receives > qp->received)
			open += qp->receives - qp->received;
	}
	return open;
}

/* One cause has several codes, and one code has several causes. */
static const char *hint_of(uint32_t status)
{
	if (status == IBV_WC_RETRY_EXC_ERR)
		return "; a dead peer gives this code where its queue pair goes first, and 'remote access error' (10) where its memory goes first, so this is a hint only";
	if (status == IBV_WC_REM_ACCESS_ERR)
		return "; a wrong key or range gives this code, but so does a dead peer whose memory goes first ('retry exceeded' (12) where its queue pair goes first), so this is a hint only";
	return "";
}

static void add_request(char *text, size_t size, const struct verdict_error *e)
{
	size_t at = strlen(text);
	const struct verdict_request *r = &e->request;

	if (e->receive)
		snprintf(text + at, size - at, " of a receive, wr_id 0x%" PRIx64, r->wr_id);
	else if (!e->request_known)
		snprintf(text + at, size - at, ", wr_id 0x%" PRIx64, r->wr_id);
	else
		snprintf(text + at, size - at, " of %s, %" PRIu64 " bytes, wr_id 0x%" PRIx64,
			 verdict_opcode(r->opcode), r->bytes, r->wr_id);
}

static void describe(const struct verdict_facts *f, const struct verdict_error *e, char *text,
		     size_t size)
{
	switch (e - f->errors) {
	case VERDICT_COMPLETION:
	case VERDICT_FLUSH:
		snprintf(text, size, "completion with '%s' (%u, vendor 0x%x)",
			 verdict_wc_status(e->code), e->code, e->vendor);
		add_request(text, size, e);
		break;
	case VERDICT_EVENT:
		snprintf(text, size, "asynchronous event %s (%u)", verdict_event(e->code), e->code);
		break;
	case VERDICT_REFUSAL:
		snprintf(text, size, "ibv_post_send() refused with '%s' (%u)",
			 strerrordesc_np((int)e->code) ? strerrordesc_np((int)e->code) : "unknown",
			 e->code);
		add_request(text, size, e);
		break;
	default:
		if (e->code == VERDICT_NO_CM_EVENT)
			snprintf(text, size, "rdma_connect() failed (errno %d)", e->detail);
		else
			snprintf(text, size, "no connection: %s (status %d)",
				 verdict_cm_event(e->code), e->detail);
	}
}

static void add_times(const struct verdict_facts *f, const struct verdict_error *e, char *text,
		      size_t size)
{
	size_t at = strlen(text);

	if (e->qp)
		at += (size_t)snprintf(text + at, size - at, ", queue pair 0x%x", e->qp);
	at += (size_t)snprintf(text + at, size - at, ", %s after the program's start",
			       verdict_between(f->start_ns, e->at_ns).text);
	if (e->good_ns)
		snprintf(text + at, size - at, ", about %s after its last good completion",
			 verdict_between(e->good_ns, e->at_ns).text);
	else if (e->qp)
		snprintf(text + at, size - at, ", which had no good completion before");
}

void verdict_first_answer(const struct verdict_case *c, struct verdict_answer *a)
{
	const struct verdict_facts *f = c->facts;
	const struct verdict_error *e = verdict_first(f);
	char text[VERDICT_EVIDENCE] = "";

	if (!e && f->unfetched_ns) {
		verdict_answer(a, VERDICT_UNSEEN,
			       "queue pair 0x%x was in the error state when it was looked at, with %" PRIu64
			       " requests without completion; which error it was is not known, as nothing was fetched",
			       f->unfetched_qp, f->unfetched_requests);
		return;
	}
	if (!e) {
		verdict_answer(a, VERDICT_NO, "nothing that the program was told of%s%s",
			       f->peer_left_ns ? "; it read RDMA_CM_EVENT_DISCONNECTED" : "",
			       f->flushes ? "; it fetched flushes of queue pairs that had been ended" : "");
		return;
	}
	describe(f, e, text, sizeof(text));
	add_times(f, e, text, sizeof(text));
	verdict_answer(a, VERDICT_YES, "%s%s", text,
		       verdict_first_channel(f) == VERDICT_COMPLETION ? hint_of(e->code) : "");
}
