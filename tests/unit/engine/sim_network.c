/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network of adapters in virtual time: sim_network [SEED [RUNS [ADAPTERS]]].
 *
 * Each run plays connections (RC, UC) between 2 or more adapters, which all send SEND,
 * WRITE, READ and atomics at once, over links that lose, double, reorder, delay and
 * damage packets, with receives that come late, small windows, and packet sequence
 * numbers that begin just before they wrap. Every byte that arrives is compared with
 * what was sent; each message is carried out once and in order (UC: whole, and in
 * order); each atomic is carried out once; each work entry completes once; every run
 * ends, with progress or with the error that the specification names.
 *
 * A run depends on its seed and the number of adapters alone: a run that fails prints
 * the command that repeats it. With SIM_NETWORK_TRACE all packets are printed.
 */
#include "network.h"

struct world world;

enum { STEPS_MAX = 20000000 };
static const uint64_t time_max_ns = UINT64_C(120) * 1000000000;

void network_fail(const char *what, const struct qp *qp)
{
	printf("failed: %s\n", what);
	if (qp)
		printf("  queue pair %u (peer %u) at %ju ns: %u of %u messages posted, "
		       "%u complete, %u carried out\n",
		       qp->index, qp->peer->index, (uintmax_t)network_now(), qp->posted,
		       qp->count, qp->completed, qp->executed);
	printf("  again: sim_network %ju 1 %u\n", (uintmax_t)world.seed,
	       world.adapter_count);
	exit(1);
}

/* ---- adapters ---- */

static void on_deliver(void *arg, const struct carrier_unit *unit)
{
	const struct frame *f = network_frame(unit);

	if (!f) {
		world.damaged++;
		return;
	}
	network_check(f->to < world.qp_count, "a packet of this network", NULL);
	network_check(world.qps[f->to].adapter == arg, "it comes to its adapter", NULL);
	network_qp_arrive(&world.qps[f->to], f, (const uint8_t *)(f + 1),
			  (unit->tos & 3) == 3);
}

static void on_writable(void *arg)
{
	for (unsigned i = 0; i < world.qp_count; i++)
		if (world.qps[i].adapter == arg) {
			world.qps[i].full = false;
			network_qp_touch(&world.qps[i]);
		}
}

static void arm_adapter(struct adapter *a)
{
	uint64_t next = carrier_next_ns(a->carrier);

	if (next == UINT64_MAX)
		return;
	/* Not always at once. */
	next = next > network_now() ? next : network_now() + 1;
	if (!wheel_is_armed(&a->timer) || next < a->timer.deadline_ns)
		wheel_arm(&world.wheel, &a->timer, next + (dice(8) ? 0 : dice(20000)));
}

static void run_dirty(void)
{
	struct qp *qp;

	while ((qp = world.dirty)) {
		world.dirty = qp->next_dirty;
		qp->dirty = false;
		network_qp_run(qp);
		/* A filter may hold what was sent. */
		if (qp->adapter->filtered)
			arm_adapter(qp->adapter);
		else if (!wheel_is_armed(&qp->adapter->timer))
			arm_adapter(qp->adapter);
	}
}

static void poll_adapter(struct adapter *a)
{
	carrier_poll(a->carrier, 1 + (unsigned)dice(16));
	run_dirty();
	arm_adapter(a);
}

/* ---- what happens to packets ---- */

static double some(unsigned of_1000)
{
	return dice(2) ? (double)dice(of_1000) / 1000 : 0;
}

static struct impair_params any_faults(void)
{
	return (struct impair_params){
		.loss = some(60), .duplicate = some(60), .reorder = some(60),
		.corrupt = some(30), .delay_ns = dice(10000), .jitter_ns = dice(5000),
		.gap_ns = dice(40000),
	};
}

/* UC takes a copy or a late packet for a new message: networks must not do that. */
static struct impair_params orderly(struct impair_params p)
{
	p.duplicate = p.reorder = 0;
	return p;
}

static void impair_link(unsigned end, struct impair_params p)
{
	struct impair_params uc = orderly(p);

	carrier_sim_impair(world.sim, end, IMPAIR_ALL_CLASSES, &p);
	carrier_sim_impair(world.sim, end, 1u << CLASS_UNRELIABLE, &uc);
}

/* New parameters for the filter over an adapter; a partition lasts a millisecond, less than
 * all retries. */
