/* SPDX-License-Identifier: BSD-2-Clause */
/* The time of a fabric: carries out its events. */
#include "engine/fabric/credit.h"
#include "engine/fabric/input.h"
#include "engine/fabric/output.h"
#include "engine/fabric/report.h"
#include "engine/fabric/source.h"

uint64_t fabric_now_ps(const struct fabric *f)
{
	return f->now_ps;
}

uint64_t fabric_next_ps(const struct fabric *f)
{
	return f->woken ? f->now_ps : fabric_queue_next_ps(&f->queue);
}

uint64_t fabric_packets_inside(const struct fabric *f)
{
	return f->inside;
}

static void carry_out(struct fabric *f, struct fabric_due *due)
{
	switch ((enum fabric_due_kind)due->kind) {
	case FABRIC_DUE_PACKET:
		fabric_input_due(f, due);
		break;
	case FABRIC_DUE_OUTPUT:
		fabric_output_due(f, due);
		break;
	case FABRIC_DUE_CREDIT:
		fabric_credit_arrive(f, due);
		break;
	case FABRIC_DUE_REFRESH:
		fabric_credit_refresh(f, due);
		break;
	case FABRIC_DUE_LIFETIME:
		fabric_output_lifetime(f, due);
		break;
	case FABRIC_DUE_FLOW:
		fabric_source_flow_due(f, due);
		break;
	}
}

/* What follows from an event at the same time: ports send, and the owner hears of packets. */
static void settle(struct fabric *f)
{
	while (f->woken || f->out || f->writable) {
		struct fabric_port *o = f->woken;

		if (!o) {
			fabric_report(f);
			continue;
		}
		f->woken = o->next_woken;
		if (!f->woken)
			f->woken_tail = &f->woken;
		o->woken = false;
		fabric_output_try(f, o);
	}
}

uint64_t fabric_run(struct fabric *f, uint64_t until_ps, uint64_t events)
{
	struct fabric_due *due;
	uint64_t done = 0;

	if (f->running || f->reporting || until_ps < f->now_ps)
		return 0;
	f->running = true;
	settle(f);
	while ((due = fabric_queue_take(&f->queue, until_ps))) {
		f->now_ps = f->queue.at_ps;
		carry_out(f, due);
		settle(f);
		if (++done == events)
			break;
	}
	if (!due && until_ps != FABRIC_NEVER)
		f->now_ps = until_ps;
	f->running = false;
	return done;
}
