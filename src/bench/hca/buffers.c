/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of messages, and the requests that point at it: made, touched and filled in before
 * anything is measured. A piece of a scatter list lies GAP bytes behind the one before.
 */
#define LOG_ROOM "bench/hca"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/hca/end.h"

#define GAP 64

static uint32_t header_bytes(const struct hca_end *e)
{
	return e->c->type == HCA_UD ? HCA_GRH_BYTES : 0;
}

/* How many messages may be under way at once, as far as the case goes. */
static uint32_t messages_wanted(const struct hca_case *c)
{
	return c->mode == HCA_ROUNDTRIP ? MIN(c->burst, 128u) :
	       c->mode == HCA_THROUGHPUT ? MIN(c->burst, 8192u) : c->burst;
}

static void choose_sizes(struct hca_end *e, const struct ibv_device_attr *attr)
{
	const struct hca_case *c = e->c;
	uint32_t wanted = MAX(messages_wanted(c), c->batch);
	uint32_t most = (uint32_t)MIN(attr->max_qp_wr, attr->max_cqe - 1);

	e->stride = (uint32_t)hca_round_up(c->size + GAP * (c->sges - 1) + header_bytes(e), GAP);
	e->buffers = c->buffers ?: (uint32_t)MIN(wanted, HCA_BUFFERS_BYTES / e->stride);
	e->buffers = MAX(e->buffers, c->batch);
	e->send_depth = MAX(MIN(wanted, most), c->batch);
	e->recv_depth = MIN(wanted, most);
	if (c->op == HCA_SEND) /* each receive has a buffer of its own */
		e->recv_depth = MIN(e->recv_depth, e->buffers);
}

static int map(struct hca_end *e)
{
	e->memory_bytes = hca_round_up(2 * (uint64_t)e->buffers * e->stride, HCA_HUGE_BYTES);
	e->memory = hca_map(e->memory_bytes, MAP_PRIVATE, &e->report->huge);
	if (!e->memory)
		return log_fail(-errno, "no memory for 2 x %u messages of %u bytes: %s", e->buffers,
				e->c->size, strerror(errno));
	memset(e->memory, 1, e->memory_bytes);
	e->out = e->memory;
	e->in = e->memory + (size_t)e->buffers * e->stride;
	return 0;
}

static struct ibv_mr *register_memory(struct hca_end *e, void *start, size_t bytes)
{
	int access = IBV_ACCESS_LOCAL_WRITE |
		     (e->c->type == HCA_UD ? 0 : IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, start, bytes, access);

	if (!mr)
		log_error("cannot register %zu bytes: %s", bytes, strerror(errno));
	return mr;
}

int hca_buffers_make(struct hca_end *e)
{
	struct ibv_device_attr attr;
	int err = ibv_query_device(e->verbs, &attr);

	if (err)
		return log_fail(-err, "cannot query the adapter: %s", strerror(err));
	if ((uint32_t)attr.max_sge < e->c->sges)
		return log_fail(-EOPNOTSUPP, "sges = %u: the adapter takes at most %d", e->c->sges,
				attr.max_sge);
	if (e->c->op == HCA_WRITE && hca_end_is_iwarp(e))
		return log_fail(-EOPNOTSUPP, "op = write: iWARP has no immediate data, by which messages are told apart; op = send does without");
	choose_sizes(e, &attr);
	err = map(e);
	if (err)
		return err;
	e->mr = register_memory(e, e->memory, e->memory_bytes);
	if (e->mr && e->c->stamp_send)
		e->stamped_mr = register_memory(e, e->s->stamped, e->stride);
	if (!e->mr || (e->c->stamp_send && !e->stamped_mr))
		return -errno;
	e->mine.address = (uintptr_t)e->in;
	e->mine.rkey = e->mr->rkey;
	e->mine.buffers = e->buffers;
	e->mine.stride = e->stride;
	return 0;
}

/* The pieces of a message that lies at `start`, of which a received one has a header. */
static void fill_list(const struct hca_end *e, struct ibv_sge *sge, const char *start,
		      uint32_t header, uint32_t lkey)
{
	uint32_t piece = e->c->size / e->c->sges;

	for (uint32_t i = 0; i < e->c->sges; i++) {
		bool last = i + 1 == e->c->sges;

		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)start + (i ? header + i * (piece + GAP) : 0),
			.length = (last ? e->c->size - i * piece : piece) + (i ? 0 : header),
			.lkey = lkey,
		};
	}
}

