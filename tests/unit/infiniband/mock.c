/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "mock.h"
#include "util/clock.h"

static struct mock *mock_of(struct ibv_context *context)
{
	return container_of(context, struct mock, context);
}

static struct mock_queue *queue_of(struct ibv_cq *cq)
{
	struct mock *m = mock_of(cq->context);

	return cq == &m->recv_cq ? &m->rq : &m->sq;
}

static int queue_add(struct mock_queue *q, const struct mock_wr *wr)
{
	if (q->accept == 0 && q->error)
		return q->error;
	if (q->accept)
		q->accept--;
	if (q->open == q->capacity)
		return ENOMEM;
	q->wr[(q->first + q->open++) % MOCK_MAX] = *wr;
	q->posts++;
	return 0;
}

static void queue_complete(struct mock_queue *q, const struct ibv_wc *wc)
{
	assert_true(q->wc_count < MOCK_MAX);
	q->wc[(q->wc_first + q->wc_count++) % MOCK_MAX] = *wc;
}

static void raise_event(struct mock *m)
{
	const uint64_t one = 1;

	if (!m->armed)
		return;
	m->armed = false;
	m->events_raised++;
	assert_int_equal(write(m->events.fd, &one, sizeof(one)), sizeof(one));
}

static void note_call(struct mock *m, char call)
{
	size_t n = strlen(m->calls);

	if (n + 1 < sizeof(m->calls))
		m->calls[n] = call;
}

static int mock_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct mock *m = mock_of(cq->context);

	note_call(m, 'a');
	if (m->before_arm)
		m->before_arm(m);
	m->armed = true;
	atomic_fetch_add(&m->arms, 1);
	return 0;
}

/* These two are no entries of the table, but functions of the library. */
int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq,
		     void **context)
{
	struct mock *m = container_of(c, struct mock, events);
	uint64_t count;

	note_call(m, 'e');
	if (read(c->fd, &count, sizeof(count)) < 0)
		return -1;
	m->events_taken++;
	*cq = &m->recv_cq;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	struct mock *m = mock_of(cq->context);

	m->events_acked += count;
	m->ack_calls++;
	assert_true(m->events_acked <= m->events_taken);
}

static int mock_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad)
{
	struct mock *m = mock_of(qp->context);

	for (; wr; wr = wr->next) {
		struct mock_wr w = { .wr_id = wr->wr_id,
				     .num_sge = wr->num_sge };
		int err;

		memcpy(w.sge, wr->sg_list,
		       (unsigned)wr->num_sge * sizeof(w.sge[0]));
		err = queue_add(&m->rq, &w);
		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}

static int mock_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			  struct ibv_send_wr **bad)
{
	struct mock *m = mock_of(qp->context);

	for (; wr; wr = wr->next) {
		struct mock_wr w = { .wr_id = wr->wr_id,
				     .num_sge = wr->num_sge,
				     .flags = wr->send_flags };
		int err;

		memcpy(w.sge, wr->sg_list,
		       (unsigned)wr->num_sge * sizeof(w.sge[0]));
		if (m->channel.tx.ah)
			w.remote_qpn = wr->wr.ud.remote_qpn;
		err = queue_add(&m->sq, &w);
		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}

static int mock_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	struct mock *m = mock_of(cq->context);
	struct mock_queue *q = queue_of(cq);
	int n = 0;

	if (m->automatic && q == &m->rq)
		mock_receive(m, 1);
	else if (m->automatic)
		mock_sent(m, IBV_WC_SUCCESS);
	for (; n < max && q->wc_count; n++, q->wc_count--)
		wc[n] = q->wc[q->wc_first++ % MOCK_MAX];
	if (q == &m->rq)
		note_call(m, 'p');
	if (n == 0 && q == &m->rq && m->after_empty_poll)
		m->after_empty_poll(m);
	return n;
}

static struct memory_block *mock_memory_alloc(struct memory_type *t,
					      size_t size)
{
	struct mock *m = container_of(t, struct mock, memory);
	struct memory_block *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->parent = memory_alloc(&memory_heap, size);
	assert_non_null(b->parent);
	b->addr = b->parent->addr;
	b->size_bytes = b->parent->size_bytes;
	b->type = t;
	b->private_data = &m->mr;
	return b;
}

static void mock_memory_free(struct memory_type *t, struct memory_block *b)
{
	memory_free(b->parent);
	free(b);
}

