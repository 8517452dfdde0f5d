/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target for what a peer writes into the memory of a link: slots, data
 * area, acknowledgements and marks, its table of queue pairs.
 *
 * A link is set up by hand in one process (no handshake, no second process;
 * tests/process/adapter/hostile.c has those), with queue pairs of all services
 * and buffers among bytes that must not change. Each input is a program of the
 * peer's and of our own steps.
 *
 *     fuzz_shm_link [SECONDS [SEED]]
 *
 * Built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "hca/hca.h"
#include "transport/shm/shm.h"
#include "util/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	BLOCK = 15000,      /* the peer's queue pair numbers */
	QPS = 5,            /* RC, RC, UC, UD, RC on a shared queue */
	SHARED = 4,         /* the last */
	RECVS = 4,          /* posted at a time */
	RECV_BYTES = 20000, /* room of one */
	GAP = 512,          /* canaries around each */
	COUNTER = GAP,      /* where ATOMICs may */
	FIRST = 2048,
	STEP = RECV_BYTES + GAP,
	ARENA = FIRST + (QPS * RECVS + 1) * STEP,
	OUT = ARENA - STEP, /* what we send, and results of ours */
	CANARY = 0xa5,
	QKEY = 0x42,
	DEPTH = 64,
};

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[QPS];
	struct ibv_mr *mr, *counter;
	struct ibv_ah *ah;
	struct shm_link *link;
	struct hca_segment *segment; /* the peer's own mappings */
	struct shm_area *area;
	uint32_t pos;                /* of the peer's next slot */
	uint8_t arena[ARENA];
	bool dirty[QPS * RECVS];     /* may have been written */
	unsigned posted[QPS];
} f;

/* ---- the input ---- */

static const uint8_t *input, *input_end;

static uint8_t byte(void)
{
	return input < input_end ? *input++ : 0;
}

static uint32_t word(void)
{
	uint32_t w = byte();

	w = w << 8 | byte();
	w = w << 8 | byte();
	return w << 8 | byte();
}

/* Mostly a number at the edge of something. */
static uint32_t length(void)
{
	static const uint32_t edges[] = {
		0, 1, 8, 39, 40, 41, SHM_SLOT_PAYLOAD, SHM_SLOT_PAYLOAD + 1,
		4096 + 40, 4096 + 41, RECV_BYTES, RECV_BYTES + 1, SHM_FRAGMENT,
		SHM_DATA_BYTES, SHM_DATA_BYTES + 1, 0x7fffffff, 0x80000000,
		0xffffffff, 0xffffffff - SHM_SLOT_PAYLOAD,
	};
	uint8_t b = byte();

	if (b < ARRAY_SIZE(edges))
		return edges[b];
	return b < 200 ? b : word();
}

_Noreturn static void broken(const char *what)
{
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

#define must(cond) ((cond) ? (void)0 : broken(#cond))

/* ---- our side ---- */

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex a = {
		.send_cq = f.cq, .recv_cq = f.cq, .srq = srq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = RECVS,
			 .max_send_sge = 4, .max_recv_sge = 4 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = f.pd,
	};
	struct ibv_qp *qp;

	must(!hca_qp_create(f.ctx, &a, &qp));
	return qp;
}

static void open_all(void)
{
	static const enum ibv_qp_type types[QPS] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RC,
	};
	struct ibv_cq_init_attr_ex cq = { .cqe = 4096 };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECVS,
						   .max_sge = 4 } };
	struct ibv_ah_attr ah = { .port_num = 1 };
	struct ibv_device **list;
	int count;

	must(!hca_devices(&list, &count));
	must(!hca_context_open(list[0], &f.ctx));
	hca_devices_free(list);
	must(!hca_pd_alloc(f.ctx, &f.pd));
	must(!hca_cq_create(f.ctx, &cq, &f.cq));
	must(!hca_srq_create(f.pd, &srq, &f.srq));
	must(!hca_ah_create(f.pd, &ah, &f.ah));
	must(!hca_mr_register(f.pd, f.arena, ARENA, (uintptr_t)f.arena,
			      IBV_ACCESS_LOCAL_WRITE, &f.mr));
	must(!hca_mr_register(f.pd, f.arena + COUNTER, 64,
			      (uintptr_t)f.arena + COUNTER,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
			      &f.counter));
	for (int i = 0; i < QPS; i++)
		f.qp[i] = make_qp(types[i], i == SHARED ? f.srq : NULL);
	memset(f.arena, CANARY, ARENA);
}

