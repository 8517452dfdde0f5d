/* SPDX-License-Identifier: BSD-2-Clause */
/* The model of the random test; see model.h. */
#include "model.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "act.h"

#define RECV_ID (UINT64_C(1) << 62)

uint32_t dice(struct model *m, uint32_t n)
{
	m->random = m->random * UINT64_C(6364136223846793005) +
		    UINT64_C(1442695040888963407);
	return n ? (uint32_t)(m->random >> 33) % n : 0;
}

/* ---- what the pairs are ---- */

static void make_kind(int q, struct pair_kind *k, uint64_t *at)
{
	bool rc = q < RC_PAIRS, uc = !rc && q < RC_PAIRS + UC_PAIRS;

	*k = (struct pair_kind){
		.type = rc ? IBV_QPT_RC : uc ? IBV_QPT_UC : IBV_QPT_UD,
		.room = !rc && !uc ? 8192 : q % 7 == 1 ? 100000 :
			q % 2 ? 32768 : 5000,
		.send_wr = 4 + (uint32_t)q * 7 % 13,
		.rnr_retry = rc && q % 4 == 1 ? (uint8_t)(q % 3) : 7,
		.srq = q == 3 || q == 7 || q == 11,
		.extended = q % 3 == 0,
		.cq = { q % 3, q % 5 ? 3 + q % 3 : q % 3 },
	};
	k->out = *at;
	k->in = k->out + SLOTS * (uint64_t)k->room;
	k->target = (k->in + SLOTS * (uint64_t)k->room + 63) & ~UINT64_C(63);
	k->words = (k->target + k->room + 63) & ~UINT64_C(63);
	k->end = k->words + WORDS * sizeof(uint64_t);
	*at = (k->end + 4095) & ~UINT64_C(4095);
}

const struct pair_kind *pair_kind(int q)
{
	static struct pair_kind kinds[PAIRS];

	if (!kinds[0].end) {
		uint64_t at = FIRST_AREA;

		/* The first last: it says that all are made. */
		for (int i = 0; i < PAIRS; i++) {
			struct pair_kind k;

			make_kind(i, &k, &at);
			kinds[i] = k;
		}
	}
	return &kinds[q];
}

int model_pairs(void)
{
	return transport_under_test()->streams ? RC_PAIRS : PAIRS;
}

void model_init(struct model *m, struct side *a, struct side *b, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	m->side[0] = a;
	m->side[1] = b;
	m->random = seed;
	m->bytes = pair_kind(model_pairs() - 1)->end;
	for (int s = 0; s < 2; s++) {
		m->shadow[s] = calloc(1, m->bytes);
		if (!m->shadow[s])
			fail("no memory");
	}
}

static void work_put(struct work *w)
{
	if (--w->users > 0)
		return;
	free(w->data);
	free(w);
}

static void flow_clear(struct flow *f, bool shared)
{
	while (f->sent_count)
		work_put(f->sent[--f->sent_count]);
	while (f->due_count)
		work_put(f->due[--f->due_count]);
	memset(f->out_used, 0, sizeof(f->out_used));
	f->broken = false;
	if (shared) /* the receives are not the queue pair's own */
		return;
	f->recv_count = 0;
	memset(f->in_used, 0, sizeof(f->in_used));
}

void model_reset(struct model *m, int q)
{
	flow_clear(&m->flow[0][q], pair_kind(q)->srq);
	flow_clear(&m->flow[1][q], pair_kind(q)->srq);
}

void model_free(struct model *m)
{
	for (int q = 0; q < PAIRS; q++)
		model_reset(m, q);
	free(m->shadow[0]);
	free(m->shadow[1]);
}

/* For messages to people. */
static const char *work_text(const struct work *w)
{
	static char text[128];

	snprintf(text, sizeof(text),
		 "%s of %u bytes%s by side %d on pair %d", w->op->name,
		 w->length, w->r.flags & IBV_SEND_INLINE ? " inline" : "", w->s,
		 w->q);
	return text;
}