static void change_filter(struct adapter *a)
{
	struct impair_params p = dice(3) ? any_faults() : (struct impair_params){ 0 };
	struct impair_params uc;
	bool cut = !a->cut && dice(6) == 0;

	a->cut = p.partition = cut;
	uc = orderly(p);
	carrier_fault_set(a->carrier, CARRIER_BOTH, IMPAIR_ALL_CLASSES, &p);
	carrier_fault_set(a->carrier, CARRIER_BOTH, 1u << CLASS_UNRELIABLE, &uc);
	wheel_arm(&world.wheel, &a->change,
		  network_now() + (cut ? 200000 + dice(800000) : 100000 + dice(2000000)));
}

/* Ports that queue, mark and lose. */
static struct carrier_sim_port any_port(void)
{
	struct carrier_sim_port port = { .rate_bps = UINT64_C(1000000000) * (1 + dice(40)) };

	port.queue_bytes = 32768 + dice(dice(2) ? 1000000 : 100000);
	port.mark_from = dice(dice(2) ? 4000 : 40000);
	port.mark_all = port.mark_from + 1 + dice(40000);
	port.mark_most = (double)dice(1000) / 1000;
	return port;
}

static void open_network(void)
{
	struct carrier_sim_params p = {
		.ends = world.adapter_count, .seed = prng_next(&world.dice),
		.start_ns = 1 + dice(1000000), .classify = network_classify,
		.send_bytes = 16384 + dice(100000),
		.link = { .delay_ns = 500 + dice(5000) },
	};

	if (dice(2))
		p.link.rate_bps = UINT64_C(1000000000) * (2 + dice(60));
	world.calm = dice(8) == 0;
	if (!world.calm && dice(3) == 0)
		p.port = any_port();
	world.line_bps = p.port.rate_bps;
	network_check(carrier_sim_open(&p, &world.sim) == 0, "memory", NULL);
	world.clock = carrier_sim_clock(world.sim);
	wheel_init(&world.wheel, p.start_ns);
	for (unsigned i = 0; i < world.adapter_count && !world.calm; i++) {
		struct impair_params link = any_faults();

		link.delay_ns += p.link.delay_ns;
		link.rate_bps = p.link.rate_bps;
		impair_link(i, link);
	}
}

static void open_adapter(struct adapter *a, unsigned i)
{
	struct carrier_fault_params p = {
		.clock = world.clock, .seed = prng_next(&world.dice),
		.classify = network_classify,
	};
	struct carrier_upper upper = { on_deliver, on_writable, a };
	struct carrier *end = carrier_sim_end(world.sim, i);

	a->carrier = end;
	wheel_timer_init(&a->timer);
	wheel_timer_init(&a->change);
	a->filtered = !world.calm && dice(4) == 0;
	if (a->filtered)
		network_check(carrier_fault_open(end, &p, &a->carrier) == 0, "memory",
			      NULL);
	carrier_set_upper(a->carrier, &upper);
	if (a->filtered)
		change_filter(a);
}

/* ---- connections ---- */

static void open_half(struct qp *qp, uint32_t psn, uint32_t peer_psn)
{
	struct rc_requester_params p = {
		.reliable = qp->reliable, .mtu = world.mtu, .psn = psn,
		.window = 1 + (uint32_t)dice(dice(3) ? 40 : 4),
		.window_usual = (uint32_t)dice(80), .window_most = (uint32_t)dice(160),
		.max_rd_atomic = 1 + (uint8_t)dice(8),
		.retry_cnt = 7, .rnr_retry = RC_RNR_FOR_EVER,
		.timeout_ns = world.timeout_ns, .line_bps = world.line_bps,
		.ring.entries = qp->ring, .ring.stride = sizeof(qp->ring[0]), .ring.mask = ENTRIES - 1,
	};
	struct rc_responder_params r = {
		.reliable = qp->reliable, .mtu = world.mtu, .psn = peer_psn,
		.max_rd_atomic = 8, .min_rnr_timer = 1 + (uint8_t)dice(8),
		.ack_delay_ns = dice(2) ? 20000 : 0, .line_bps = world.line_bps,
	};

	if (dice(10) == 0)
		p.rnr_retry = (uint8_t)dice(7);
	rc_requester_open(&qp->rq, &p);
	rc_responder_open(&qp->rs, &r);
	qp->receives = (uint32_t)dice(8);
	qp->tells_credit = dice(4) == 0;
	wheel_timer_init(&qp->timer);
}

