/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both sides of some pairs post random work at random times, and each message is accounted
 * for: its completion, in order and once; its data, where it says that they are there; the
 * receive that it took; the number of an atomic operation, which shows that each was carried
 * out once and in its turn. See virtual.h.
 */
#include <string.h>

#include "util/container_of.h"
#include "util/prng.h"
#include "virtual.h"

enum {
	MESSAGES = 64,
	WINDOW = 16,         /* posted and not complete */
	SLOTS = 32,          /* message i is in slot i % SLOTS */
	SLOT = 6144,
	SOURCE = 0,          /* what is sent, and where READs go to */
	LANDING = SLOTS * SLOT,
	TARGET = 2 * LANDING, /* of WRITEs */
	BLOCKS = 3 * LANDING, /* READs are of one of these */
	COUNTER = 4 * LANDING,
	LIMIT_S = 600,       /* of a run */
};
/* An unreliable sender is never so far ahead that a slot changes which is looked at. */
#define UC_GAP_NS (300 * US)

struct message {
	enum ibv_wr_opcode op;
	uint32_t bytes, block;
	uint64_t number; /* of an atomic */
};

/* What a side sends, and what it receives. */
struct flow {
	struct side *s;
	struct flow *peer;
	struct message messages[MESSAGES];
	uint32_t posted, completed, ok;
	uint32_t takers[MESSAGES], taker_count; /* of `messages`: those that take a receive */
	uint64_t atomics, atomics_ok;
	uint32_t receives_posted, receives_done, received;
	int64_t last; /* UC: of the peer's messages, that came */
	bool failed;
	uint64_t next_ns; /* of posting */
};

static struct flow flows[SIDES];
static unsigned flow_count;
static struct prng prng;
static const struct plan *plan;
static struct played result;
static uint64_t start_ns;

static uint64_t dice(uint64_t n)
{
	return prng_below(&prng, n);
}

static bool is_uc(void)
{
	return plan->options.type == IBV_QPT_UC;
}

static uint32_t slot(uint32_t area, uint64_t i)
{
	return area + (uint32_t)(i % SLOTS) * SLOT;
}

static uint64_t seed_of(const struct flow *f, uint64_t i)
{
	return (uint64_t)(f - flows) * 1000 + i;
}

