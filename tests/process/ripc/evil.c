/* SPDX-License-Identifier: BSD-2-Clause */
#include "evil.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SLOTS = 64, SLOT_BYTES = 4096, ANSWER_MS = 5000 };

uint64_t evil_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void evil_nap(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* The next event of the connection manager; -1: none in that time. */
static int next_event(struct evil *e, unsigned ms)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int type;

	if (poll(&p, 1, (int)ms) != 1 || rdma_get_cm_event(e->channel, &event))
		return -1;
	type = event->event;
	if (type == RDMA_CM_EVENT_REJECTED && event->param.conn.private_data_len)
		e->reason = *(const uint8_t *)event->param.conn.private_data;
	if (type == RDMA_CM_EVENT_ESTABLISHED &&
	    event->param.conn.private_data_len >= sizeof(e->accepted))
		memcpy(e->accepted, event->param.conn.private_data, sizeof(e->accepted));
	if (type == RDMA_CM_EVENT_DISCONNECTED)
		e->ended = true;
	rdma_ack_cm_event(event);
	return type;
}

static void post_receive(struct evil *e, unsigned slot)
{
	struct ibv_sge sge = { (uintptr_t)e->memory + slot * SLOT_BYTES, SLOT_BYTES,
			       e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(e->id->qp, &wr, &bad))
		e->ended = true;
}

static void queues(struct evil *e)
{
	struct ibv_qp_init_attr a = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = SLOTS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	size_t bytes = (SLOTS + 1) * SLOT_BYTES + EVIL_DATA_BYTES;

	CHECK((e->pd = ibv_alloc_pd(e->id->verbs)));
	CHECK((e->cq = ibv_create_cq(e->id->verbs, 256, NULL, NULL, 0)));
	e->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	CHECK(e->memory != MAP_FAILED);
	e->out = e->memory + SLOTS * SLOT_BYTES;
	e->data = e->out + SLOT_BYTES;
	CHECK((e->mr = ibv_reg_mr(e->pd, e->memory, bytes,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					  IBV_ACCESS_REMOTE_WRITE)));
	a.send_cq = a.recv_cq = e->cq;
	CHECK(!rdma_create_qp(e->id, e->pd, &a));
	for (unsigned i = 0; i < SLOTS; i++)
		post_receive(e, i);
}

bool evil_connect(struct evil *e, const struct evil_target *t, const void *data, size_t bytes)
{
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = (uint8_t)bytes,
					 .responder_resources = 4, .initiator_depth = 4,
					 .retry_count = 7, .rnr_retry_count = 7 };
	struct sockaddr_in at = t->at;

	memset(e, 0, sizeof(*e));
	CHECK((e->channel = rdma_create_event_channel()));
	CHECK(!rdma_create_id(e->channel, &e->id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(e->id, NULL, (struct sockaddr *)&at, ANSWER_MS));
	CHECK(next_event(e, ANSWER_MS) == RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!rdma_resolve_route(e->id, ANSWER_MS));
	CHECK(next_event(e, ANSWER_MS) == RDMA_CM_EVENT_ROUTE_RESOLVED);
	queues(e);
	CHECK(!rdma_connect(e->id, &param));
	e->up = next_event(e, ANSWER_MS) == RDMA_CM_EVENT_ESTABLISHED;
	return e->up;
}

bool evil_join(struct evil *e, const struct evil_target *t, uint64_t instance,
	       uint16_t credits)
{
	const struct packet_connect p = { .instance = instance, .to = t->instance,
					  .credits = credits, .message_bytes = SLOT_BYTES };
	const struct packet_key none = { .set = false };
	uint8_t data[PACKET_CONNECT_BYTES];
	bool up;

	packet_connect_encode(&p, &none, 0, data);
	up = evil_connect(e, t, data, sizeof(data));
	e->instance = instance;
	return up;
}

void evil_hello(struct evil *e, const struct evil_target *t, uint64_t instance)
{
	const struct packet_message m = { .type = PACKET_HELLO, .number = 1 };

	CHECK(evil_join(e, t, instance, 32));
	CHECK(evil_say(e, &m));
}

/* ---- messages ---- */

static bool is_message(struct evil *e, const struct ibv_wc *wc, struct packet_message *m)
{
	size_t header;

	CHECK(!packet_message_decode(m, false, e->memory + wc->wr_id * SLOT_BYTES, wc->byte_len,
				     &header));
	if (!e->mute)
		post_receive(e, (unsigned)wc->wr_id);
	e->owed += m->type != PACKET_CREDIT && !e->mute;
	return m->type != PACKET_CREDIT;
}

static void keep(struct evil *e, const struct packet_message *m)
{
	e->heard[e->heard_end++ % 8] = *m;
	if (e->heard_end - e->heard_first > 8)
		e->heard_first++;
}

/* Posts it; what comes meanwhile is kept. */
static bool post(struct evil *e, struct ibv_send_wr *wr)
{
	uint64_t until = evil_now_ms() + ANSWER_MS;
	struct packet_message m;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->wr_id = EVIL_SENT;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (e->ended || ibv_post_send(e->id->qp, wr, &bad))
		return false;
	while (evil_now_ms() < until && !e->ended) {
		if (ibv_poll_cq(e->cq, 1, &wc) != 1) {
			next_event(e, 0);
			sched_yield();
		} else if (wc.status != IBV_WC_SUCCESS) {
			e->ended = true;
		} else if (wc.wr_id == EVIL_SENT) {
			return true;
		} else if (is_message(e, &wc, &m)) {
			keep(e, &m);
		}
	}
	return false;
}

bool evil_send(struct evil *e, size_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)e->out, (uint32_t)bytes, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	return post(e, &wr);
}

bool evil_say(struct evil *e, const struct packet_message *m)
{
	struct packet_message said = *m;

	said.credits = (uint16_t)(said.credits + e->owed);
	e->owed = 0;
	return evil_send(e, packet_message_encode(&said, false, e->out));
}

bool evil_write(struct evil *e, uint64_t address, uint32_t key, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)e->data, bytes, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { .remote_addr = address, .rkey = key } };

	return post(e, &wr);
}

bool evil_hear(struct evil *e, struct packet_message *m, unsigned ms)
{
	uint64_t until = evil_now_ms() + ms;
	struct ibv_wc wc;

	if (e->heard_first != e->heard_end) {
		*m = e->heard[e->heard_first++ % 8];
		return true;
	}
	do {
		if (ibv_poll_cq(e->cq, 1, &wc) != 1)
			next_event(e, 1);
		else if (wc.status != IBV_WC_SUCCESS)
			e->ended = true;
		else if (wc.wr_id != EVIL_SENT && is_message(e, &wc, m))
			return true;
	} while (evil_now_ms() < until && !e->ended);
	return false;
}

bool evil_is_ended(struct evil *e, unsigned ms)
{
	struct packet_message m;
	uint64_t until = evil_now_ms() + ms;

	while (!e->ended && evil_now_ms() < until)
		evil_hear(e, &m, 10);
	return e->ended;
}

void evil_close(struct evil *e)
{
	if (e->up)
		rdma_disconnect(e->id);
	rdma_destroy_qp(e->id);
	ibv_destroy_cq(e->cq);
	ibv_dereg_mr(e->mr);
	ibv_dealloc_pd(e->pd);
	rdma_destroy_id(e->id);
	rdma_destroy_event_channel(e->channel);
	munmap(e->memory, (SLOTS + 1) * SLOT_BYTES + EVIL_DATA_BYTES);
}