static uint32_t peer_qpn(int i)
{
	return (uint32_t)BLOCK << HCA_QPN_BLOCK_BITS | (uint32_t)(i + 1);
}

/* Mapped twice: once by the link, which may end at any time, and once more. */
static void *shared(size_t size, const void **theirs)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	void *at;

	must(fd >= 0 && !ftruncate(fd, (off_t)size));
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*theirs = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(at != MAP_FAILED && *theirs != MAP_FAILED);
	close(fd);
	return at;
}

static void drop_mappings(void)
{
	if (f.area)
		munmap(f.area, sizeof(*f.area));
	if (f.segment)
		munmap(f.segment, sizeof(*f.segment));
}

/* In place of the handshake. */
static void make_link(void)
{
	struct shm_link *l = f.link;
	const void *area, *segment;

	drop_mappings();
	f.area = shared(sizeof(*f.area), &area);
	f.segment = shared(sizeof(*f.segment), &segment);
	for (int i = 0; i < QPS; i++) {
		struct hca_qp_public *q = &f.segment->qps[i + 1];

		q->qpn = peer_qpn(i);
		q->state = IBV_QPS_RTS;
		q->dest_qpn = f.qp[i]->qp_num;
		q->access = 0xffffffff;
	}
	f.segment->blocks[0] = BLOCK;
	f.segment->membarrier = 1;
	if (!l) {
		l = f.link = aligned_alloc(CACHE_LINE, sizeof(*l) + CACHE_LINE -
						sizeof(*l) % CACHE_LINE);
		must(l);
		memset(l, 0, sizeof(*l));
		list_init(&l->qps);
		list_init(&l->backlog_qps);
		shm.links[0] = l;
		atomic_store(&shm.link_count, 1);
	}
	l->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); /* in place of a socket */
	l->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->pid = getpid();
	/* The peer's tables would lead to ourselves. */
	atomic_store(&l->path, SHM_PATH_TARGET);
	l->mem_fd = -1;
	l->peer = segment;
	l->area = (struct shm_area *)(uintptr_t)area;
	l->rx = &l->area->dir[0];
	l->tx = &l->area->dir[1];
	l->rx_peer = l;
	l->inflight = calloc(SHM_SLOTS, sizeof(*l->inflight));
	l->data_head = 0;
	l->tx_pos = l->harvested = l->acked_hint = l->data_tail = l->rx_pos = 0;
	f.pos = 0;
	atomic_store(&l->state, SHM_LINK_UP);
	atomic_store(&shm.by_block[BLOCK], l);
}

