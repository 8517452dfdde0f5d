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
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "hca/limits.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/rq.h"
#include "hca/object/sq.h"
#include "hca/object/srq.h"
#include "hca/queue/post.h"
#include "hca/queue/push.h"
#include "hca/share/process.h"
#include "shm_link.h"
#include "transport/shm/link/links.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/link/state.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_link f;
const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 7 } };

/* ---- the input ---- */

static const uint8_t *input, *input_end;

uint8_t byte(void)
{
	return input < input_end ? *input++ : 0;
}

uint32_t word(void)
{
	uint32_t w = byte();

	w = w << 8 | byte();
	w = w << 8 | byte();
	return w << 8 | byte();
}

uint32_t length(void)
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

static void open_xrc(void)
{
	struct ibv_xrcd_init_attr xa = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex sa = {
		.attr = { .max_wr = RECVS, .max_sge = 4 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = f.pd, .cq = f.cq,
	};

	must(!hca_xrcd_open(f.ctx, &xa, &f.xrcd));
	sa.xrcd = f.xrcd;
	must(!hca_srq_create_ex(f.ctx, &sa, &f.xrc));
	must(!hca_srq_number(f.xrc, &f.xrc_number));
}

static void open_all(void)
{
	static const enum ibv_qp_type types[QPS] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RC,
	};
	struct ibv_cq_init_attr_ex cq = { .cqe = 4096 };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECVS,
						   .max_sge = 4 } };
	struct ibv_ah_attr ah = { .port_num = 1, .dlid = 1 };
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
	must(!hca_mr_register(f.pd, f.arena + WINDOW, WINDOW_BYTES,
			      (uintptr_t)f.arena + WINDOW,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ, &f.window));
	for (int i = 0; i < QPS; i++)
		f.qp[i] = make_qp(types[i], i == SHARED ? f.srq : NULL);
	open_xrc();
	must(!hca_mcast_attach(f.qp[UD], &group, 0));
	memset(f.arena, CANARY, ARENA);
}

uint32_t peer_qpn(int i)
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

/* In place of the handshake. shm.lock is held: the progress thread takes free links
 * for other processes that call. */
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
		/* Other processes may have called, or been called, by now. */
		l->place = atomic_load(&shm.link_count);
		shm.links[l->place] = l;
		atomic_store(&shm.link_count, l->place + 1);
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
	must(!shm_link_map_tables(l));
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
				   IBV_ACCESS_REMOTE_READ |
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
	f.posted[i] = i == SHARED ? f.posted[i] : 0;
}

void poll_all(void)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = hca_poll_cq(f.cq, 16, wc)) > 0)
		for (int k = 0; k < n; k++) {
			if (wc[k].wr_id >= OWNERS * RECVS)
				continue; /* one of our sends */
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
		      i == XRC	  ? hca_post_srq_recv(f.xrc, &wr, &bad) :
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

/* ---- one input ---- */

/* A link that is to be ended is ended by the progress thread. */
static void renew_link(void)
{
	if (f.link && atomic_load(&f.link->state) == SHM_LINK_UP &&
	    !atomic_load(&f.link->broken))
		return;
	pthread_mutex_lock(&shm.lock);
	while (f.link && (atomic_load(&f.link->state) != SHM_LINK_FREE ||
			  atomic_load(&f.link->broken))) {
		pthread_mutex_unlock(&shm.lock);
		sched_yield();
		pthread_mutex_lock(&shm.lock);
	}
	make_link();
	pthread_mutex_unlock(&shm.lock);
}

static void prepare(void)
{
	renew_link();
	for (int i = 0; i < QPS; i++) {
		struct hca_qp *qp = hca_qp(f.qp[i]);

		if (hca_qp_state(qp) != IBV_QPS_RTS || shm_qp(qp)->link != f.link)
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
		if (at == WINDOW) {
			at += WINDOW_BYTES - 1;
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
		case 3: post_recv(byte() % OWNERS); break;
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
	must(!hca_mcast_detach(f.qp[UD], &group, 0));
	for (int i = 0; i < QPS; i++)
		must(!hca_qp_destroy(f.qp[i]));
	must(!hca_srq_destroy(f.srq));
	must(!hca_srq_destroy(f.xrc));
	must(!hca_xrcd_close(f.xrcd));
	must(!hca_cq_destroy(f.cq));
	must(!hca_ah_destroy(f.ah));
	must(!hca_mr_deregister(f.mr));
	must(!hca_mr_deregister(f.counter));
	must(!hca_mr_deregister(f.window));
	must(!hca_pd_dealloc(f.pd));
	must(!hca_context_close(f.ctx));
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