static uint32_t any_psn(void)
{
	return dice(2) ? (uint32_t)dice(1 << 24) : RC_PSN_MASK - (uint32_t)dice(40);
}

static void open_pair(struct qp *a, struct qp *b, uint32_t messages_max)
{
	struct qp *both[2] = { a, b };
	uint32_t psn[2] = { any_psn(), any_psn() };
	bool reliable = dice(5) != 0;
	/* For ever: its connections end with an error. */
	bool parted = !world.calm && dice(100) == 0;

	a->peer = b;
	b->peer = a;
	a->adapter = &world.adapters[dice(world.adapter_count)];
	do
		b->adapter = &world.adapters[dice(world.adapter_count)];
	while (b->adapter == a->adapter);
	for (unsigned i = 0; i < 2; i++) {
		struct qp *qp = both[i];

		qp->index = (uint32_t)(qp - world.qps);
		qp->reliable = reliable;
		qp->parted = parted;
		qp->count = (uint32_t)dice(messages_max + 1);
		qp->messages = calloc(messages_max, sizeof(*qp->messages));
		qp->landing = malloc(ENTRIES * sizeof(*qp->landing));
		qp->slots = calloc(messages_max, SLOT);
		qp->shared = calloc(2, SHARED_PLACE);
		network_check(qp->messages && qp->landing && qp->slots && qp->shared,
			      "memory", NULL);
		qp->shadow = qp->shared + SHARED_PLACE;
	}
	for (unsigned i = 0; i < 2; i++) {
		network_plan(both[i]);
		open_half(both[i], psn[i], psn[!i]);
		world.unfinished += both[i]->count > 0;
	}
	if (parted && world.adapter_count > 2)
		carrier_sim_part(world.sim, (unsigned)(a->adapter - world.adapters),
				 (unsigned)(b->adapter - world.adapters), true);
	else
		a->parted = b->parted = false;
}

/* Others between the same two adapters are parted with it. */
static void mark_parted(void)
{
	for (unsigned i = 0; i < world.qp_count; i++)
		for (unsigned k = 0; k < world.qp_count && world.qps[i].parted; k++) {
			struct qp *a = &world.qps[i], *b = &world.qps[k];

			if ((a->adapter == b->adapter &&
			     a->peer->adapter == b->peer->adapter) ||
			    (a->adapter == b->peer->adapter &&
			     a->peer->adapter == b->adapter))
				b->parted = true;
		}
}

/* ---- a run ---- */

static void expire_timers(void)
{
	struct wheel_timer *t;

	while ((t = wheel_expire(&world.wheel, network_now()))) {
		if ((char *)t >= (char *)world.qps &&
		    (char *)t < (char *)(world.qps + world.qp_count)) {
			network_qp_timer(container_of(t, struct qp, timer));
			continue;
		}
		/* Of an adapter. */
		for (unsigned i = 0; i < world.adapter_count; i++) {
			if (t == &world.adapters[i].timer)
				poll_adapter(&world.adapters[i]);
			else if (t == &world.adapters[i].change)
				change_filter(&world.adapters[i]);
		}
	}
	run_dirty();
}

static void step(uint64_t until_ns)
{
	uint64_t next = wheel_next_ns(&world.wheel);
	int end;

	end = carrier_sim_next(world.sim, next < until_ns ? next : until_ns);
	if (end < 0)
		expire_timers();
	else if (dice(6))
		poll_adapter(&world.adapters[end]);
	else
		arm_adapter(&world.adapters[end]);
}

static void play(void)
{
	uint64_t start = network_now(), end;

	for (unsigned i = 0; i < world.qp_count; i++)
		network_qp_touch(&world.qps[i]);
	run_dirty();
	for (unsigned steps = 0; world.unfinished; steps++) {
		step(start + time_max_ns);
		network_check(steps < STEPS_MAX && network_now() < start + time_max_ns,
			      "a run ends", NULL);
	}
	/* What is on its way still: late copies, UC. */
	end = network_now() + 3000000;
	while (network_now() < end)
		step(end);
}