/* ---- memory ---- */

void model_fill(struct model *m, int s, uint64_t offset, uint64_t length)
{
	uint64_t seed = m->random;

	dice(m, 2);
	act_fill(m->side[s], offset, length, seed);
	act_pattern(m->shadow[s] + offset, length, seed);
}

static bool same(struct model *m, int s, uint64_t offset, uint64_t length)
{
	return act_hash(m->side[s], offset, length) ==
	       act_hash_of(m->shadow[s] + offset, length);
}

_Noreturn static void differs(struct model *m, int s, uint64_t offset,
			      uint64_t length, const char *what)
{
	uint8_t real[16];
	uint64_t from = offset;

	while (length > 1) {
		uint64_t half = length / 2;

		if (same(m, s, offset, half)) {
			offset += half;
			length -= half;
		} else {
			length = half;
		}
	}
	act_read(m->side[s], offset, real, 1);
	fail("%s: side %d, byte %llu of the range at %llu is 0x%02x, the model says 0x%02x",
	     what, s, (unsigned long long)(offset - from),
	     (unsigned long long)from, real[0], m->shadow[s][offset]);
}

void model_check(struct model *m, int s, uint64_t offset, uint64_t length,
		 const char *what)
{
	m->checks++;
	if (length && !same(m, s, offset, length))
		differs(m, s, offset, length, what);
}

/* Is a WRITE complete before it has arrived? (RFC 5040, 5.3, for streams.) */
static bool writes_are_late(int q)
{
	return pair_kind(q)->type != IBV_QPT_RC || transport_under_test()->streams;
}

static void check_in_time(struct model *m, int s, uint64_t offset,
			  uint64_t length)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (!same(m, s, offset, length) && now_ms() < end)
		usleep(50); /* the processor may be needed for what brings them */
	model_check(m, s, offset, length, "write");
}

void model_arrives(struct model *m, int q)
{
	const struct pair_kind *k = pair_kind(q);

	if (k->type != IBV_QPT_UD && writes_are_late(q))
		for (int s = 0; s < 2; s++)
			check_in_time(m, s, k->target, k->end - k->target);
}

void model_check_all(struct model *m)
{
	for (int q = 0; q < model_pairs(); q++)
		model_arrives(m, q);
	for (int s = 0; s < 2; s++) {
		for (int q = 0; q < model_pairs(); q++) {
			const struct pair_kind *k = pair_kind(q);

			model_check(m, s, k->out, k->in - k->out, "sends");
			model_check(m, s, k->target, k->end - k->target,
				    "target");
		}
		/* The thread sanitizer does not see that a message comes after
		 * this look at its receive: that goes by another process. */
#ifndef __SANITIZE_THREAD__
		model_check(m, s, 0, m->bytes, "all of the memory");
#endif
	}
}

/* ---- what may be posted ---- */

static int free_send(const struct flow *f)
{
	for (int i = 0; i < SLOTS; i++)
		if (!f->out_used[i])
			return i;
	return -1;
}

static int free_receive(const struct flow *f)
{
	for (int i = 0; i < SLOTS; i++)
		if (!f->in_used[i])
			return i;
	return -1;
}

int model_credits(const struct model *m, int s, int q)
{
	const struct flow *f = &m->flow[s][q];
	int credits = m->srq_count[s];

	if (!pair_kind(q)->srq)
		return f->recv_count - f->due_count;
	for (int i = 0; i < model_pairs(); i++)
		if (pair_kind(i)->srq)
			credits -= m->flow[s][i].due_count;
	return credits;
}

static void choose_receiver(struct model *m, struct work *w)
{
	w->to_s = !w->s;
	w->to_q = w->q;
	if (pair_kind(w->q)->type != IBV_QPT_UD)
		return;
	w->to_s = (int)dice(m, 2);
	w->to_q = RC_PAIRS + UC_PAIRS + (int)dice(m, UD_PAIRS);
	w->lost = dice(m, 8) == 0;
	w->r.remote_qpn = m->qpn[w->to_s][w->to_q];
	w->r.qkey = 0x100 + (uint32_t)w->to_q + w->lost;
}

