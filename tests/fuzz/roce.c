/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzer of what the network brings to the transport roce. Queue pairs of all services and
 * in several states get packets of a hostile sender, who knows their numbers, the packet
 * sequence numbers and the keys: with the right checksum mostly, from their peer's address
 * or others, through sockets or handed to the receiving path directly. Two more queue pairs,
 * whose peer's address the sender cannot have, send messages to each other meanwhile.
 *
 *     fuzz_roce [SECONDS [SEED]]
 *
 * roce.c is included, so that packets can be handed to its port.
 */
#include "transport/packet/packet.h" /* first: roce.c has a variable `port` */

#include "../../src/transport/roce/roce.c"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hca/hca.h"
#include "hca/object/public.h"
#include "hca/queue/post.h"
#include "hca/queue/push.h"
#include "transport/packet/frame/ib.h"
#include "util/container_of.h"
#include "wire/ib/icrc.h"

enum {
	RC, BARE, SHARED, WAITING, FAILED, UC, UD, XRC_TARGET, XRC_SENDER, /* victims */
	VICTIMS, HONEST = VICTIMS, QPS = HONEST + 2,
	MTU = 1024, QKEY = 0x11223344, GHOST = 0x00fffe, RECVS = 4, DEPTH = 16,
	GAP = 512, RECV_BYTES = 3000, STEP = RECV_BYTES + GAP,
	OPEN_BYTES = 2048, WORK_BYTES = 8192,
	HONEST_BYTES = 5000, HONEST_DEPTH = 4,
	SOURCES = 4, CANARY = 0xa5, PACKET_BYTES = 9000,
};

/* Memory, each piece among canaries. */
struct arena {
	uint8_t gap0[GAP];
	uint8_t open[OPEN_BYTES];   /* remote rights */
	uint8_t gap1[GAP];
	uint8_t window[OPEN_BYTES]; /* not registered for peers, but by a window's key */
	uint8_t gap2[GAP];
	uint8_t readable[OPEN_BYTES], ours[OPEN_BYTES], other[OPEN_BYTES];
	uint8_t gap3[GAP];
	uint8_t work[WORK_BYTES];   /* of our own requests */
	uint8_t gap4[GAP];
	struct {
		uint8_t bytes[RECV_BYTES], gap[GAP];
	} recv[VICTIMS][RECVS];
	uint8_t honest[2][HONEST_DEPTH][HONEST_BYTES];
};

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq, *honest_cq;
	struct ibv_srq *srq, *xrc;
	struct ibv_xrcd *xrcd;
	uint32_t srqn;
	struct ibv_qp *qp[QPS];
	struct ibv_mr *all, *open, *readable, *other, *window_mr;
	struct ibv_mw *mw;
	union ibv_gid gid;
	uint8_t sgid_index;
	int fds[SOURCES];
	struct carrier_addr self, from[SOURCES]; /* the first has the victims' peer */
	bool posted[VICTIMS][RECVS];
	uint32_t work_posted[QPS];
	uint64_t sent, received;    /* honest messages */
	bool gentle;                /* a round of packets that mostly do not end anything */
	uint64_t packets, by_socket;
	uint64_t receives, answered, failed; /* completions of the victims */
	struct arena at;
} f;

_Noreturn static void broken(int line, const char *what)
{
	fprintf(stderr, "tests/fuzz/roce.c:%d: broken: %s (packet %llu)\n", line, what,
		(unsigned long long)f.packets);
	abort();
}
#define must(cond) ((cond) ? (void)0 : broken(__LINE__, #cond))

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 24) % below;
}

static bool one_in(uint32_t n)
{
	return draw(n) == 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t counter(enum hca_process_counter c)
{
	return __atomic_load_n(&hca_process.segment->counters.at[c], __ATOMIC_RELAXED);
}

/* ---- our side ---- */

static enum ibv_qp_type type_of(int i)
{
	switch (i) {
	case UC: return IBV_QPT_UC;
	case UD: return IBV_QPT_UD;
	case XRC_TARGET: return IBV_QPT_XRC_RECV;
	case XRC_SENDER: return IBV_QPT_XRC_SEND;
	default: return IBV_QPT_RC;
	}
}

static void make_qp(int i)
{
	struct ibv_cq *cq = i >= HONEST ? f.honest_cq : f.cq;
	struct ibv_qp_init_attr_ex a = {
		.send_cq = cq, .recv_cq = cq, .srq = i == SHARED ? f.srq : NULL,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			 .max_send_sge = 2, .max_recv_sge = 2 },
		.qp_type = type_of(i), .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = f.pd,
	};

	if (i == XRC_TARGET) {
		a = (struct ibv_qp_init_attr_ex){
			.qp_type = IBV_QPT_XRC_RECV,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = f.xrcd,
		};
	} else if (i == XRC_SENDER) {
		a.recv_cq = NULL;
		a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
	}
	must(!hca_qp_create(f.ctx, &a, &f.qp[i]));
}