static bool takes_receive(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM ||
	       op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static void note(uint64_t what)
{
	result.fingerprint = (result.fingerprint ^ what) * UINT64_C(0x100000001b3);
}

/* ---- posting ---- */

static enum ibv_wr_opcode any_op(void)
{
	static const enum ibv_wr_opcode rc[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	static const enum ibv_wr_opcode uc[] = { IBV_WR_SEND_WITH_IMM,
						 IBV_WR_RDMA_WRITE_WITH_IMM };

	return is_uc() ? uc[dice(ARRAY_SIZE(uc))] : rc[dice(ARRAY_SIZE(rc))];
}

static void post_message(struct flow *f)
{
	uint32_t i = f->posted;
	struct message *m = &f->messages[i];
	struct request r = { .id = i, .at = slot(SOURCE, i), .to = slot(TARGET, i), .imm = i };

	*m = (struct message){ .op = any_op(), .block = (uint32_t)dice(SLOTS),
			       .bytes = (uint32_t)dice(dice(2) ? 200 : SLOT + 1) };
	if (is_atomic(m->op)) {
		m->bytes = 8;
		m->number = f->atomics++;
		r.to = COUNTER;
		r.compare_add = m->op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 1 : m->number;
		r.swap = m->number + 1;
	} else if (m->op == IBV_WR_RDMA_READ) {
		r.to = slot(BLOCKS, m->block);
	} else {
		side_fill(f->s, r.at, m->bytes, seed_of(f, i));
	}
	if (takes_receive(m->op))
		f->takers[f->taker_count++] = i;
	r.opcode = m->op;
	r.bytes = m->bytes;
	/* A READ whose data another entry would take along. */
	r.flags = dice(8) ? 0 : IBV_SEND_FENCE;
	side_post(f->s, &r);
	f->posted++;
}

static void post_receive(struct flow *f)
{
	uint32_t k = f->receives_posted++;

	side_receive(f->s, k, slot(LANDING, k), SLOT);
}

static bool has_more(const struct flow *f)
{
	return !f->failed && f->posted < plan->messages;
}

static void act(struct flow *f)
{
	if (f->failed || virtual_now_ns() < f->next_ns)
		return;
	while (f->receives_posted - f->receives_done < WINDOW && dice(3))
		post_receive(f);
	while (has_more(f) && f->posted - f->completed < WINDOW && dice(4)) {
		post_message(f);
		if (is_uc())
			break;
	}
	f->next_ns = virtual_now_ns() + (is_uc() ? UC_GAP_NS : 0) + dice(dice(2) ? 3000 : 100000);
}

/* ---- completions ---- */

static void check_atomic(struct flow *f, const struct message *m, uint32_t i)
{
	uint64_t old;

	memcpy(&old, f->s->memory + slot(SOURCE, i), sizeof(old));
	expect_eq(old, m->number);
	f->atomics_ok++;
}

/* All that a completion promises is so now. */
static void check_effect(struct flow *f, uint32_t i)
{
	const struct message *m = &f->messages[i];

	if (is_uc())
		return;
	if (m->op == IBV_WR_RDMA_WRITE || m->op == IBV_WR_RDMA_WRITE_WITH_IMM)
		side_check(f->s->peer, slot(TARGET, i), m->bytes, seed_of(f, i));
	else if (m->op == IBV_WR_RDMA_READ)
		side_check(f->s, slot(SOURCE, i), m->bytes, 7000 + m->block);
	else if (is_atomic(m->op))
		check_atomic(f, m, i);
}

static bool may_end(const struct flow *f, enum ibv_wc_status status)
{
	if (status == IBV_WC_RETRY_EXC_ERR)
		return plan->may_fail || f->peer->failed;
	return status == IBV_WC_RNR_RETRY_EXC_ERR && plan->options.rnr_retry < 7;
}

static void take_send(struct flow *f, const struct ibv_wc *wc)
{
	expect_eq(wc->wr_id, f->completed);
	expect(f->completed < f->posted);
	if (wc->status == IBV_WC_SUCCESS) {
		expect(!f->failed);
		check_effect(f, f->completed);
		f->ok++;
	} else if (!f->failed) {
		if (!may_end(f, wc->status))
			fail("side %td: message %u ends with '%s'", f - flows, f->completed,
			     ibv_wc_status_str(wc->status));
		f->failed = true;
		result.failed++;
	} else {
		expect_eq(wc->status, IBV_WC_WR_FLUSH_ERR);
	}
	f->completed++;
}

/* Which message is it? Of UC some are missing. */
static uint32_t message_of(struct flow *f, const struct ibv_wc *wc)
{
	if (!is_uc()) {
		expect(f->received < f->peer->taker_count);
		return f->peer->takers[f->received];
	}
	expect((int64_t)wc->imm_data > f->last);
	expect(wc->imm_data < f->peer->posted);
	f->last = wc->imm_data;
	return wc->imm_data;
}

static void take_receive(struct flow *f, const struct ibv_wc *wc)
{
	const struct message *m;
	uint32_t i;

	expect_eq(wc->wr_id, f->receives_done);
	f->receives_done++;
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		expect(side_state(f->s) == IBV_QPS_ERR);
		return;
	}
	expect_eq(wc->status, IBV_WC_SUCCESS);
	i = message_of(f, wc);
	m = &f->peer->messages[i];
	f->received++;
	expect_eq(wc->byte_len, m->bytes);
	expect_eq(!!(wc->wc_flags & IBV_WC_WITH_IMM), m->op != IBV_WR_SEND);
	if (m->op != IBV_WR_SEND)
		expect_eq(wc->imm_data, i);
	expect_eq(wc->opcode, m->op == IBV_WR_RDMA_WRITE_WITH_IMM ?
				      IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	side_check(f->s, m->op == IBV_WR_RDMA_WRITE_WITH_IMM ? slot(TARGET, i) :
							     slot(LANDING, wc->wr_id),
		   m->bytes, seed_of(f->peer, i));
}

static void take_done(struct flow *f)
{
	for (int queue = RECEIVES; queue >= SENDS; queue--) {
		for (unsigned i = 0; i < f->s->count[queue]; i++) {
			const struct done *d = &f->s->done[queue][i];

			note(d->at_ns - start_ns);
			note((uint64_t)(f - flows) << 32 | d->wc.wr_id << 8 | d->wc.status);
			if (queue == SENDS)
				take_send(f, &d->wc);
			else
				take_receive(f, &d->wc);
		}
		f->s->count[queue] = 0;
	}
}

/* ---- a run ---- */

static uint64_t cut_from_ns, cut_until_ns;

static bool is_cut(const struct packet_seen *p)
{
	return p->at_ns >= cut_from_ns && p->at_ns < cut_until_ns;
}

static void begin(uint64_t seed)
{
	static bool filled[SIDES];
	struct carrier_sim_params network = plan->net;

	network.ends = plan->hosts;
	network.seed = seed;
	virtual_buffer_bytes = plan->buffer_bytes;
	virtual_open(&network);
	virtual_train = plan->train ? plan->train : 1;
	virtual_poll_ns = plan->poll_ns;
	flow_count = 2 * plan->pairs;
	memset(flows, 0, sizeof(flows));
	for (unsigned i = 0; i < flow_count; i += 2) {
		unsigned a = (unsigned)dice(plan->hosts);

		sides_open(i, a, (a + 1 + (unsigned)dice(plan->hosts - 1)) % plan->hosts,
			   &plan->options);
	}
	for (unsigned i = 0; i < flow_count; i++) {
		flows[i] = (struct flow){ .s = &sides[i], .peer = &flows[i ^ 1], .last = -1 };
		sides[i].polls = plan->polls[i];
		memset(sides[i].memory + COUNTER, 0, 8);
		/* Nobody changes them. */
		for (uint32_t k = 0; k < SLOTS && !filled[i]; k++)
			side_fill(&sides[i], slot(BLOCKS, k), SLOT, 7000 + k);
		filled[i] = true;
	}
	cut_from_ns = virtual_now_ns() + plan->cut_ns;
	cut_until_ns = plan->cut_for_ns == UINT64_MAX ? UINT64_MAX :
							cut_from_ns + plan->cut_for_ns;
	virtual_judge = plan->cut_for_ns ? is_cut : NULL;
}

static bool is_over(void)
{
	for (unsigned i = 0; i < flow_count; i++)
		if (has_more(&flows[i]) || flows[i].completed < flows[i].posted)
			return false;
	return true;
}

/* What each end of a message says of it. */
static void check_end(const struct flow *f)
{
	uint64_t counted, takers = 0;

	for (uint32_t i = 0; i < f->ok; i++)
		takers += takes_receive(f->messages[i].op);
	memcpy(&counted, f->s->peer->memory + COUNTER, sizeof(counted));
	expect_eq(f->completed, f->posted);
	/* Those of a shared queue stay there. */
	expect(f->receives_done == f->receives_posted || plan->options.srq);
	expect(f->failed || f->ok == plan->messages);
	if (!is_uc()) {
		expect(f->peer->received >= takers);
		expect(counted >= f->atomics_ok && counted <= f->atomics);
	}
	result.messages += f->ok;
	result.received += f->received;
	result.atomics += f->atomics_ok;
}

static void finish(void)
{
	/* Late copies change nothing. */
	play_until(virtual_now_ns() + 3 * MS);
	for (unsigned i = 0; i < flow_count; i++)
		take_done(&flows[i]);
	for (unsigned i = 0; i < flow_count; i++)
		side_error(&sides[i]);
	play_until(virtual_now_ns() + 3 * MS);
	for (unsigned i = 0; i < flow_count; i++)
		take_done(&flows[i]);
	for (unsigned i = 0; i < flow_count; i++)
		check_end(&flows[i]);
	pair_end();
}

/* From the beginning of an end that is for ever on. */
static uint64_t longest_ns(void)
{
	const struct options *o = &plan->options;

	/* A side may post once more before it ends. */
	return 4 * rc_timeout_ns(o->timeout) * (o->retry_cnt + 1u) +
	       rc_rnr_ns(o->min_rnr_timer) + 2 * MS;
}

/* All programs cease to poll, or begin again: the adapter counts the polls of all of them. */
static void nap(void)
{
	bool poll = dice(2);

	for (unsigned i = 0; i < flow_count; i++)
		sides[i].polls = poll;
}

struct played virtual_play(const struct plan *p, uint64_t seed)
{
	plan = p;
	prng = prng_from(seed);
	result = (struct played){ 0 };
	begin(seed);
	start_ns = virtual_now_ns();
	while (!is_over()) {
		expect(virtual_now_ns() < start_ns + LIMIT_S * SEC);
		for (unsigned i = 0; i < flow_count; i++)
			act(&flows[i]);
		if (plan->naps && dice(16) == 0)
			nap();
		play_until(virtual_now_ns() + 1 + dice(dice(2) ? 2000 : 50000));
		for (unsigned i = 0; i < flow_count; i++)
			take_done(&flows[i]);
	}
	result.took_ns = virtual_now_ns() - start_ns;
	if (plan->cut_for_ns == UINT64_MAX && virtual_now_ns() > cut_from_ns && !is_uc())
		expect(virtual_now_ns() - cut_from_ns <= longest_ns());
	finish();
	return result;
}