static void connect_qp(int i)
{
	struct ibv_qp *qp = f.qp[i];
	bool ud = qp->qp_type == IBV_QPT_UD, rc = qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RESET, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = peer_qpn(i),
		.ah_attr.port_num = 1, .qkey = QKEY, .timeout = 1,
		.retry_cnt = 1, .rnr_retry = 1, .max_rd_atomic = 1,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 1,
	};

	must(!hca_qp_modify(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_INIT;
	must(!hca_qp_modify(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT |
			    (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	a.qp_state = IBV_QPS_RTR;
	must(!hca_qp_modify(qp, &a, IBV_QP_STATE |
			    (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
			    (rc ? IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER : 0)));
	a.qp_state = IBV_QPS_RTS;
	must(!hca_qp_modify(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			    (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC :
				  0)));
	f.posted[i] = 0;
}

static void poll_all(void)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = hca_poll_cq(f.cq, 16, wc)) > 0)
		for (int k = 0; k < n; k++) {
			if (wc[k].wr_id >= QPS * RECVS)
				continue; /* one of our sends */
			must(wc[k].wr_id / RECVS < QPS);
			f.posted[wc[k].wr_id / RECVS]--;
			if (wc[k].status == IBV_WC_SUCCESS &&
			    wc[k].opcode == IBV_WC_RECV)
				must(wc[k].byte_len <= RECV_BYTES);
			if (wc[k].wc_flags & IBV_WC_GRH)
				must(wc[k].byte_len >= HCA_GRH_BYTES);
		}
	must(n == 0);
}

static void post_recv(int i)
{
	struct ibv_recv_wr *bad;

	/* All or none, so that a slot has one owner at a time. */
	if (f.posted[i])
		return;
	for (unsigned k = 0; k < RECVS; k++) {
		unsigned slot = (unsigned)i * RECVS + k;
		uint64_t at = (uintptr_t)f.arena + FIRST + slot * STEP;
		struct ibv_sge sge[2] = {
			{ at, RECV_BYTES, f.mr->lkey },
			{ at + 1000, RECV_BYTES - 1000, f.mr->lkey },
		};
		struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = sge,
					  .num_sge = 1 + (int)(k & 1) };
		int ret;

		if (k & 1)
			sge[0].length = 1000;
		else if (byte() > 230)
			sge[0].length = byte(); /* too short for most */
		if (byte() > 250)
			sge[0].lkey++;
		ret = i == SHARED ? hca_post_srq_recv(f.srq, &wr, &bad) :
				    hca_post_recv(f.qp[i], &wr, &bad);
		if (ret)
			break;
		f.dirty[slot] = true;
		f.posted[i]++;
	}
}

static void post_send(int i)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_READ,
	};
	struct ibv_sge sge = { (uintptr_t)f.arena + OUT, length() % RECV_BYTES,
			       f.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1000, .sg_list = &sge, .num_sge = 1,
		.opcode = opcodes[byte() % ARRAY_SIZE(opcodes)],
		.send_flags = byte() & 1 ? IBV_SEND_SIGNALED : 0,
	};

	if (f.qp[i]->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = f.ah;
		wr.wr.ud.remote_qpn = peer_qpn(i);
		wr.wr.ud.remote_qkey = QKEY;
	} else if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = sizeof(uint64_t);
	}
	hca_post_send(f.qp[i], &wr, &bad);
}

/* ---- the peer's side ---- */

static void put(struct shm_slot *s, const void *payload, size_t size)
{
	memcpy(s->payload, payload, size);
}

/* One fragment of a message, as it should follow the one before. */
static void part_in_data(struct shm_slot *s, const struct hca_qp *qp)
{
	struct shm_extent x = { .offset = word() % SHM_DATA_BYTES };

	s->flags |= SHM_IN_DATA;
	s->length %= 2 * RECV_BYTES;
	x.at = qp->rx_offset < s->length ? qp->rx_offset : 0;
	x.length = s->length - x.at;
	if (qp->ibv.qp_type != IBV_QPT_UD && x.length > 100 && byte() & 1) {
		x.length = 1 + word() % (x.length - 1);
		s->flags |= SHM_MORE;
	}
	if (x.length > SHM_DATA_BYTES - x.offset)
		x.offset = 0;
	put(s, &x, sizeof(x));
}

/* In one to all pieces, from memory that is there, and some that is not. */
static void pull(struct shm_slot *s)
{
	struct shm_pull pieces[SHM_PULL_MAX] = { 0 };
	uint64_t left = s->length %= 2 * RECV_BYTES;

	s->flags |= SHM_PULL;
	for (unsigned i = 0; i < SHM_PULL_MAX; i++) {
		uint64_t part = i == SHM_PULL_MAX - 1 || byte() & 1 ?
					left : left / 2;

		pieces[i].addr = byte() < 250 ? (uintptr_t)f.area :
						(uint64_t)word() << 16;
		pieces[i].length = part;
		left -= part;
	}
	put(s, pieces, sizeof(pieces));
}