static bool may_be_sent(const struct model *m, const struct work *w)
{
	const struct pair_kind *k = pair_kind(w->q);
	const struct flow *to = &m->flow[w->to_s][w->to_q];

	if (!w->op->message || w->lost)
		return true;
	if (to->due_count >= WORKS - 1)
		return false;
	/* Only a reliable connection waits for a receive, and none over a stream. */
	return (k->type == IBV_QPT_RC && k->rnr_retry == 7 &&
		!transport_under_test()->streams) ||
	       model_credits(m, w->to_s, w->to_q) > 0;
}

static unsigned flags_of(struct model *m, const struct work *w)
{
	const struct flow *f = &m->flow[w->s][w->q];
	const struct pair_kind *k = pair_kind(w->q);
	unsigned flags = dice(m, 2) ? IBV_SEND_SOLICITED : 0;
	int unsignaled = 0, most = k->send_wr < SLOTS ? (int)k->send_wr : SLOTS;

	/* Entries and slots are free again only behind a completion that was polled. */
	for (int i = f->sent_count; i > 0; i--, unsignaled++)
		if (f->sent[i - 1]->r.flags & IBV_SEND_SIGNALED)
			break;
	if (dice(m, 3) || unsignaled + 2 >= most)
		flags |= IBV_SEND_SIGNALED;
	if (!w->op->local_write && w->length <= INLINE_BYTES && dice(m, 2))
		flags |= IBV_SEND_INLINE;
	if (k->type != IBV_QPT_RC)
		return flags;
	for (int i = 0; i < f->sent_count; i++)
		if (f->sent[i]->op->reads_remote && w->op->remote)
			flags |= IBV_SEND_FENCE;
	return flags | (dice(m, 6) ? 0 : IBV_SEND_FENCE);
}

/* The bytes at `addr` in up to SEND_SGES pieces, some of them empty. */
static int cut(struct model *m, uint64_t addr, uint32_t length, uint32_t lkey,
	       struct ibv_sge *sge)
{
	int parts = 1 + (int)dice(m, SEND_SGES);

	for (int i = 0; i < parts; i++) {
		uint32_t part = i == parts - 1 ? length : dice(m, length + 1);

		sge[i] = (struct ibv_sge){ .addr = addr, .length = part,
					   .lkey = lkey };
		addr += part;
		length -= part;
	}
	return parts;
}

static void fill_remote(struct model *m, struct work *w)
{
	const struct flow *peer = &m->flow[!w->s][w->q];

	w->r.opcode = w->op->opcode;
	w->r.wr_id = m->next_id++;
	w->r.imm = htonl((uint32_t)m->random);
	if (w->op->remote && w->to < FIRST_AREA) {
		w->r.remote_addr = m->side[!w->s]->addr + w->to;
		w->r.rkey = m->shared_rkey[!w->s];
	} else if (w->op->remote) {
		w->r.remote_addr = peer->iova +
				   (w->to - pair_kind(w->q)->target);
		w->r.rkey = peer->rkey;
	}
}

static void fill_request(struct model *m, struct work *w)
{
	const struct pair_kind *k = pair_kind(w->q);
	struct flow *f = &m->flow[w->s][w->q];
	uint64_t at = k->out + (uint64_t)w->slot * k->room;

	fill_remote(m, w);
	w->r.flags = flags_of(m, w);
	model_fill(m, w->s, at, w->length);
	w->r.num_sge = cut(m, m->side[w->s]->addr + at, w->length, f->lkey,
			   w->r.sge);
	w->data = malloc(w->length + 1);
	memcpy(w->data, m->shadow[w->s] + at, w->length);
}

struct work *model_work(struct model *m, int s, int q, const struct model_op *op)
{
	const struct pair_kind *k = pair_kind(q);
	struct flow *f = &m->flow[s][q];
	struct work *w;
	int slot = free_send(f);

