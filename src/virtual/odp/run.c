/* SPDX-License-Identifier: BSD-2-Clause */
/* See run.h. */
#define LOG_ROOM "odp"
#include "virtual/odp/run.h"

#include "engine/rc/rules.h"
#include "hca/host/settings.h"
#include "hca/object/cq.h"
#include "transport/packet/base/state.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/prng.h"
#include "virtual/clock.h"
#include "virtual/fail.h"
#include "virtual/net.h"
#include "virtual/odp/capture.h"
#include "virtual/odp/count.h"
#include "virtual/odp/ends.h"
#include "virtual/odp/mitigation.h"
#include "virtual/odp/profile.h"
#include "virtual/odp/record.h"

/* One way, so that a small request and its response take the 3 to 7 us of the source. */
#define DELAY_NS 1500u
#define DELAY_JITTER_NS 1000u
/* No run takes so long. */
#define RUN_NS (24 * 3600 * NSEC_PER_SEC)

struct run {
	struct odp_ends ends;
	struct odp_result *out;
	uint64_t began_ns, done;
};

static void take_one(struct run *r, const struct ibv_wc *wc)
{
	const uint64_t since_ns = virtual_now_ns() - r->began_ns;
	uint64_t i;

	if (!odp_mitigation_done(wc, virtual_now_ns(), &i))
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		if (!r->out->failed++)
			r->out->status = wc->status;
	}
	r->out->done_ns[i] = since_ns;
	r->out->took_ns = since_ns;
	r->done++;
}

/* A program that is not woken does not poll. */
static bool take(struct run *r, unsigned number)
{
	struct ibv_cq *cq = r->ends.end[number].cq;
	struct ibv_wc wc[16];
	int n;

	if (hca_cq_empty(hca_cq(cq)))
		return false;
	n = ibv_poll_cq(cq, ARRAY_SIZE(wc), wc);
	expect(n >= 0);
	for (int i = 0; i < n && number == ODP_END_CLIENT; i++)
		take_one(r, &wc[i]);
	return n > 0;
}

static bool take_all(struct run *r)
{
	return (int)take(r, ODP_END_CLIENT) | (int)take(r, ODP_END_SERVER);
}

static void step(struct run *r, uint64_t until_ns)
{
	uint64_t next_ns;

	odp_mitigation_look(virtual_now_ns());
	next_ns = MIN(virtual_progress(), odp_mitigation_next_ns());
	if (take_all(r) || next_ns <= virtual_now_ns())
		return;
	virtual_advance(MIN(next_ns, until_ns));
	take_all(r);
}

static void play(struct run *r, uint64_t seed)
{
	const struct odp_point *p = r->ends.point;
	struct prng random = prng_from(seed);
	uint64_t next_ns = virtual_now_ns();

	r->began_ns = next_ns;
	odp_mitigation_begin(&r->ends, next_ns);
	for (uint64_t i = 0; i < p->num_ops; i++) {
		while (virtual_now_ns() < next_ns)
			step(r, next_ns);
		r->out->posted_ns[i] = virtual_now_ns() - r->began_ns;
		odp_mitigation_post(i, virtual_now_ns());
		next_ns += p->interval_ns + prng_below(&random, p->jitter_ns + 1);
	}
	while (r->done < p->num_ops) {
		expect(virtual_now_ns() < r->began_ns + RUN_NS);
		step(r, r->began_ns + RUN_NS);
	}
}

static void look_at_end(struct run *r)
{
	const struct odp_point *p = r->ends.point;
	struct odp_result *out = r->out;

	for (unsigned i = 0; i < p->num_qps; i++) {
		struct hca_qp *qp = hca_qp(r->ends.end[ODP_END_CLIENT].qp[i]);

		out->count.timeouts += packet_part(qp)->state->requester.timeouts;
	}
	for (uint64_t i = 0; i < p->num_ops && !out->failed; i++)
		out->wrong += !odp_ends_are_right(&r->ends, i);
}

static void play_open(const struct odp_point *point, uint64_t seed, struct odp_result *out)
{
	static struct run run;

	run = (struct run){ .out = out };
	odp_ends_open(&run.ends, point);
	odp_record_begin(&run.ends, virtual_now_ns());
	odp_count_begin(&run.ends, &out->count);
	play(&run, seed);
	look_at_end(&run);
	odp_ends_close(&run.ends);
}

bool odp_run(const struct odp_point *point, uint64_t seed, struct odp_result *out)
{
	const struct hca_demand *demand;
	bool ok;

	out->failed = out->wrong = out->took_ns = 0;
	out->status = IBV_WC_SUCCESS;
	hca_settings.paging = odp_profile(point);
	if (!hca_settings.paging)
		return false;
	virtual_open(&(struct carrier_sim_params){
		.ends = 2, .seed = seed,
		.link = { .delay_ns = DELAY_NS, .jitter_ns = DELAY_JITTER_NS },
		.flight_bytes = ODP_BYTES_MAX, .receive_bytes = ODP_BYTES_MAX,
	});
	demand = virtual_hosts[ODP_END_CLIENT].port.demand;
	ok = demand && (!*point->capture || !odp_capture_begin(point->capture));
	if (ok) {
		out->timeout_ns = paging_timeout_ns(hca_demand_profile(demand),
						    (uint8_t)point->ack_code);
		out->rnr_ns = rc_rnr_ns((uint8_t)point->rnr_code);
		play_open(point, seed, out);
	}
	odp_capture_end();
	virtual_close();
	return ok;
}