static void close_all(void)
{
	for (unsigned i = 0; i < world.adapter_count; i++)
		if (world.adapters[i].filtered)
			carrier_close(world.adapters[i].carrier);
	carrier_sim_close(world.sim);
	for (unsigned i = 0; i < world.qp_count; i++) {
		free(world.qps[i].messages);
		free(world.qps[i].landing);
		free(world.qps[i].slots);
		free(world.qps[i].shared);
	}
	free(world.qps);
	free(world.adapters);
}

static void run(uint64_t seed, unsigned adapters)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 4096 };
	/* Two play many messages, many play few. */
	uint32_t messages_max = adapters < 10 ? MESSAGES_MAX : 16;

	world.seed = seed;
	world.dice = prng_from(seed);
	world.adapter_count = adapters;
	world.qp_count = adapters < 10 ? adapters : 2 * (adapters + adapters / 2);
	world.mtu = mtus[dice(4)];
	world.timeout_ns = 400000 + dice(2000000);
	world.not_now = dice(2) ? (unsigned)dice(20) : 0;
	world.unfinished = 0;
	world.dirty = NULL;
	world.adapters = calloc(adapters, sizeof(*world.adapters));
	world.qps = calloc(world.qp_count, sizeof(*world.qps));
	network_check(world.adapters && world.qps, "memory", NULL);
	open_network();
	for (unsigned i = 0; i < adapters; i++)
		open_adapter(&world.adapters[i], i);
	for (unsigned i = 0; i + 1 < world.qp_count; i += 2)
		open_pair(&world.qps[i], &world.qps[i + 1], messages_max);
	mark_parted();
	play();
	for (unsigned i = 0; i < world.qp_count; i++)
		network_check_end(&world.qps[i]);
	close_all();
}

/* Of all runs together: losses are repaired without timeouts where a NAK can, and
 * little is sent twice. */
static bool is_thrifty(uint64_t queue_pairs)
{
	/* Of eight tries in a row one is expected to arrive. */
	bool thrifty = world.unlucky <= queue_pairs / 1000;

	if (queue_pairs >= 1000) {
		thrifty = thrifty && world.timeouts <= world.gone_back * 40 / 100;
		thrifty = thrifty && world.gone_back <= world.packets * 6 / 100;
	}
	if (!thrifty)
		printf("failed: more errors, timeouts or repetitions than losses explain\n");
	return thrifty;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t runs = argc > 2 ? strtoull(argv[2], NULL, 0) : 100;
	unsigned adapters = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0) : 100;
	uint64_t queue_pairs = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (adapters < 2 || adapters > 10000) {
		printf("usage: sim_network [SEED [RUNS [ADAPTERS]]], 2 to 10000 adapters\n");
		return 2;
	}
	world.trace = getenv("SIM_NETWORK_TRACE");
	network_frame_init();
	for (uint64_t i = 0; i < runs; i++) {
		run(seed + i, adapters);
		queue_pairs += world.qp_count;
		if (i % 1000 == 999)
			printf("%ju runs\n", (uintmax_t)i + 1);
	}
	printf("%ju runs of %u adapters from seed %ju, %ju queue pairs: every byte right\n",
	       (uintmax_t)runs, adapters, (uintmax_t)seed, (uintmax_t)queue_pairs);
	printf("%ju messages, %ju packets, %ju damaged and dropped, %ju RNR, %ju atomics, "
	       "%ju times gone back, %ju of them by timeouts, %ju CNPs\n",
	       (uintmax_t)world.messages, (uintmax_t)world.packets,
	       (uintmax_t)world.damaged, (uintmax_t)world.rnr, (uintmax_t)world.atomics,
	       (uintmax_t)world.gone_back, (uintmax_t)world.timeouts,
	       (uintmax_t)world.cnps);
	printf("ended by: retries %ju (%ju of them by bad luck alone), RNR retries %ju, "
	       "access %ju, invalid %ju, operation %ju, local %ju\n",
	       (uintmax_t)world.errors[IBV_WC_RETRY_EXC_ERR],
	       (uintmax_t)world.unlucky,
	       (uintmax_t)world.errors[IBV_WC_RNR_RETRY_EXC_ERR],
	       (uintmax_t)world.errors[IBV_WC_REM_ACCESS_ERR],
	       (uintmax_t)world.errors[IBV_WC_REM_INV_REQ_ERR],
	       (uintmax_t)world.errors[IBV_WC_REM_OP_ERR],
	       (uintmax_t)world.errors[IBV_WC_LOC_PROT_ERR]);
	return is_thrifty(queue_pairs) ? 0 : 1;
}
