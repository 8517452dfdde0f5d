/* SPDX-License-Identifier: BSD-2-Clause */
/* Any work over any network, by a seed; see virtual.h. */
#include <stdio.h>

#include "util/container_of.h"
#include "util/prng.h"
#include "virtual.h"

static struct prng prng;

static uint64_t dice(uint64_t n)
{
	return prng_below(&prng, n);
}

static double some(unsigned of_1000)
{
	return dice(2) ? (double)dice(of_1000) / 1000 : 0;
}

/* UC takes a copy or a late packet for a new message: networks must not do that. */
static void any_faults(struct plan *p)
{
	struct impair_params *link = &p->net.link;
	bool reliable = p->options.type != IBV_QPT_UC;

	link->delay_ns = dice(8) ? 500 + dice(10000) : 0;
	link->jitter_ns = dice(3) ? dice(5000) : 0;
	if (dice(5) == 0)
		return;
	link->loss = some(dice(3) ? 50 : 300);
	link->corrupt = some(30);
	if (reliable) {
		link->duplicate = some(dice(3) ? 60 : 1000);
		link->reorder = some(dice(3) ? 60 : 500);
		link->gap_ns = dice(40000);
	}
}

static void any_port(struct plan *p)
{
	struct carrier_sim_port *port = &p->net.port;

	port->rate_bps = UINT64_C(1000000000) * (1 + dice(40));
	port->queue_bytes = 65536 + dice(dice(2) ? 1000000 : 100000);
	port->mark_from = dice(dice(2) ? 4000 : 40000);
	port->mark_all = port->mark_from + 1 + dice(40000);
	port->mark_most = (double)dice(1000) / 1000;
}

/* Some time without a network, or its end. */
static void any_cut(struct plan *p)
{
	uint64_t timeout_ns = rc_timeout_ns(p->options.timeout);

	p->cut_ns = dice(2 * MS);
	if (dice(3)) {
		p->cut_for_ns = 1 + dice(3 * timeout_ns);
		p->may_fail |= p->net.link.loss + p->net.link.corrupt > 0.01;
		return;
	}
	p->cut_for_ns = UINT64_MAX;
	p->may_fail = true;
}

struct plan virtual_plan(uint64_t seed)
{
	struct plan p = { 0 };

	prng = prng_from(~seed);
	p.hosts = 2 + (unsigned)dice(3);
	p.pairs = 1 + (unsigned)dice(3);
	p.train = dice(2) ? 1 : 1 + (unsigned)dice(16);
	p.buffer_bytes = dice(2) ? 0 : (uint32_t)dice(1 << 20);
	p.messages = 1 + (uint32_t)dice(60);
	p.options = (struct options){
		.type = dice(6) ? IBV_QPT_RC : IBV_QPT_UC,
		.mtu = IBV_MTU_256 + (unsigned)dice(5),
		.psn = dice(2) ? (uint32_t)dice(1 << 24) : 0xffffff - (uint32_t)dice(60),
		.timeout = 6 + (uint8_t)dice(6), .retry_cnt = 7,
		.rnr_retry = dice(8) ? 7 : (uint8_t)dice(7),
		.min_rnr_timer = 1 + (uint8_t)dice(12),
		.max_rd_atomic = 1 + (uint8_t)dice(16),
	};
	p.options.srq = p.options.type == IBV_QPT_RC && dice(4) == 0;
	any_faults(&p);
	p.may_fail = p.net.link.loss + p.net.link.corrupt > 0.08;
	if (dice(4) == 0)
		any_port(&p);
	/* Its queue takes longer than a short timeout; what it refuses is lost, too. */
	if (p.net.port.rate_bps) {
		p.options.timeout = MAX(p.options.timeout, 12);
		p.may_fail = true;
	}
	if (dice(6) == 0)
		p.net.send_bytes = 16384 + dice(100000);
	/* What comes while nobody polls is lost beyond that. */
	if (dice(8) == 0)
		p.net.receive_bytes = 8192 + dice(60000);
	if (dice(4) == 0)
		p.net.link.rate_bps = UINT64_C(1000000000) * (2 + dice(60));
	if (p.net.link.rate_bps)
		p.options.timeout = MAX(p.options.timeout, 11);
	/* Answers come behind a timeout or two. */
	if (dice(6) == 0) {
		p.net.link.delay_ns = dice(300 * US);
		p.may_fail |= p.net.link.loss + p.net.link.corrupt > 0.01;
	}
	if (dice(8) == 0)
		any_cut(&p);
	for (unsigned i = 0; i < SIDES; i++)
		p.polls[i] = dice(2);
	p.poll_ns = dice(2) ? 0 : 1000 + dice(30000);
	p.naps = dice(4) == 0;
	return p;
}

int virtual_random(uint64_t seed, uint64_t runs)
{
	struct played all = { 0 };

	virtual_case = "random";
	printf("seed %ju, %ju runs\n", (uintmax_t)seed, (uintmax_t)runs);
	for (uint64_t i = 0; i < runs; i++) {
		struct plan p = virtual_plan(seed + i);
		struct played one;

		virtual_seed = seed + i;
		one = virtual_play(&p, seed + i);
		all.messages += one.messages;
		all.received += one.received;
		all.atomics += one.atomics;
		all.failed += one.failed;
		all.took_ns += one.took_ns;
		all.fingerprint = all.fingerprint * 31 + one.fingerprint;
	}
	printf("%ju messages, %ju received, %ju atomics, %ju sides ended by retries, "
	       "%.1f s of virtual time, fingerprint %016jx\n",
	       (uintmax_t)all.messages, (uintmax_t)all.received, (uintmax_t)all.atomics,
	       (uintmax_t)all.failed, (double)all.took_ns / 1e9, (uintmax_t)all.fingerprint);
	return 0;
}