static void fill_send(struct hca_end *e, uint32_t i, struct ibv_sge *sge)
{
	const struct hca_case *c = e->c;
	struct ibv_send_wr *wr = &e->send_wr[i];

	if (e->stamped_mr)
		fill_list(e, sge, e->s->stamped, 0, e->stamped_mr->lkey);
	else
		fill_list(e, sge, e->out + (size_t)i * e->stride, 0, e->mr->lkey);
	*wr = (struct ibv_send_wr){
		.sg_list = sge,
		.num_sge = (int)c->sges,
		.next = i + 1 < e->buffers ? wr + 1 : NULL,
		.opcode = c->op == HCA_WRITE ? IBV_WR_RDMA_WRITE_WITH_IMM :
			  hca_end_is_iwarp(e) ? IBV_WR_SEND :
						IBV_WR_SEND_WITH_IMM,
		.send_flags = c->send_inline ? IBV_SEND_INLINE : 0,
	};
	if (c->op == HCA_WRITE) {
		wr->wr.rdma.rkey = e->theirs.rkey;
		wr->wr.rdma.remote_addr = e->theirs.address +
			(uint64_t)(i % e->theirs.buffers) * e->theirs.stride;
	} else if (c->type == HCA_UD) {
		wr->wr.ud.ah = e->ah;
		wr->wr.ud.remote_qpn = e->remote_qpn;
		wr->wr.ud.remote_qkey = e->remote_qkey;
	}
}

int hca_buffers_requests(struct hca_end *e)
{
	uint32_t sges = e->c->sges;

	if (e->theirs.buffers != e->buffers || e->theirs.stride != e->stride)
		return log_fail(-EPROTO,
				"the other end has other buffers: is it of the same version?");
	e->send_wr = calloc(e->buffers, sizeof(*e->send_wr));
	e->recv_wr = calloc(e->recv_depth, sizeof(*e->recv_wr));
	e->sge = calloc((size_t)(e->buffers + e->recv_depth) * sges, sizeof(*e->sge));
	if (!e->send_wr || !e->recv_wr || !e->sge)
		return log_fail(-ENOMEM, "no memory for %u requests", e->buffers + e->recv_depth);
	for (uint32_t i = 0; i < e->buffers; i++)
		fill_send(e, i, e->sge + (size_t)i * sges);
	for (uint32_t i = 0; i < e->recv_depth; i++) {
		struct ibv_recv_wr *wr = &e->recv_wr[i];

		wr->next = i + 1 < e->recv_depth ? wr + 1 : NULL;
		wr->wr_id = i;
		if (e->c->op == HCA_WRITE)
			continue; /* the data goes elsewhere */
		wr->sg_list = e->sge + (size_t)(e->buffers + i) * sges;
		wr->num_sge = (int)sges;
		fill_list(e, wr->sg_list, e->in + (size_t)i * e->stride, header_bytes(e),
			  e->mr->lkey);
	}
	/* Of shorter queues than asked for, too. */
	e->limit = e->c->send_inline || e->stamped_mr ? e->send_depth :
							MIN(e->send_depth, e->buffers);
	e->signal_every = 1;
	if (e->c->unsignaled)
		e->signal_every = MAX(MIN(e->limit / 2, e->limit - e->c->batch + 1), 1u);
	return 0;
}

void hca_buffers_free(struct hca_end *e)
{
	if (e->stamped_mr)
		ibv_dereg_mr(e->stamped_mr);
	if (e->mr)
		ibv_dereg_mr(e->mr);
	if (e->memory)
		munmap(e->memory, e->memory_bytes);
	free(e->send_wr);
	free(e->recv_wr);
	free(e->sge);
}

uint64_t hca_buffers_time(const struct hca_end *e, uint64_t slot)
{
	uint64_t ring = e->c->op == HCA_WRITE ? e->buffers : e->recv_depth;
	uint64_t t_ns;

	memcpy(&t_ns, e->in + slot % ring * e->stride + header_bytes(e), sizeof(t_ns));
	return t_ns;
}