void mock_init(struct mock *m, const struct mock_setup *s)
{
	unsigned tx_depth = s->tx_depth ?: 32;

	clock_init();
	memset(m, 0, sizeof(*m));
	m->context.ops.poll_cq = mock_poll_cq;
	m->context.ops.post_recv = mock_post_recv;
	m->context.ops.post_send = mock_post_send;
	m->context.ops.req_notify_cq = mock_req_notify_cq;
	m->events.fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(m->events.fd >= 0);
	m->qp.context = m->recv_cq.context = m->send_cq.context = &m->context;
	m->rq.capacity = s->rx_depth;
	m->sq.capacity = tx_depth;
	m->mr.lkey = MOCK_LKEY;
	m->registrar.name = "mock";
	m->memory = (struct memory_type){
		.name = "mock", .parent = &memory_heap, .alignment = 64,
		.alloc = mock_memory_alloc, .free = mock_memory_free,
		.private_data = &m->registrar,
	};
	assert_int_equal(pool_init(&m->pool, s->samples, s->capacity,
				   &m->memory), 0);
	const struct ib_channel_config cfg = {
		.name = "mock", .registrar = &m->registrar,
		.rx_depth = s->rx_depth, .rx_threshold = s->rx_threshold,
		.tx_depth = tx_depth, .signal_every = s->signal_every ?: 16,
		.ud = s->ud, .notify_fd = -1,
		.events = s->sleeps ? &m->events : NULL, .spin_ns = s->spin_ns,
	};
	assert_int_equal(ib_channel_init(&m->channel, &cfg), 0);
	mock_open(m, s);
}

void mock_open(struct mock *m, const struct mock_setup *s)
{
	static struct ibv_ah ah;
	const struct ib_channel_qp q = {
		.qp = &m->qp, .recv_cq = &m->recv_cq, .send_cq = &m->send_cq,
		.inline_limit = s->inline_limit,
	};

	ib_channel_open_rx(&m->channel, &q);
	ib_channel_open_tx(&m->channel, s->ud ? &ah : NULL, 0x1234, 0x5678);
}

void mock_destroy(struct mock *m)
{
	ib_channel_release_all(&m->channel);
	assert_int_equal(ib_channel_held(&m->channel), 0);
	assert_int_equal(pool_destroy(&m->pool), 0);
	ib_channel_destroy(&m->channel);
	assert_int_equal(m->events_acked, m->events_taken);
	close(m->events.fd);
}

static struct sample *sample_of(const struct mock_wr *wr)
{
	const struct ibv_sge *sge = &wr->sge[wr->num_sge - 1];

	return container_of((void *)(uintptr_t)sge->addr, struct sample,
			    sequence);
}

struct sample *mock_receive_raw(struct mock *m, uint32_t byte_len,
				enum ibv_wc_status status)
{
	struct mock_wr *wr = &m->rq.wr[m->rq.first];
	const struct ibv_wc wc = { .wr_id = wr->wr_id, .status = status,
				   .opcode = IBV_WC_RECV,
				   .byte_len = byte_len };

	if (!m->rq.open)
		return NULL;
	m->rq.first = (m->rq.first + 1) % MOCK_MAX;
	m->rq.open--;
	queue_complete(&m->rq, &wc);
	return sample_of(wr);
}

void mock_receive_event(struct mock *m)
{
	mock_receive(m, 1);
	raise_event(m);
}

struct sample *mock_receive(struct mock *m, unsigned values)
{
	uint32_t grh = m->channel.rx.ud ? IB_GRH_SIZE : 0;
	struct sample *s = mock_receive_raw(
		m, grh + (uint32_t)sample_wire_size(values), IBV_WC_SUCCESS);

	if (s) {
		s->sequence = m->rq.posts;
		s->origin = (struct timespec){ 1, 2 };
		for (unsigned i = 0; i < values; i++)
			s->data[i].f = i;
	}
	return s;
}

bool mock_sent(struct mock *m, enum ibv_wc_status status)
{
	while (m->sq.open) {
		struct mock_wr *wr = &m->sq.wr[m->sq.first];
		const struct ibv_wc wc = { .wr_id = wr->wr_id,
					   .status = status,
					   .opcode = IBV_WC_SEND };

		m->sq.first = (m->sq.first + 1) % MOCK_MAX;
		m->sq.open--;
		if (status == IBV_WC_SUCCESS &&
		    !(wr->flags & IBV_SEND_SIGNALED))
			continue;
		queue_complete(&m->sq, &wc);
		return true;
	}
	return false;
}

void mock_flush(struct mock *m)
{
	while (m->rq.open)
		mock_receive_raw(m, 0, IBV_WC_WR_FLUSH_ERR);
	while (m->sq.open)
		mock_sent(m, IBV_WC_WR_FLUSH_ERR);
}

void mock_samples(struct mock *m, struct sample *smps[], unsigned cnt,
		  unsigned values)
{
	assert_int_equal(sample_alloc_many(&m->pool, smps, cnt), cnt);
	for (unsigned i = 0; i < cnt; i++) {
		smps[i]->length = values;
		smps[i]->sequence = i;
	}
}
