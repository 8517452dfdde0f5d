/* SPDX-License-Identifier: BSD-2-Clause */
/* See world.h. Compiled like the sources under test, because it takes their locks. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "hca/memory/promising.h"
#include "hca/object/cq.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/rq.h"
#include "hca/object/sq.h"
#include "hca/path/path.h"
#include "hca/queue/flush.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "transport/list.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/move/send.h"
#include "transport/shm/link/state.h"
#include "util/list.h"

#define ENTRIES 4u
#define CQ_ENTRIES 16u
#define SEND_STRIDE 128u
#define RECV_STRIDE (sizeof(struct hca_rwqe) + sizeof(struct ibv_sge))

struct world world;
struct hca_segment *world_segment;
struct hca_self hca_self;

static struct shm_area *area;
static struct shm_inflight inflight[2][SHM_SLOTS];
static struct ibv_wc cq_entries[2][CQ_ENTRIES];
static _Alignas(64) uint8_t send_queue[ENTRIES * SEND_STRIDE];
static _Alignas(64) uint8_t recv_queue[ENTRIES * RECV_STRIDE];
static struct hca_qp *table[2 * HCA_QPN_BLOCK_SIZE];

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return at;
}

static void make_cq(struct hca_cq *cq, struct ibv_wc *entries)
{
	memset(cq, 0, sizeof(*cq));
	cq->ctx = &world.context;
	cq->ring = entries;
	cq->mask = cq->limit = CQ_ENTRIES - 1;
	cq->sends = true;
}

static void make_link(struct shm_link *l, int role)
{
	memset(l, 0, sizeof(*l));
	l->state = SHM_LINK_UP;
	l->place = (unsigned)role;
	l->fd = l->kick_fd = l->mem_fd = -1;
	l->peer = world_segment;
	l->keys = hca_process.keys;
	l->kin = true;
	l->lends = l->borrows =
		HCA_PEER_REGIONS | HCA_PEER_PTRACE | HCA_PEER_WAKEUP;
	l->key_count = HCA_KEYS;
	l->peer_tag = shm_uuid_tag(hca_process.uuid);
	l->rx_peer = &shm;
	l->tx = &area->dir[role];
	l->rx = &area->dir[!role];
	l->inflight = inflight[role];
	l->fence = true;
	list_init(&l->qps);
	list_init(&l->backlog_qps);
}

static void make_qp(struct hca_qp *qp, uint32_t qpn, uint32_t dest,
		    enum ibv_qp_state state, struct hca_cq *cq)
{
	unsigned at = qpn & (HCA_QPN_BLOCK_SIZE - 1);

	memset(qp, 0, sizeof(*qp));
	qp->ibv.context = &world.context.verbs.context;
	qp->ibv.qp_type = IBV_QPT_RC;
	qp->ibv.qp_num = qpn;
	qp->ibv.state = state;
	qp->reliable = true;
	qp->established = true; /* no IBV_EVENT_COMM_EST */
	qp->pd = &world.pd;
	qp->recv_pd = &world.pd;
	qp->send_cq = qp->recv_cq = cq;
	qp->path = (struct hca_path){ .post = shm_post_plain, .posted = shm_posted,
				      .transmit = shm_transmit, .ops = &shm_ops };
	qp->pub = &world_segment->qps[at];
	qp->counters = &world_segment->qp_counters[at];
	qp->attr.dest_qp_num = dest;
	qp->attr.rnr_retry = 7;
	qp->attr.timeout = 14;
	list_init(&shm_qp(qp)->backlog_entry);
	list_init(&shm_qp(qp)->link_entry);
	*qp->pub = (struct hca_qp_public){
		.qpn = qpn, .state = state, .dest_qpn = dest,
		.access = IBV_ACCESS_REMOTE_WRITE, .pd_id = world.pd.id,
		.type = IBV_QPT_RC, .rq_psn = WORLD_PSN, .connection = 1,
	};
	shm_qp(qp)->known_connection = 1;
	qp->sq.limit = ENTRIES;
	qp->sq.mask = ENTRIES - 1;
	qp->sq.max_sge = 1;
	qp->sq.stride = SEND_STRIDE;
	qp->sq.wqes = send_queue;
	qp->rq.limit = ENTRIES;
	qp->rq.mask = ENTRIES - 1;
	qp->rq.max_sge = 1;
	qp->rq.stride = RECV_STRIDE;
	qp->rq.wqes = recv_queue;
	qp->recv = &qp->rq;
	qp->tx_psn = WORLD_PSN;
	qp->rx_psn = WORLD_PSN;
	qp->state = state;
	table[at] = qp;
	hca_promise_init(qp, hca_flush_promised);
}

static void attach(struct hca_qp *qp, struct shm_link *l, struct hca_qp *other)
{
	shm_qp(qp)->link = l;
	qp->rx_peer = l->rx_peer;
	shm_qp(qp)->remote = other->pub;
	shm_qp(qp)->remote_promise = other->promising.word;
}