static void connect_qp(int i)
{
	static const unsigned rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp *qp = f.qp[i];
	bool ud = i == UD, rc = !ud && i != UC;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RESET, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.qp_access_flags = i == BARE ? 0 : rights, .qkey = QKEY,
		.dest_qp_num = i < HONEST ? GHOST : f.qp[2 * HONEST + 1 - i]->qp_num,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = f.gid, .sgid_index = f.sgid_index,
				      .hop_limit = 64 } },
		.rq_psn = i < HONEST ? draw(1 << 24) : 77, .sq_psn = 77,
		/* Answers of the hostile one come sooner or not at all; the honest ones may have
		 * to wait for a processor. */
		.timeout = i < HONEST ? 14 : 17, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 4, .max_dest_rd_atomic = 4, .min_rnr_timer = 1,
	};

	must(!hca_qp_modify(qp, &a, IBV_QP_STATE));
	f.work_posted[i] = 0;
	if (i < VICTIMS && i != SHARED && i != XRC_TARGET)
		memset(f.posted[i], 0, sizeof(f.posted[i]));
	a.qp_state = IBV_QPS_INIT;
	must(!hca_qp_modify(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	a.qp_state = IBV_QPS_RTR;
	must(!hca_qp_modify(qp, &a, IBV_QP_STATE |
				    (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU |
					      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
				    (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER :
					  0)));
	if (i == WAITING)
		return;
	a.qp_state = IBV_QPS_RTS;
	must(!hca_qp_modify(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
				    (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
	a.qp_state = IBV_QPS_ERR;
	if (i == FAILED)
		must(!hca_qp_modify(qp, &a, IBV_QP_STATE));
}

static struct ibv_mr *region(struct ibv_pd *pd, void *at, size_t bytes, unsigned access)
{
	struct ibv_mr *mr;

	must(!hca_mr_register(pd, at, bytes, (uintptr_t)at, access, &mr));
	return mr;
}

/* An address of this host, 127.0.0.1 if it has a place in the table. */
static void find_gid(void)
{
	static const uint8_t loopback[16] = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 };
	struct ibv_gid_entry entries[64];
	ssize_t n = hca_gid_table(f.ctx, entries, ARRAY_SIZE(entries));
	bool found = false;

	for (ssize_t i = 0; i < n && !found; i++)
		if (!memcmp(entries[i].gid.raw, loopback, 12)) {
			f.gid = entries[i].gid;
			f.sgid_index = (uint8_t)entries[i].gid_index;
			found = !memcmp(f.gid.raw, loopback, 16);
		}
	must(f.gid.raw[12]);
}

static void open_sources(void)
{
	f.self = carrier_udp_addr_of(f.gid.raw, 0, roce_udp_port);
	for (int i = 0; i < SOURCES; i++) {
		struct sockaddr_in in = { .sin_family = AF_INET };
		socklen_t len = sizeof(in);

		if (i)
			in.sin_addr.s_addr = htonl(0x7f000064u + (uint32_t)i);
		else
			memcpy(&in.sin_addr, f.gid.raw + 12, 4);
		f.fds[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		must(f.fds[i] >= 0);
		must(!bind(f.fds[i], (struct sockaddr *)&in, sizeof(in)));
		must(!getsockname(f.fds[i], (struct sockaddr *)&in, &len));
		must(!setsockopt(f.fds[i], IPPROTO_IP, IP_MTU_DISCOVER,
				 &(int){ IP_PMTUDISC_PROBE }, sizeof(int)));
		must(!carrier_udp_addr((struct sockaddr *)&in, sizeof(in), &f.from[i]));
	}
}

static void ignored_mad(const struct hca_gsi_address *from,
			const uint8_t mad[HCA_GSI_MAD_BYTES])
{
	(void)from;
	(void)mad;
}

static void open_xrc(void)
{
	struct ibv_xrcd_init_attr xa = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex sa = {
		.attr = { .max_wr = DEPTH, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = f.pd, .cq = f.cq,
	};

	must(!hca_xrcd_open(f.ctx, &xa, &f.xrcd));
	sa.xrcd = f.xrcd;
	must(!hca_srq_create_ex(f.ctx, &sa, &f.xrc));
	must(!hca_srq_number(f.xrc, &f.srqn));
}

/* A window of type 1, which any queue pair of the domain may use. */
static void bind_window(void)
{
	struct ibv_mw_bind bind = {
		.wr_id = UINT64_MAX,
		.bind_info = { .mr = f.window_mr, .addr = (uintptr_t)f.at.window,
			       .length = OPEN_BYTES,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
						  IBV_ACCESS_REMOTE_READ },
	};

	must(!hca_mw_bind(f.qp[RC], f.mw, &bind));
}

static void open_all(void)
{
	const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_cq_init_attr_ex cq = { .cqe = 4096 };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = DEPTH, .max_sge = 2 } };
	struct ibv_device **list;
	int count;

	must(!hca_devices(&list, &count));
	must(!hca_context_open(list[0], &f.ctx));
	hca_devices_free(list);
	find_gid();
	must(!hca_pd_alloc(f.ctx, &f.pd));
	must(!hca_pd_alloc(f.ctx, &f.other_pd));
	must(!hca_cq_create(f.ctx, &cq, &f.cq));
	must(!hca_cq_create(f.ctx, &cq, &f.honest_cq));
	must(!hca_srq_create(f.pd, &srq, &f.srq));
	f.all = region(f.pd, &f.at, sizeof(f.at), IBV_ACCESS_LOCAL_WRITE);
	f.open = region(f.pd, f.at.open, OPEN_BYTES, all);
	f.readable = region(f.pd, f.at.readable, OPEN_BYTES, IBV_ACCESS_REMOTE_READ);
	f.other = region(f.other_pd, f.at.other, OPEN_BYTES, all);
	f.window_mr = region(f.pd, f.at.window, OPEN_BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	must(!hca_mw_alloc(f.pd, IBV_MW_TYPE_1, &f.mw));
	open_xrc();
	for (int i = 0; i < QPS; i++)
		make_qp(i);
	for (int i = 0; i < QPS; i++)
		connect_qp(i);
	must(hca_gsi_open(ignored_mad) == 0);
	memset(&f.at, CANARY, sizeof(f.at));
	bind_window();
	open_sources();
}

static void post_receives(int i)
{
	struct ibv_recv_wr *bad;

	if (i == FAILED || i == XRC_SENDER)
		return;
	for (int k = 0; k < RECVS; k++) {
		struct ibv_sge sge[2] = {
			{ (uintptr_t)f.at.recv[i][k].bytes, 1000, f.all->lkey },
			{ (uintptr_t)f.at.recv[i][k].bytes + 1000, RECV_BYTES - 1000,
			  f.all->lkey },
		};
		struct ibv_recv_wr wr = { .wr_id = (uint64_t)(i * RECVS + k),
					  .sg_list = sge, .num_sge = 2 - (k == 3) };
		int ret;

		if (f.posted[i][k])
			continue;
		ret = i == SHARED     ? hca_post_srq_recv(f.srq, &wr, &bad) :
		      i == XRC_TARGET ? hca_post_srq_recv(f.xrc, &wr, &bad) :
					hca_post_recv(f.qp[i], &wr, &bad);
		f.posted[i][k] = !ret;
	}
}

/* Something that waits for the answer of a peer. */
static void post_work(int i)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	struct ibv_sge sge = { (uintptr_t)f.at.work, draw(WORK_BYTES / 2), f.all->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = UINT64_MAX, .sg_list = &sge, .num_sge = 1,
		.opcode = opcodes[draw(ARRAY_SIZE(opcodes))],
		.send_flags = one_in(2) ? IBV_SEND_SIGNALED : 0,
	};

	if (i == UC || i == UD || i == XRC_TARGET)
		return;
	if (i == XRC_SENDER)
		wr.qp_type.xrc.remote_srqn = f.srqn;
	if (wr.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		sge.length = 8;
		sge.addr = (uintptr_t)f.at.work + WORK_BYTES - 8;
	}
	hca_post_send(f.qp[i], &wr, &bad);
}

/* What the manual pages name as results of what a peer does. */
static bool is_documented(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_WR_FLUSH_ERR:
	case IBV_WC_BAD_RESP_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_MW_BIND_ERR: /* a SEND with invalidate of a wrong key */
		return true;
	default:
		return false;
	}
}

static void poll_victims(void)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = hca_poll_cq(f.cq, 16, wc)) > 0)
		for (int k = 0; k < n; k++) {
			must(is_documented(wc[k].status));
			if (wc[k].status != IBV_WC_SUCCESS)
				f.failed++;
			else if (wc[k].wr_id < VICTIMS * RECVS)
				f.receives++;
			else
				f.answered++;
			if (wc[k].wr_id >= VICTIMS * RECVS)
				continue;
			f.posted[wc[k].wr_id / RECVS][wc[k].wr_id % RECVS] = false;
			if (wc[k].status == IBV_WC_SUCCESS && wc[k].opcode == IBV_WC_RECV)
				must(wc[k].byte_len <= RECV_BYTES);
		}
	must(n == 0);
}