	if (!(op->services >> k->type & 1) || !offers(op->opcode) || slot < 0 ||
	    f->sent_count >= (int)k->send_wr)
		return NULL;
	w = calloc(1, sizeof(*w));
	*w = (struct work){ .op = op, .s = s, .q = q, .slot = slot, .users = 1 };
	choose_receiver(m, w);
	if (!may_be_sent(m, w)) {
		work_put(w);
		return NULL;
	}
	op->choose(m, w);
	fill_request(m, w);
	return w;
}

struct work *model_chain(struct model *m, const struct work *first,
			 const struct model_op *op)
{
	const struct pair_kind *k = pair_kind(first->q);
	struct flow *f = &m->flow[first->s][first->q];
	struct work *w;

	if (f->sent_count >= (int)k->send_wr || !offers(op->opcode))
		return NULL;
	w = calloc(1, sizeof(*w));
	*w = (struct work){ .op = op, .s = first->s, .q = first->q,
			    .slot = first->slot, .users = 1, .chained = true,
			    .length = first->length, .to_s = !first->s,
			    .to_q = first->q };
	if (!may_be_sent(m, w)) {
		work_put(w);
		return NULL;
	}
	if (op->remote)
		w->to = k->target + dice(m, k->room - w->length + 1);
	fill_remote(m, w);
	w->r.flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED;
	w->r.num_sge = cut(m, m->side[w->s]->addr + k->out +
			   (uint64_t)w->slot * k->room, w->length, f->lkey,
			   w->r.sge);
	w->data = calloc(1, w->length + 1);
	return w;
}

void model_drop(struct work *w)
{
	work_put(w);
}

void model_posted(struct model *m, struct work *w)
{
	struct flow *f = &m->flow[w->s][w->q];
	struct flow *to = &m->flow[w->to_s][w->to_q];

	m->sends++;
	w->seq = ++f->seq;
	f->sent[f->sent_count++] = w;
	f->out_used[w->slot]++;
	if (w->op->message && !w->lost && w->expect == IBV_WC_SUCCESS) {
		to->due[to->due_count++] = w;
		w->users++;
	}
	/* Inline data are taken: what happens to the buffer now is our matter. */
	if (w->r.flags & IBV_SEND_INLINE)
		model_fill(m, w->s, pair_kind(w->q)->out +
			   (uint64_t)w->slot * pair_kind(w->q)->room, w->length);
}

bool model_receive(struct model *m, int s, int q, struct receive *r)
{
	const struct pair_kind *k = pair_kind(q);
	struct flow *f = &m->flow[s][q];
	int slot = free_receive(f);
	uint64_t at;

	if (slot < 0 || (!k->srq && f->recv_count == SLOTS))
		return false;
	at = k->in + (uint64_t)slot * k->room;
	*r = (struct receive){ .wr_id = RECV_ID | m->next_id++, .q = q,
			       .slot = slot };
	r->num_sge = cut(m, m->side[s]->addr + at, k->room, f->lkey, r->sge);
	return true;
}

void model_recv_posted(struct model *m, int s, int q, const struct receive *r)
{
	struct flow *f = &m->flow[s][q];

	f->in_used[r->slot] = true;
	if (pair_kind(q)->srq)
		m->srq[s][m->srq_count[s]++] = *r;
	else
		f->recvs[f->recv_count++] = *r;
}

bool model_idle(const struct model *m, int q)
{
	for (int s = 0; s < 2; s++)
		if (m->flow[s][q].sent_count || m->flow[s][q].due_count)
			return false;
	return true;
}

/* ---- completions ---- */

static void apply(struct model *m, struct work *w)
{
	const struct pair_kind *k = pair_kind(w->q);

	if (w->chained && !w->applied)
		memcpy(w->data, m->shadow[w->s] + k->out +
		       (uint64_t)w->slot * k->room, w->length);
	if (!w->applied && w->expect == IBV_WC_SUCCESS && !w->lost)
		w->op->apply(m, w);
	w->applied = true;
}