static void atomic_request(struct shm_slot *s)
{
	struct shm_atomic a = {
		.remote_addr = (uintptr_t)f.arena + COUNTER + byte() % 8 * 8,
		.compare_add = word(), .swap = word(),
		.rkey = f.counter->rkey,
	};

	if (byte() > 230)
		a.remote_addr += length();
	if (byte() > 240)
		a.rkey = word();
	put(s, &a, sizeof(a));
}

/* A message that keeps to the rules. */
static void fill_slot(struct shm_slot *s, struct hca_qp *qp, int i)
{
	bool ud = qp->ibv.qp_type == IBV_QPT_UD;

	*s = (struct shm_slot){
		.tag = s->tag,
		.op = ud ? SHM_DATAGRAM + byte() % 2 : SHM_SEND + byte() % 3,
		.flags = byte() & (SHM_SOLICITED | SHM_KICK_ON_ACK),
		.dst_qpn = qp->ibv.qp_num, .src_qpn = peer_qpn(i),
		.length = length(), .imm = word(),
		.psn = ud ? QKEY : qp->rx_psn, .ack = f.link->tx_pos,
	};
	if (ud)
		s->length = HCA_GRH_BYTES + s->length % (HCA_UD_MTU + 1);
	else if (byte() % 4 == 0)
		s->op = SHM_COMPARE_SWAP + byte() % 2;
	if (s->op == SHM_COMPARE_SWAP || s->op == SHM_FETCH_ADD)
		atomic_request(s);
	else if (s->op != SHM_WRITE_IMM && !ud && byte() % 4 == 0)
		pull(s);
	else if (s->op != SHM_WRITE_IMM && (byte() & 1 || s->length > 1000))
		part_in_data(s, qp);
	else if (s->op != SHM_WRITE_IMM)
		s->length %= SHM_SLOT_PAYLOAD + 1;
}

/* And one field of it that does not. */
static void spoil_slot(struct shm_slot *s)
{
	switch (byte() % 12) {
	case 0: s->op = 1 + byte() % SHM_ACCESS_FAULT; break;
	case 1: s->op = byte(); break;
	case 2: s->flags ^= 1u << byte() % 8; break;
	case 3: s->dst_qpn = word(); break;
	case 4: s->dst_qpn = f.qp[byte() % QPS]->qp_num; break;
	case 5: s->src_qpn = word(); break;
	case 6: s->psn += byte(); break;
	case 7: s->ack = word(); break;
	case 8: s->payload[byte() % SHM_SLOT_PAYLOAD] = byte(); break;
	case 9: ((uint32_t *)s->payload)[byte() % 4] = length(); break;
	case 10: s->status = byte(); break;
	default: s->length = length(); break;
	}
}

static void peer_slot(void)
{
	struct shm_slot *s = &f.area->dir[0].slots[f.pos % SHM_SLOTS];
	int i = byte() % QPS;

	fill_slot(s, hca_qp(f.qp[i]), i);
	for (unsigned n = byte() % 8; n > 5; n--)
		spoil_slot(s);
	if (byte() < 250)
		atomic_store(&s->tag, f.pos++ / SHM_SLOTS + 1);
	else /* not yet, or for ever */
		atomic_store(&s->tag, word());
	if (byte() & 1) /* else the next comes on top of this one */
		poll_all();
}

static void peer_marks(void)
{
	for (unsigned n = byte() % 8; n > 0; n--) {
		struct shm_slot *s = &f.area->dir[1].slots[
			byte() & 1 ? f.link->harvested % SHM_SLOTS :
				     word() % SHM_SLOTS];

		atomic_store(&s->status, byte() % 8);
		atomic_store(&s->timer, byte());
		memset(s->payload, byte(), 32);
		s->op = byte();
	}
	atomic_store(&f.area->dir[1].ack.word,
		     byte() & 3 ? f.link->tx_pos : word());
}

