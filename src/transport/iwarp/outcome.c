/* SPDX-License-Identifier: BSD-2-Clause */
/* What a call of the engine changes for the program: completions, the error state, the end. */
#define LOG_ROOM "iwarp"
#include "hca/event/async.h"
#include "hca/queue/complete.h"
#include "hca/queue/flush.h"
#include "transport/iwarp/stream.h"
#include "util/log.h"

void iwarp_tell(struct iwarp_stream *s, enum hca_stream_event event)
{
	atomic_fetch_or(&s->untold, 1u << event);
	progress_timer_arm(&s->tell_timer, progress_now_ns());
}

/* Entries of a queue pair that was flushed are not completed again. */
static void finish(struct iwarp_stream *s, struct work_done done)
{
	while (s->completed != done.upto && iwarp_is_up(s)) {
		s->completed++;
		hca_sq_complete_ok(s->qp);
	}
	if (done.status != IBV_WC_SUCCESS && iwarp_is_up(s))
		hca_sq_complete(s->qp, done.status);
}

/* The event for why the queue pair failed. */
static enum ibv_event_type event_of(const struct iwarp_connection *c)
{
	switch (c->error) {
	case IWARP_DDP_STAG:
	case IWARP_DDP_BOUNDS:
	case IWARP_DDP_STAG_STREAM:
	case IWARP_DDP_TO_WRAP:
	case IWARP_RDMAP_STAG:
	case IWARP_RDMAP_BOUNDS:
	case IWARP_RDMAP_ACCESS:
	case IWARP_RDMAP_STAG_STREAM:
	case IWARP_RDMAP_TO_WRAP:
	case IWARP_RDMAP_INVALIDATE:
	case IWARP_RDMAP_PROTECTION:
		return IBV_EVENT_QP_ACCESS_ERR;
	case IWARP_OK:
	case IWARP_RDMAP_CATASTROPHIC:
	case IWARP_DDP_CATASTROPHIC:
	case IWARP_MPA_CATASTROPHIC:
		return IBV_EVENT_QP_FATAL;
	default:
		return IBV_EVENT_QP_REQ_ERR;
	}
}

/* A completion with this status counts the peer's refusal. */
static bool counts_refusal(enum ibv_wc_status status)
{
	return status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR ||
	       status == IBV_WC_REM_OP_ERR;
}

/* An end without an error of either end is no event of the queue pair. `completed`: nor is one whose
 * reason an entry of the send queue completes with. `counted`: that entry has counted a TERMINATE. */
static void report(struct iwarp_stream *s, bool completed, bool counted)
{
	const struct iwarp_connection *c = &s->c;
	const struct iwarp_terminate *t = &c->terminate;

	if (s->told || (!c->error && !c->terminated))
		return;
	s->told = true;
	if (c->terminated) {
		if (!counted)
			HCA_COUNT_RARE(s->qp, TX_NAKS_RECEIVED, 1);
		log_warn("qp 0x%x: the peer ended the connection: TERMINATE of layer %s, %s: %s%s",
			 s->qp->ibv.qp_num, iwarp_layer_text(t->layer),
			 iwarp_type_text(t->layer, t->type),
			 iwarp_code_text(t->layer, t->type, t->code),
			 t->siw_order ? " (in the bit order of Linux's siw)" : "");
	} else {
		HCA_COUNT_RARE(s->qp, RX_NAKS_SENT, 1);
		log_warn("qp 0x%x: the connection ends with a TERMINATE: %s", s->qp->ibv.qp_num,
			 iwarp_error_text(c->error));
	}
	if (!completed)
		hca_async_qp_event(s->qp, event_of(c));
}

void iwarp_outcome(struct iwarp_stream *s, const struct iwarp_outcome *o)
{
	const enum ibv_wc_status status = o->done.status;
	const bool counted = counts_refusal(status) && iwarp_is_up(s);

	finish(s, o->done);
	if (o->fail) {
		if (iwarp_is_up(s))
			hca_qp_fail_locked(s->qp);
		report(s, !s->c.terminated && s->c.error == IWARP_RDMAP_CATASTROPHIC &&
				  status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR, counted);
	}
	if (s->responder && s->c.begun && !s->begun) {
		s->begun = true;
		iwarp_tell(s, HCA_STREAM_BEGUN);
	}
	if (o->disconnected)
		iwarp_tell(s, HCA_STREAM_ENDED);
}