/* Whatever the direction did before `seq` has been done. */
static void apply_until(struct model *m, struct flow *f, uint64_t seq)
{
	for (int i = 0; i < f->sent_count && f->sent[i]->seq <= seq; i++)
		apply(m, f->sent[i]);
}

static bool changes_target(const struct work *w)
{
	return w->op->remote && w->op->opcode != IBV_WR_RDMA_READ;
}

/* The peer's target, unless something later may have changed it already. */
static void check_target(struct model *m, const struct work *w)
{
	const struct flow *f = &m->flow[w->s][w->q];

	if (!changes_target(w) || w->to < FIRST_AREA)
		return;
	for (int i = 0; i < f->sent_count; i++)
		if (f->sent[i]->seq > w->seq && changes_target(f->sent[i]))
			return;
	if (writes_are_late(w->q))
		check_in_time(m, !w->s, w->to, w->length);
	else
		model_check(m, !w->s, w->to, w->length, w->op->name);
}

/* Its effect is there. */
static void check_effect(struct model *m, struct work *w)
{
	const struct pair_kind *k = pair_kind(w->q);
	uint64_t at = k->out + (uint64_t)w->slot * k->room;

	if (w->op->no_result && w->expect == IBV_WC_SUCCESS)
		act_read(m->side[w->s], at, m->shadow[w->s] + at, w->length);
	if (w->op->local_write)
		model_check(m, w->s, at, k->room, w->op->name);
	if (w->expect == IBV_WC_SUCCESS && k->type == IBV_QPT_RC)
		check_target(m, w);
}

static void send_completed(struct model *m, int s, int q, const struct ibv_wc *wc)
{
	struct flow *f = &m->flow[s][q];

	while (f->sent_count) {
		struct work *w = f->sent[0];
		bool found = w->r.wr_id == wc->wr_id;

		if (!found && (w->r.flags & IBV_SEND_SIGNALED))
			fail("pair %d: completion of %llu came before that of %llu (%s)",
			     q, (unsigned long long)wc->wr_id,
			     (unsigned long long)w->r.wr_id, w->op->name);
		if (!found && w->expect != IBV_WC_SUCCESS)
			fail("pair %d: no completion with error of an unsignaled %s",
			     q, w->op->name);
		apply(m, w);
		f->sent_count--;
		memmove(f->sent, f->sent + 1,
			(size_t)f->sent_count * sizeof(f->sent[0]));
		f->out_used[w->slot]--;
		if (found && wc->status != w->expect &&
		    !(w->or_unanswered && wc->status == IBV_WC_RETRY_EXC_ERR))
			fail("pair %d: %s of %u bytes ended with '%s', the model says '%s'",
			     q, w->op->name, w->length,
			     ibv_wc_status_str(wc->status),
			     ibv_wc_status_str(w->expect));
		if (found && wc->status == IBV_WC_SUCCESS)
			expect_eq(wc->opcode, w->op->wc_opcode);
		if (found && wc->status == IBV_WC_SUCCESS && w->op->local_write)
			expect_eq(wc->byte_len, w->length);
		check_effect(m, w);
		work_put(w);
		if (found)
			return;
	}
	fail("pair %d: send completion %llu of nothing", q,
	     (unsigned long long)wc->wr_id);
}

/* The posted receive that the completion is of. */
static struct receive take_receive(struct model *m, int s, int q,
				   const struct ibv_wc *wc)
{
	bool shared = pair_kind(q)->srq;
	struct receive *list = shared ? m->srq[s] : m->flow[s][q].recvs;
	int *count = shared ? &m->srq_count[s] : &m->flow[s][q].recv_count;
	struct receive r;
	int i = 0;

	while (shared && i < *count && list[i].wr_id != wc->wr_id)
		i++;
	if (i >= *count || list[i].wr_id != wc->wr_id)
		fail("pair %d: receive %llx completed out of order", q,
		     (unsigned long long)wc->wr_id);
	r = list[i];
	(*count)--;
	memmove(list + i, list + i + 1, (size_t)(*count - i) * sizeof(*list));
	m->flow[s][r.q].in_used[r.slot] = false;
	return r;
}