static void peer_tables(void)
{
	struct hca_qp_public *q = &f.segment->qps[1 + byte() % QPS];

	switch (byte() % 6) {
	case 0: q->state = byte() % 9; break;
	case 1: q->qpn = word(); break;
	case 2: q->dest_qpn = word(); break;
	case 3: f.segment->wants_kick = byte(); break;
	case 4: f.segment->blocks[byte() % 64] = byte() & 1 ? BLOCK : word(); break;
	default: f.segment->hazards[byte() % HCA_HAZARDS] = word(); break;
	}
}

/* ---- one input ---- */

/* A link that is to be ended is ended by the progress thread. */
static void renew_link(void)
{
	if (f.link && atomic_load(&f.link->state) == SHM_LINK_UP &&
	    !atomic_load(&f.link->broken))
		return;
	while (f.link && (atomic_load(&f.link->state) != SHM_LINK_FREE ||
			  atomic_load(&f.link->broken)))
		sched_yield();
	make_link();
}

static void prepare(void)
{
	renew_link();
	for (int i = 0; i < QPS; i++) {
		struct hca_qp *qp = hca_qp(f.qp[i]);

		if (hca_qp_state(qp) != IBV_QPS_RTS || qp->link != f.link)
			connect_qp(i);
	}
}

/* Nothing but what was posted or granted may have changed. */
static void check_arena(void)
{
	for (uint32_t at = 0; at < OUT; at++) {
		unsigned slot = (at - FIRST) / STEP;

		if (at == COUNTER) {
			at += 64 - 1;
			continue;
		}
		if (at >= FIRST && (at - FIRST) % STEP == 0 && f.dirty[slot]) {
			at += RECV_BYTES - 1;
			continue;
		}
		if (f.arena[at] != CANARY)
			broken("memory that was not granted was written");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned runs;

	if (!f.ctx)
		open_all();
	input = data;
	input_end = data + size;
	prepare();
	while (input < input_end && atomic_load(&f.link->state) == SHM_LINK_UP &&
	       !atomic_load(&f.link->broken)) {
		switch (byte() % 16) {
		case 0: peer_marks(); break;
		case 1: peer_tables(); break;
		case 2: post_send(byte() % QPS); break;
		case 3: post_recv(byte() % QPS); break;
		case 4: poll_all(); break;
		default: peer_slot(); break;
		}
	}
	for (int i = 0; i < 4; i++)
		poll_all();
	if (++runs % 64 == 0)
		check_arena();
	return 0;
}

#ifndef FUZZER
static uint64_t state;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool silent(enum log_level level, const char *line)
{
	return true;
}

static void close_all(void)
{
	for (int i = 0; i < QPS; i++)
		must(!hca_qp_destroy(f.qp[i]));
	must(!hca_srq_destroy(f.srq));
	must(!hca_cq_destroy(f.cq));
	must(!hca_ah_destroy(f.ah));
	must(!hca_mr_deregister(f.mr));
	must(!hca_mr_deregister(f.counter));
	must(!hca_pd_dealloc(f.pd));
	must(!hca_context_close(f.ctx));
	free(f.link);
	drop_mappings();
}

int main(int argc, char **argv)
{
	unsigned long seconds = argc > 1 ? strtoul(argv[1], NULL, 0) : 5;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) :
				   (uint64_t)time(NULL);
	uint64_t end = now_ms() + seconds * 1000;
	unsigned long run = 0;

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	log_set_sink(silent);
	for (; now_ms() < end; run++) {
		uint8_t data[512];
		size_t size;

		state = (seed + run) * UINT64_C(0x9e3779b97f4a7c15) | 1;
		draw();
		size = draw() % sizeof(data);
		for (size_t i = 0; i < size; i++)
			data[i] = (uint8_t)(draw() >> 24);
		LLVMFuzzerTestOneInput(data, size);
	}
	close_all();
	printf("%lu inputs\n", run);
	return 0;
}
#endif