/* ---- the honest ones ---- */

static uint8_t honest_byte(uint64_t message, uint32_t at)
{
	return (uint8_t)((message * 31 + at) * 7 + (at >> 8));
}

static void honest_receive(uint64_t message)
{
	unsigned k = message % HONEST_DEPTH;
	struct ibv_sge sge = { (uintptr_t)f.at.honest[1][k], HONEST_BYTES, f.all->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = message << 1 | 1, .sg_list = &sge,
					.num_sge = 1 };

	must(!hca_post_recv(f.qp[HONEST + 1], &wr, &bad));
}

static void honest_send(void)
{
	unsigned k = f.sent % HONEST_DEPTH;
	struct ibv_sge sge = { (uintptr_t)f.at.honest[0][k], HONEST_BYTES, f.all->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = f.sent << 1, .sg_list = &sge,
					.num_sge = 1, .opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	for (uint32_t i = 0; i < HONEST_BYTES; i++)
		f.at.honest[0][k][i] = honest_byte(f.sent, i);
	must(!hca_post_send(f.qp[HONEST], &wr, &bad));
	f.sent++;
}

/* Completes what is under way, and sends one more. */
static void honest_step(void)
{
	uint64_t end = now_ms() + 20000;
	struct ibv_wc wc;
	int todo = 2;

	honest_receive(f.received);
	honest_send();
	while (todo) {
		int n = hca_poll_cq(f.honest_cq, 1, &wc);

		must(n >= 0);
		must(n || now_ms() < end);
		if (!n)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			fprintf(stderr, "honest message %llu: status %d\n",
				(unsigned long long)wc.wr_id >> 1, wc.status);
		must(wc.status == IBV_WC_SUCCESS);
		todo--;
		if (!(wc.wr_id & 1))
			continue;
		must(wc.wr_id >> 1 == f.received && wc.byte_len == HONEST_BYTES);
		for (uint32_t i = 0; i < HONEST_BYTES; i++)
			must(f.at.honest[1][f.received % HONEST_DEPTH][i] ==
			     honest_byte(f.received, i));
		f.received++;
	}
}

/* ---- the hostile sender ---- */

struct hostile {
	uint8_t bytes[PACKET_BYTES];
	size_t length;
	int source;
	bool exact; /* not to be changed any more */
};

static uint32_t any_bytes(void)
{
	static const uint32_t edges[] = { 0, 1, 3, 4, 8, 9, MTU - 1, MTU, MTU + 1, 4096, 4097 };

	return one_in(3) ? edges[draw(ARRAY_SIZE(edges))] : draw(MTU + 1);
}

static uint32_t any_key(const uint8_t **at)
{
	struct { uint32_t key; const uint8_t *at; } keys[] = {
		{ f.open->rkey, f.at.open }, { f.open->rkey, f.at.open },
		{ f.open->rkey, f.at.open }, { f.mw->rkey, f.at.window },
		{ f.readable->rkey, f.at.readable }, { f.other->rkey, f.at.other },
		{ f.all->rkey, f.at.ours }, { f.window_mr->rkey, f.at.window },
		{ draw(UINT32_MAX), f.at.ours },
		{ f.open->rkey ^ 1u << draw(32), f.at.open },
	};
	unsigned i = draw(f.gentle ? 4 : ARRAY_SIZE(keys));

	*at = keys[i].at;
	return keys[i].key;
}

static void any_range(struct rc_packet *p)
{
	const uint8_t *at;

	p->rkey = any_key(&at);
	p->remote_addr = (uintptr_t)at + draw(OPEN_BYTES);
	if (f.gentle && p->length < OPEN_BYTES)
		p->remote_addr = (uintptr_t)at + draw(OPEN_BYTES + 1 - p->length);
	switch (draw(f.gentle ? 100 : 8)) {
	case 0: p->remote_addr = (uintptr_t)at - 1 - draw(16); break;
	case 1: p->remote_addr = (uintptr_t)at + OPEN_BYTES - p->length + draw(3) - 1; break;
	case 2: p->remote_addr = UINT64_MAX - draw(4096); break;
	case 3: p->remote_addr = (uintptr_t)at + OPEN_BYTES + draw(16); break;
	case 4:
	case 5: p->remote_addr = (uintptr_t)at; break;
	default: break;
	}
	if (p->op == RC_COMPARE_SWAP || p->op == RC_FETCH_ADD || (p->flags & RC_WORD))
		if (!one_in(8))
			p->remote_addr &= ~UINT64_C(7);
}

static uint32_t near_psn(uint32_t psn)
{
	switch (draw(f.gentle ? 100 : 12)) {
	case 0: return psn - 1 - draw(4);
	case 1: return psn + 1 + draw(4);
	case 2: return psn + (1u << 23) + draw(3) - 1;
	case 3: return draw(1u << 24);
	default: return psn;
	}
}

static void any_request(struct packet_frame *p, const struct packet_qp *pq)
{
	static const uint8_t ops[] = { RC_SEND, RC_SEND, RC_SEND, RC_WRITE, RC_WRITE,
				       RC_WRITE, RC_READ, RC_READ, RC_COMPARE_SWAP,
				       RC_FETCH_ADD, RC_FLUSH };
	const struct rc_responder *rs = &pq->responder;
	bool within = rs->message != RC_ACK && !one_in(6);

	p->rc.op = within ? rs->message : ops[draw(ARRAY_SIZE(ops))];
	p->rc.psn = near_psn(rs->expected_psn) & 0xffffff;
	p->rc.flags = RC_LAST | (within ? 0 : RC_FIRST);
	if (p->rc.op <= RC_WRITE && one_in(3))
		p->rc.flags &= (uint8_t)~RC_LAST;
	p->rc.bytes = p->rc.op > RC_WRITE ? 0 :
		      !(p->rc.flags & RC_LAST) && !one_in(8) ? MTU : any_bytes();
	p->rc.length = p->rc.bytes;
	if (p->rc.op == RC_WRITE && within && (p->rc.flags & RC_LAST) && !one_in(4))
		p->rc.bytes = MIN(rs->length - rs->at, (uint32_t)MTU);
	if (p->rc.op == RC_READ || (p->rc.op == RC_WRITE && !(p->rc.flags & RC_LAST)))
		p->rc.length = one_in(20) ? draw(UINT32_MAX) : draw(OPEN_BYTES + 2);
	if (p->rc.op == RC_WRITE && one_in(10)) {
		p->rc.flags |= RC_WORD;
		p->rc.bytes = p->rc.length = 8;
	}
	if (one_in(3))
		p->rc.flags |= RC_ACK_REQ;
	if (one_in(4))
		p->rc.flags |= RC_IMM;
	else if (p->rc.op == RC_SEND && one_in(6))
		p->rc.flags |= RC_INVALIDATE;
	p->rc.imm = one_in(2) ? f.mw->rkey : draw(UINT32_MAX);
	p->rc.compare_add = draw(UINT32_MAX);
	p->rc.swap = draw(UINT32_MAX);
	p->rc.flush = (uint8_t)draw(64);
	any_range(&p->rc);
}

static void any_answer(struct packet_frame *p, const struct packet_qp *pq)
{
	static const uint8_t ops[] = { RC_ACK, RC_ACK, RC_READ_RESPONSE, RC_READ_RESPONSE,
				       RC_ATOMIC_RESPONSE, RC_CNP };
	static const uint8_t syndromes[] = { 0x1f, 0x1f, 0x1f, 0x00, 0x05, 0x21, 0x3f, 0x60,
					     0x60, 0x61, 0x62, 0x63, 0x64, 0x40, 0x7f };
	const struct rc_requester *rq = &pq->requester;
	struct rc_place where = { 0 };

	p->rc.op = ops[draw(ARRAY_SIZE(ops))];
	p->rc.flags = draw(4) | (one_in(2) ? RC_FIRST | RC_LAST : 0);
	p->rc.psn = near_psn(rq->unacked + (one_in(2) ? draw(6) : 0)) & 0xffffff;
	p->rc.syndrome = syndromes[draw(ARRAY_SIZE(syndromes))];
	p->rc.msn = draw(1 << 24);
	p->rc.compare_add = draw(UINT32_MAX);
	if (f.gentle)
		p->rc.syndrome = 0x1f;
	rc_reply_look(rq, &p->rc, &where);
	p->rc.bytes = p->rc.op != RC_READ_RESPONSE  ? 0 :
		      f.gentle || one_in(2) ? where.bytes : any_bytes();
}

static bool is_honest(uint32_t qpn)
{
	return qpn == f.qp[HONEST]->qp_num || qpn == f.qp[HONEST + 1]->qp_num;
}

static uint32_t dest_of(const struct hostile *h)
{
	return (uint32_t)h->bytes[5] << 16 | (uint32_t)h->bytes[6] << 8 | h->bytes[7];
}

/* The checksum for the packet as number `k` of a train. */
static void seal_hostile(struct hostile *h)
{
	struct icrc_ip ip = { .version = 4, .dst_port = roce_udp_port,
			      .udp_length = (uint16_t)(8 + h->length),
			      .dont_fragment = true };
	uint8_t address[16];
	struct icrc c;
	uint16_t port_of;

	if (h->length < IB_BTH_BYTES + IB_ICRC_BYTES)
		return;
	carrier_udp_addr_ip(&f.from[h->source], address, &ip.src_port);
	memcpy(ip.src, address + 12, 4);
	carrier_udp_addr_ip(&f.self, address, &port_of);
	memcpy(ip.dst, address + 12, 4);
	icrc_begin(&c, &ip, h->bytes);
	icrc_add(&c, h->bytes + IB_BTH_BYTES, h->length - IB_BTH_BYTES - IB_ICRC_BYTES);
	icrc_end(&c, h->bytes + h->length - IB_ICRC_BYTES);
}

static void make_mad(uint8_t *mad)
{
	for (int i = 0; i < 256; i++)
		mad[i] = (uint8_t)(one_in(2) ? draw(256) : 0);
	mad[0] = 1;
	mad[1] = 7;
	mad[2] = 2;
	mad[3] = 3;
	mad[16] = 0;
	mad[17] = (uint8_t)(0x10 + draw(9));
}

static void mutate(struct hostile *h)
{
	size_t n;

	switch (draw(6)) {
	case 0:
	case 1: h->bytes[draw((uint32_t)MIN(h->length, (size_t)48))] ^= 1u << draw(8); break;
	case 2: h->bytes[draw((uint32_t)MIN(h->length, (size_t)48))] = (uint8_t)draw(256); break;
	case 3: h->length -= draw((uint32_t)h->length); break;
	case 4:
		n = draw(17);
		memset(h->bytes + h->length, (int)draw(256), n);
		h->length += n;
		break;
	default: h->bytes[1] ^= 0x30; break; /* the pad count */
	}
}

static void make(struct hostile *h)
{
	int victim = (int)draw(VICTIMS);
	struct hca_qp *qp = hca_qp_behind(f.qp[victim]);
	struct packet_qp *pq = packet_part(qp)->state;
	static const uint8_t services[VICTIMS] = {
		[UC] = PACKET_UC, [UD] = PACKET_UD, [XRC_TARGET] = PACKET_XRC,
		[XRC_SENDER] = PACKET_XRC,
	};
	struct packet_frame p = {
		.service = one_in(30) ? (uint8_t)draw(4) : services[victim],
		.dst_qpn = f.qp[victim]->qp_num,
		.src_qpn = draw(1 << 24), .qkey = one_in(5) ? draw(UINT32_MAX) : QKEY,
		.srqn = one_in(8) ? draw(1 << 24) : f.srqn,
	};
	size_t header, pad;
	bool mad = one_in(40);

	if (mad) {
		p.service = PACKET_UD;
		p.dst_qpn = draw(2) | !one_in(4);
		p.qkey = one_in(8) ? QKEY : HCA_GSI_QKEY;
	}
	if (one_in(40))
		p.dst_qpn = one_in(2) ? draw(1 << 24) : f.qp[HONEST + draw(2)]->qp_num;
	hca_enter();
	hca_lock(&port.receive_lock);
	hca_lock(&qp->sq_lock);
	if (p.service == PACKET_UD || !pq) {
		p.rc = (struct rc_packet){ .op = RC_SEND, .flags = RC_FIRST | RC_LAST,
					   .bytes = any_bytes(), .imm = draw(UINT32_MAX) };
		p.rc.flags |= one_in(3) ? RC_IMM : 0;
	} else if (victim == XRC_SENDER ||
		   (victim != XRC_TARGET && victim != UC && one_in(3))) {
		any_answer(&p, pq);
	} else {
		any_request(&p, pq);
	}
	hca_unlock(&qp->sq_lock);
	hca_unlock(&port.receive_lock);
	hca_leave();
	if (mad)
		p.rc.bytes = one_in(8) ? any_bytes() : 256;
	h->source = one_in(8) ? 1 + (int)draw(SOURCES - 1) : 0;
	header = packet_ib_encode(&p, h->bytes);
	if (!header) { /* the service has no such operation: it says that it has */
		p.service = PACKET_RC;
		header = packet_ib_encode(&p, h->bytes);
		h->bytes[0] |= (uint8_t)(draw(8) << 5);
	}
	pad = -p.rc.bytes & 3;
	for (uint32_t i = 0; i < p.rc.bytes + pad; i++)
		h->bytes[header + i] = (uint8_t)i;
	if (mad && p.rc.bytes >= 256)
		make_mad(h->bytes + header);
	h->length = header + p.rc.bytes + pad + IB_ICRC_BYTES;
	if (one_in(f.gentle ? 100 : 5))
		mutate(h);
	if (h->length >= 8 && is_honest(dest_of(h)) && !h->source)
		h->source = 1;
	seal_hostile(h);
	if (one_in(30) && h->length)
		h->bytes[h->length - 1 - draw((uint32_t)MIN(h->length, (size_t)4))] ^= 0x40;
}

/* To the receiving path, as the carrier does it. */
static void hand_over(struct hostile *h, uint32_t segment)
{
	/* Memory of its own, so that reading behind it is found. */
	uint8_t *bytes = malloc(h->length ? h->length : 1);
	struct iovec iov = { bytes, h->length };
	struct carrier_unit unit = {
		.iov = &iov, .count = 1, .segment = segment < h->length ? segment : 0,
		.from = f.from[h->source], .to = f.self, .known = CARRIER_FROM | CARRIER_TOS,
		.tos = one_in(10) ? 3 : 2, .ttl = 64,
	};

	must(bytes);
	memcpy(bytes, h->bytes, h->length);
	if (h->length) {
		hca_enter();
		hca_lock(&port.receive_lock);
		port.carrier->upper.deliver(port.carrier->upper.arg, &unit);
		hca_unlock(&port.receive_lock);
		hca_leave();
	}
	free(bytes);
}

/* As a train if `segment` is below the length. */
static void send_hostile(struct hostile *h, uint32_t segment)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(roce_udp_port) };
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { h->bytes, h->length };
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &iov,
			    .msg_iovlen = 1 };
	uint16_t bytes = (uint16_t)segment;

	memcpy(&to.sin_addr, f.gid.raw + 12, 4);
	if (segment && segment < h->length) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(uint16_t)),
						   .cmsg_level = SOL_UDP,
						   .cmsg_type = UDP_SEGMENT };
		memcpy(CMSG_DATA(&control.header), &bytes, sizeof(bytes));
	}
	/* Without room, or with a length that the kernel does not take: as if lost. */
	(void)!sendmsg(f.fds[h->source], &m, MSG_DONTWAIT);
	f.by_socket++;
}

