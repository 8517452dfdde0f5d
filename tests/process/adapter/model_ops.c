/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of the model: what each needs and what it does to memory. */
#include <arpa/inet.h>
#include <string.h>

#include "model.h"

enum {
	CONNECTED = 1 << IBV_QPT_RC | 1 << IBV_QPT_UC,
	RELIABLE = 1 << IBV_QPT_RC,
	ANY = CONNECTED | 1 << IBV_QPT_UD,
};

static uint32_t any_length(struct model *m, uint32_t most)
{
	uint32_t n;

	switch (dice(m, 8)) {
	case 0:
		n = dice(m, 200);
		break;
	case 1: /* around what fits a slot, a line, the eager limit */
		n = 94 + dice(m, 5);
		break;
	case 2:
		n = 16382 + dice(m, 5);
		break;
	case 3:
		n = dice(m, 4) * 32 + dice(m, 3);
		break;
	case 4:
		n = most;
		break;
	case 5:
		n = dice(m, most + 1);
		break;
	default:
		n = dice(m, 5000);
		break;
	}
	return n > most ? n % (most + 1) : n;
}

static void choose_message(struct model *m, struct work *w)
{
	uint32_t room = pair_kind(w->q)->room;

	w->length = any_length(m, pair_kind(w->q)->type == IBV_QPT_UD ?
					  (room - GRH < 4096 ? room - GRH : 4096) :
					  room);
}

static void choose_range(struct model *m, struct work *w)
{
	const struct pair_kind *k = pair_kind(w->q);

	w->length = any_length(m, k->room);
	w->to = k->target + dice(m, k->room - w->length + 1);
}

static void choose_word(struct model *m, struct work *w)
{
	w->length = sizeof(uint64_t);
	w->to = pair_kind(w->q)->words + dice(m, WORDS) * sizeof(uint64_t);
	w->r.compare_add = (uint64_t)dice(m, UINT32_MAX) << 32 |
			   dice(m, UINT32_MAX);
	w->r.swap = m->random;
	/* Half of the comparisons should find what they expect, if nothing else
	 * of the direction is on its way. */
	if (w->op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP && dice(m, 2))
		memcpy(&w->r.compare_add, m->shadow[!w->s] + w->to,
		       sizeof(w->r.compare_add));
}

static void choose_shared(struct model *m, struct work *w)
{
	w->length = sizeof(uint64_t);
	w->to = SHARED_WORD;
	w->r.compare_add = dice(m, 1000);
}

static void nothing(struct model *m, struct work *w)
{
}

static void apply_write(struct model *m, struct work *w)
{
	memcpy(m->shadow[!w->s] + w->to, w->data, w->length);
}

/* Into the buffers of the request. */
static void scatter(struct model *m, const struct work *w, const uint8_t *from)
{
	for (int i = 0; i < w->r.num_sge; i++) {
		const struct ibv_sge *g = &w->r.sge[i];

		memcpy(m->shadow[w->s] + (g->addr - m->side[w->s]->addr), from,
		       g->length);
		from += g->length;
	}
}

static void apply_read(struct model *m, struct work *w)
{
	scatter(m, w, m->shadow[!w->s] + w->to);
}

static void apply_compare_swap(struct model *m, struct work *w)
{
	uint64_t was;

	memcpy(&was, m->shadow[!w->s] + w->to, sizeof(was));
	if (was == w->r.compare_add)
		memcpy(m->shadow[!w->s] + w->to, &w->r.swap, sizeof(was));
	scatter(m, w, (const uint8_t *)&was);
}

static void apply_fetch_add(struct model *m, struct work *w)
{
	uint64_t was, sum;

	memcpy(&was, m->shadow[!w->s] + w->to, sizeof(was));
	sum = was + w->r.compare_add;
	memcpy(m->shadow[!w->s] + w->to, &sum, sizeof(sum));
	scatter(m, w, (const uint8_t *)&was);
}

const struct model_op model_ops[] = {
	{
		.name = "send", .opcode = IBV_WR_SEND, .wc_opcode = IBV_WC_SEND,
		.services = ANY, .weight = 8, .message = true,
		.choose = choose_message, .apply = nothing,
	}, {
		.name = "send with immediate", .opcode = IBV_WR_SEND_WITH_IMM,
		.wc_opcode = IBV_WC_SEND, .services = ANY, .weight = 4,
		.message = true, .imm = true,
		.choose = choose_message, .apply = nothing,
	}, {
		.name = "write", .opcode = IBV_WR_RDMA_WRITE,
		.wc_opcode = IBV_WC_RDMA_WRITE, .services = CONNECTED,
		.weight = 4, .remote = true,
		.choose = choose_range, .apply = apply_write,
	}, {
		.name = "write with immediate",
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.wc_opcode = IBV_WC_RDMA_WRITE, .services = CONNECTED,
		.weight = 4, .message = true, .imm = true, .remote = true,
		.choose = choose_range, .apply = apply_write,
	}, {
		.name = "read", .opcode = IBV_WR_RDMA_READ,
		.wc_opcode = IBV_WC_RDMA_READ, .services = RELIABLE,
		.weight = 4, .remote = true, .reads_remote = true,
		.local_write = true,
		.choose = choose_range, .apply = apply_read,
	}, {
		.name = "compare and swap", .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wc_opcode = IBV_WC_COMP_SWAP, .services = RELIABLE,
		.weight = 3, .remote = true, .reads_remote = true,
		.local_write = true,
		.choose = choose_word, .apply = apply_compare_swap,
	}, {
		.name = "fetch and add",
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wc_opcode = IBV_WC_FETCH_ADD, .services = RELIABLE,
		.weight = 3, .remote = true, .reads_remote = true,
		.local_write = true,
		.choose = choose_word, .apply = apply_fetch_add,
	}, {
		.name = "fetch and add by all",
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wc_opcode = IBV_WC_FETCH_ADD, .services = RELIABLE,
		.weight = 2, .remote = true, .reads_remote = true,
		.local_write = true, .no_result = true,
		.choose = choose_shared, .apply = apply_fetch_add,
	},
};
const int model_op_count = sizeof(model_ops) / sizeof(model_ops[0]);

const struct model_op *model_op_named(const char *name)
{
	for (int i = 0; i < model_op_count; i++)
		if (!strcmp(model_ops[i].name, name))
			return &model_ops[i];
	fail("test error: no operation '%s'", name);
}