/* The oldest message on its way here from the sender that is named. */
static struct work *take_due(struct model *m, int s, int q,
			     const struct ibv_wc *wc)
{
	struct flow *f = &m->flow[s][q];
	bool ud = pair_kind(q)->type == IBV_QPT_UD;

	for (int i = 0; i < f->due_count; i++) {
		struct work *w = f->due[i];

		if (ud && m->qpn[w->s][w->q] != wc->src_qp)
			continue;
		f->due_count--;
		memmove(f->due + i, f->due + i + 1,
			(size_t)(f->due_count - i) * sizeof(f->due[0]));
		return w;
	}
	fail("pair %d: a message that nobody sent", q);
}

static void place_message(struct model *m, int s, const struct receive *r,
			  const struct work *w, bool ud)
{
	const struct pair_kind *k = pair_kind(r->q);
	uint64_t at = k->in + (uint64_t)r->slot * k->room;

	if (ud) { /* the routing header is the adapter's matter */
		act_read(m->side[s], at, m->shadow[s] + at, GRH);
		at += GRH;
	}
	/* The pieces of a receive lie one behind the other. */
	memcpy(m->shadow[s] + at, w->data, w->length);
}

static void recv_completed(struct model *m, int s, int q, const struct ibv_wc *wc,
			   bool *solicited)
{
	const struct pair_kind *k = pair_kind(q);
	bool ud = k->type == IBV_QPT_UD, write;
	struct receive r = take_receive(m, s, q, wc);
	struct work *w;

	if (r.expect != IBV_WC_SUCCESS || m->flow[s][q].broken) {
		expect_eq(wc->status, r.expect != IBV_WC_SUCCESS ?
					      r.expect : IBV_WC_WR_FLUSH_ERR);
		return;
	}
	expect_status(*wc, IBV_WC_SUCCESS);
	w = take_due(m, s, q, wc);
	write = w->op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	apply_until(m, &m->flow[w->s][w->q], w->seq);
	*solicited = w->r.flags & IBV_SEND_SOLICITED;
	expect_eq(wc->byte_len, w->length + (ud ? GRH : 0));
	expect_eq(wc->opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	expect_eq(wc->wc_flags, (w->op->imm ? IBV_WC_WITH_IMM : 0) |
					(ud ? IBV_WC_GRH : 0));
	if (w->op->imm)
		expect_eq(wc->imm_data, w->r.imm);
	if (!write)
		place_message(m, s, &r, w, ud);
	model_check(m, s, pair_kind(r.q)->in +
		    (uint64_t)r.slot * pair_kind(r.q)->room,
		    pair_kind(r.q)->room, work_text(w));
	check_target(m, w);
	work_put(w);
}

void model_completed(struct model *m, int s, int cq, const struct ibv_wc *wc)
{
	struct model_cq *c = &m->cq[s][cq];
	bool recv = wc->wr_id & RECV_ID, solicited = false;
	int q = 0;

	while (q < model_pairs() && m->qpn[s][q] != wc->qp_num)
		q++;
	if (q == model_pairs())
		fail("completion of unknown queue pair 0x%x", wc->qp_num);
	expect_eq(pair_kind(q)->cq[recv ? RECV_CQ : SEND_CQ], cq);
	if (recv)
		recv_completed(m, s, q, wc, &solicited);
	else
		send_completed(m, s, q, wc);
	if (c->fresh && (c->armed == ARMED_NEXT ||
			 (c->armed == ARMED_SOLICITED &&
			  (solicited || wc->status != IBV_WC_SUCCESS)))) {
		c->owed = 1;
		c->armed = UNARMED;
	}
	m->completions++;
}