/* Several packets of one length, of which some are the same, or but for the next PSN. */
static void make_train(struct hostile *h, uint32_t *segment)
{
	static struct hostile one;
	unsigned n = 2 + draw(6);

	make(&one);
	*segment = (uint32_t)one.length;
	*h = one;
	for (unsigned i = 1; i < n && one.length; i++) {
		size_t length = one.length;

		if (one_in(2)) {
			int source = one.source;

			make(&one);
			/* All of a train come from one place, and have one length. */
			one.source = source;
			if (one.length < length)
				memset(one.bytes + one.length, 0, length - one.length);
			one.length = length;
			if (length >= 8 && is_honest(dest_of(&one)))
				one.bytes[7] ^= 0x80;
			seal_hostile(&one);
		} else if (length >= IB_BTH_BYTES && one_in(2)) {
			packet_ib_renumber(one.bytes, packet_ib_psn(one.bytes) + 1);
			seal_hostile(&one);
		}
		if (h->length + one.length > sizeof(h->bytes))
			break;
		memcpy(h->bytes + h->length, one.bytes, one.length);
		h->length += one.length;
	}
}

static void attack(void)
{
	static struct hostile h;
	uint32_t segment = 0;

	if (one_in(16)) {
		make_train(&h, &segment);
	} else if (!one_in(20) || !h.length || h.length > PACKET_BYTES) { /* else: again */
		make(&h);
		segment = 0;
	}
	f.packets++;
	if (one_in(4))
		send_hostile(&h, segment);
	else
		hand_over(&h, segment);
}