static void make_key(void)
{
	struct hca_key *k = &hca_process.keys[hca_key_index(WORLD_KEY)];

	*k = (struct hca_key){
		.key = WORLD_KEY,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		.iova = (uintptr_t)&world, .addr = (uintptr_t)&world,
		.length = sizeof(world), .pd_id = 1, .local_pd = 1,
	};
}

/* Clears the counters of promise.c for the key of b's promises. */
static void forget_promises(void)
{
	struct hca_qp *qp = &world.b;

	if (!qp->promising.word)
		return;
	memset(&qp->rq.post_lock, 0, sizeof(qp->rq.post_lock));
	qp->state = IBV_QPS_RTS;
	qp->rx_peer = &shm;
	qp->promising.ended = qp->promising.stuck = false;
	qp->rq.tail = qp->promising.upto = (uint32_t)qp->rq.head;
	hca_promise_extend(qp);
}

void world_make(enum ibv_qp_state b_state)
{
	if (!area) {
		area = map(sizeof(*area));
		world_segment = map(sizeof(*world_segment));
		hca_process.segment = world_segment;
		hca_process.keys = map(HCA_KEY_TABLE_BYTES);
		hca_process.key_mask = HCA_KEYS - 1;
		hca_process.blocks[WORLD_BLOCK] = table;
		hca_process.own_blocks[0] = WORLD_BLOCK;
		hca_process.own_block_count = 1;
		world_segment->blocks[0] = WORLD_BLOCK;
		hca_process.uuid[0] = 7;
		hca_transports = (struct hca_transports){ { &shm_ops }, 1, 1, shm_ops.poll };
		world.pd.id = 1;
		shm.links[0] = &world.of_b;
		shm.link_count = 1;
	}
	forget_promises();
	stand_in_timers_forget();
	/* A run that was abandoned may have left it locked. */
	pthread_mutex_init(&hca_process.lock, NULL);
	memset(&area->dir[0].slots[0], 0, 4 * sizeof(struct shm_slot));
	memset(&area->dir[1].slots[0], 0, 4 * sizeof(struct shm_slot));
	memset(&area->dir[0].ack, 0, sizeof(struct shm_ack));
	memset(&area->dir[1].ack, 0, sizeof(struct shm_ack));
	memset(world_segment->hazards, 0, sizeof(world_segment->hazards));
	memset(world_segment->hazard_turns, 0,
	       sizeof(world_segment->hazard_turns));
	memset(world_segment->promises, 0, 2 * sizeof(struct hca_promise));
	memset(send_queue, 0, sizeof(send_queue));
	memset(recv_queue, 0, sizeof(recv_queue));
	memset(world.buffer, 0, sizeof(world.buffer));
	memset(world.memory, 0, sizeof(world.memory));
	memset(world.sent, 5, sizeof(world.sent));
	atomic_store(&world_segment->wants_kick, 0);
	atomic_store(&world_segment->alive, 1);
	make_key();
	make_cq(&world.a_cq, cq_entries[0]);
	make_cq(&world.b_cq, cq_entries[1]);
	make_link(&world.to_b, 0);
	make_link(&world.of_b, 1);
	make_qp(&world.a, WORLD_A, WORLD_B, IBV_QPS_RTS, &world.a_cq);
	make_qp(&world.b, WORLD_B, WORLD_A, b_state, &world.b_cq);
	attach(&world.a, &world.to_b, &world.b);
	attach(&world.b, &world.of_b, &world.a);
	hca_self = (struct hca_self){ 0 };
}

void world_post_recv(void)
{
	struct ibv_sge s = { (uintptr_t)world.buffer, 32, WORLD_KEY };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &s, .num_sge = 1 }, *bad;

	if (hca_post_recv(&world.b.ibv, &wr, &bad))
		check_fail("a receive is not posted");
}

void world_send(void)
{
	struct ibv_sge s = { (uintptr_t)world.sent, 32, WORLD_KEY };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &s, .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	hca_lock(&world.a.sq_lock);
	if (!shm_post_plain(&world.a, &wr))
		check_fail("a message is not sent");
	hca_unlock(&world.a.sq_lock);
}

void world_receive(void)
{
	hca_lock(&world.of_b.rx_lock);
	shm_receive(&world.of_b);
	hca_unlock(&world.of_b.rx_lock);
}

void world_take_promises(void)
{
	hca_lock(&world.to_b.ack_lock);
	shm_take_promises(&world.to_b);
	hca_unlock(&world.to_b.ack_lock);
}

void world_harvest(void)
{
	hca_lock(&world.to_b.ack_lock);
	shm_harvest(&world.to_b, true);
	hca_unlock(&world.to_b.ack_lock);
}

void world_run_close(void)
{
	struct progress_timer *t = &world.b.promising.close;

	if (stand_in_timer_take(t))
		t->fn(t);
}

static unsigned good(const struct hca_cq *cq)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < cq->head; i++)
		count += cq->ring[i].status == IBV_WC_SUCCESS;
	return count;
}

unsigned world_sent(void)
{
	return good(&world.a_cq);
}

unsigned world_received(void)
{
	return good(&world.b_cq);
}