/* ---- what must hold ---- */

static bool is_canary(const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != CANARY)
			return false;
	return true;
}

static void check_arena(void)
{
	must(is_canary(f.at.gap0, GAP));
	must(is_canary(f.at.gap1, GAP));
	must(is_canary(f.at.gap2, GAP));
	must(is_canary(f.at.readable, OPEN_BYTES));
	must(is_canary(f.at.ours, OPEN_BYTES));
	must(is_canary(f.at.other, OPEN_BYTES));
	must(is_canary(f.at.gap3, GAP));
	must(is_canary(f.at.gap4, GAP));
	for (int i = 0; i < VICTIMS; i++)
		for (int k = 0; k < RECVS; k++)
			must(is_canary(f.at.recv[i][k].gap, GAP));
}

static void renew(void)
{
	for (int i = 0; i < VICTIMS; i++) {
		enum ibv_qp_state s = hca_qp_state(hca_qp_behind(f.qp[i]));

		must(s == IBV_QPS_RTS || s == IBV_QPS_ERR || s == IBV_QPS_SQE ||
		     (i == WAITING && s == IBV_QPS_RTR));
		if ((i != FAILED && s != IBV_QPS_RTS && !(i == WAITING && s == IBV_QPS_RTR)) ||
		    one_in(50))
			connect_qp(i);
	}
	for (int i = HONEST; i < QPS; i++)
		must(hca_qp_state(hca_qp_behind(f.qp[i])) == IBV_QPS_RTS);
}

static void drain_events(void)
{
	struct pollfd p = { .fd = f.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event e;

	while (poll(&p, 1, 0) == 1 && !hca_async_event_get(f.ctx, &e))
		hca_async_event_ack(&e);
}

/* Each reason is counted: a packet of each kind, one by one. */
static void count_each(void)
{
	struct packet_frame p = { .service = PACKET_RC, .dst_qpn = f.qp[RC]->qp_num,
				  .rc = { .op = RC_ACK, .flags = RC_FIRST | RC_LAST,
					  .psn = 1, .syndrome = 0x1f } };
	static struct hostile h;
	uint64_t before;

	h.length = packet_ib_encode(&p, h.bytes) + IB_ICRC_BYTES;
	seal_hostile(&h);
	h.bytes[h.length - 1] ^= 1;
	before = counter(HCA_BAD_ICRC);
	hand_over(&h, 0);
	must(counter(HCA_BAD_ICRC) == before + 1);

	h.bytes[0] = 0x1f; /* no opcode of RC */
	seal_hostile(&h);
	before = counter(HCA_BAD_PACKETS);
	hand_over(&h, 0);
	must(counter(HCA_BAD_PACKETS) == before + 1);

	h.length = packet_ib_encode(&p, h.bytes) + IB_ICRC_BYTES;
	h.source = 1;
	seal_hostile(&h);
	before = counter(HCA_STRANGERS);
	hand_over(&h, 0);
	must(counter(HCA_STRANGERS) == before + 1);

	p = (struct packet_frame){ .service = PACKET_UD, .dst_qpn = f.qp[UD]->qp_num,
				   .qkey = QKEY + 1,
				   .rc = { .op = RC_SEND, .flags = RC_FIRST | RC_LAST } };
	h.length = packet_ib_encode(&p, h.bytes) + IB_ICRC_BYTES;
	seal_hostile(&h);
	before = counter(HCA_WRONG_QKEYS);
	hand_over(&h, 0);
	must(counter(HCA_WRONG_QKEYS) == before + 1);
}

/* What an acknowledgement waits for does not come when the process ends. */
static void end_the_port(void)
{
	struct packet_qp *pq = packet_part(hca_qp_behind(f.qp[RC]))->state;
	struct packet_frame p = {
		.service = PACKET_RC, .dst_qpn = f.qp[RC]->qp_num,
		.rc = { .op = RC_WRITE, .flags = RC_FIRST | RC_LAST | RC_ACK_REQ,
			.psn = pq->responder.expected_psn },
	};
	static struct hostile h;
	bool owes;

	h.length = packet_ib_encode(&p, h.bytes) + IB_ICRC_BYTES;
	seal_hostile(&h);
	hand_over(&h, 0);
	packet_port_end(&port);
	hca_enter();
	hca_lock(&port.receive_lock);
	must(pq->responder.expected_psn == ((p.rc.psn + 1) & 0xffffff));
	owes = pq->responder.owed;
	hca_unlock(&port.receive_lock);
	hca_leave();
	must(!owes);
}

static void close_all(void)
{
	hca_gsi_close();
	drain_events();
	must(!hca_mw_dealloc(f.mw));
	for (int i = 0; i < QPS; i++)
		must(!hca_qp_destroy(f.qp[i]));
	must(!hca_srq_destroy(f.srq));
	must(!hca_srq_destroy(f.xrc));
	must(!hca_xrcd_close(f.xrcd));
	must(!hca_cq_destroy(f.cq));
	must(!hca_cq_destroy(f.honest_cq));
	must(!hca_mr_deregister(f.all));
	must(!hca_mr_deregister(f.open));
	must(!hca_mr_deregister(f.readable));
	must(!hca_mr_deregister(f.other));
	must(!hca_mr_deregister(f.window_mr));
	must(!hca_pd_dealloc(f.pd));
	must(!hca_pd_dealloc(f.other_pd));
	must(!hca_context_close(f.ctx));
	for (int i = 0; i < SOURCES; i++)
		close(f.fds[i]);
}

static bool silent(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
	return true;
}

static void round_of_packets(void)
{
	renew();
	f.gentle = one_in(2);
	for (int i = 0; i < VICTIMS; i++) {
		post_receives(i);
		for (unsigned n = draw(3); n; n--)
			post_work(i);
	}
	for (int i = 0; i < 64; i++) {
		attack();
		if (i % 16 == 15)
			poll_victims();
	}
	poll_victims();
	honest_step();
	drain_events();
	check_arena();
}

int main(int argc, char **argv)
{
	static const struct hca_transport_ops *const transports[] = { &roce_ops, NULL };
	unsigned long seconds = argc > 1 ? strtoul(argv[1], NULL, 0) : 3;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	uint64_t end = now_ms() + seconds * 1000;
	char udp_port[8];

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	/* A port of its own: other tests use 4791. */
	snprintf(udp_port, sizeof(udp_port), "%d", 20000 + getpid() % 10000);
	setenv("BUSBAR_TRANSPORTS", "roce", 1);
	setenv("BUSBAR_ROCE_PORT", udp_port, 1);
	log_set_sink(silent);
	hca_transports_register(transports);
	state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	open_all();
	count_each();
	end_the_port();
	do {
		round_of_packets();
	} while (now_ms() < end);
	printf("%llu packets, %llu of them by sockets; %llu honest messages; of the others %llu received, %llu answered, %llu failed; bad ICRC %llu, malformed %llu, strangers %llu, wrong Q_Key %llu, to no queue pair %llu\n",
	       (unsigned long long)f.packets, (unsigned long long)f.by_socket,
	       (unsigned long long)f.received, (unsigned long long)f.receives,
	       (unsigned long long)f.answered, (unsigned long long)f.failed,
	       (unsigned long long)counter(HCA_BAD_ICRC),
	       (unsigned long long)counter(HCA_BAD_PACKETS),
	       (unsigned long long)counter(HCA_STRANGERS),
	       (unsigned long long)counter(HCA_WRONG_QKEYS),
	       (unsigned long long)counter(HCA_UNKNOWN_QP));
	/* Packets come as far as they can. */
	must(f.received && f.receives && f.answered && f.failed);
	must(!is_canary(f.at.open, OPEN_BYTES) && !is_canary(f.at.window, OPEN_BYTES) &&
	     !is_canary(f.at.work, WORK_BYTES));
	close_all();
	return 0;
}
