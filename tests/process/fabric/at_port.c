/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A verbs program at the port of a fabric, for adapter.py: reads commands from its standard input and
 * answers each with one line. Numbers are as C reads them.
 *
 *   port                      what ibv_query_port(3) and the tables say
 *   event                     waits for the next asynchronous event; its name
 *   datagram LID BITS SL PKEY_INDEX GRH
 *                             a datagram to this program's own queue pair of the LID; what its completion says, and
 *                             the vector that ibv_init_ah_from_wc(3) makes of it
 *   limited LID PKEY_INDEX    a datagram to itself of a queue pair with that P_Key, then of one with the first;
 *                             which of them came
 *   vector LID BITS           is it taken for an address handle, and for RTR? errno values
 *   index PKEY_INDEX          is it taken for INIT? errno
 *   connect LID               RC queue pairs to each other: a message; the status of the send
 *   post LID                  a datagram to a queue pair of the LID that nobody has; the status of the send
 *   group LID                 attaches to ff12::LID, sends to it; how many copies came
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QKEY 0x11111111
#define BYTES 64
#define GRH 40
#define WAIT_MS 10000
#define FILL 0xa5

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t memory[2 * (GRH + BYTES)];

static void fail(const char *what)
{
	printf("failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0] || strcmp(ibv_get_device_name(list[0]), "soft0") != 0)
		fail("no soft0");
	ctx = ibv_open_device(list[0]);
	if (!ctx)
		fail("ibv_open_device");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	if (!pd || !cq || !mr)
		fail("objects");
	ibv_free_device_list(list);
}

/* ---- what the port is ---- */

static void say_port(void)
{
	struct ibv_device_attr device;
	struct ibv_port_attr a;
	union ibv_gid gid = { 0 };
	__be16 pkey;

	if (ibv_query_device(ctx, &device) || ibv_query_port(ctx, 1, &a) || ibv_query_gid(ctx, 1, 0, &gid))
		fail("queries");
	printf("layer=%d state=%d lid=%u lmc=%u sm_lid=%u mtu=%d width=%u speed=%u gid=%016llx:%016llx guid=%016llx pkeys=",
	       a.link_layer, a.state, a.lid, a.lmc, a.sm_lid, a.active_mtu, a.active_width,
	       a.active_speed, (unsigned long long)be64toh(gid.global.subnet_prefix),
	       (unsigned long long)be64toh(gid.global.interface_id),
	       (unsigned long long)be64toh(device.node_guid));
	for (int i = 0; i < a.pkey_tbl_len && !ibv_query_pkey(ctx, 1, i, &pkey); i++) {
		bool found = ibv_get_pkey_index(ctx, 1, pkey) <= i;

		printf("%s0x%x%s", i ? "," : "", be16toh(pkey), found ? "" : "?");
	}
	printf("\n");
}

static void say_event(void)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event e;

	if (poll(&p, 1, WAIT_MS) != 1 || ibv_get_async_event(ctx, &e)) {
		printf("none\n");
		return;
	}
	printf("%s\n", ibv_event_type_str(e.event_type));
	ibv_ack_async_event(&e);
}

/* ---- queue pairs ---- */

static struct ibv_qp *make_qp(enum ibv_qp_type type, int pkey_index, int *ret)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = type,
					 .cap = { 8, 8, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .pkey_index = (uint16_t)pkey_index,
				 .port_num = 1, .qkey = QKEY };

	if (!qp)
		fail("ibv_create_qp");
	*ret = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	return qp;
}

static int to_rtr(struct ibv_qp *qp, const struct ibv_ah_attr *to, uint32_t qpn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = qpn, .ah_attr = *to, .min_rnr_timer = 1 };

	return ibv_modify_qp(qp, &a, IBV_QP_STATE | (qp->qp_type == IBV_QPT_UD ? 0 :
			     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

/* Half a second of retries in all. */
static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				 .rnr_retry = 7 };

	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			     (qp->qp_type == IBV_QPT_UD ? 0 : IBV_QP_TIMEOUT |
			      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void receive(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)memory, GRH + BYTES, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	memset(memory, FILL, sizeof(memory));
	if (ibv_post_recv(qp, &wr, &bad))
		fail("ibv_post_recv");
}

static void send_message(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge = { (uintptr_t)memory + GRH + BYTES, BYTES, mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.ud = { ah, qpn, QKEY } }, *bad;

	if (ibv_post_send(qp, &wr, &bad))
		fail("ibv_post_send");
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The next completion of the request; false: none came. */
static bool complete(uint64_t wr_id, double wait_s, struct ibv_wc *wc)
{
	const double until_s = now_s() + wait_s;

	while (now_s() < until_s)
		if (ibv_poll_cq(cq, 1, wc) == 1 && wc->wr_id == wr_id)
			return true;
	return false;
}

/* ---- commands ---- */

static void datagram(int lid, int bits, int sl, int pkey_index, int grh)
{
	struct ibv_ah_attr to = { .dlid = (uint16_t)lid, .src_path_bits = (uint8_t)bits,
				  .sl = (uint8_t)sl, .port_num = 1, .is_global = (uint8_t)grh,
				  .grh = { .hop_limit = 3, .traffic_class = 0x12 } }, back;
	struct ibv_qp *qp;
	struct ibv_ah *ah, *answer;
	struct ibv_wc wc;
	bool kept = true;
	int ret;

	if (ibv_query_gid(ctx, 1, 0, &to.grh.dgid))
		fail("ibv_query_gid");
	qp = make_qp(IBV_QPT_UD, pkey_index, &ret);
	ah = ibv_create_ah(pd, &to);
	if (ret || !ah || to_rtr(qp, &to, 0) || to_rts(qp))
		fail("a queue pair of datagrams");
	receive(qp);
	send_message(qp, ah, qp->qp_num);
	if (!complete(1, WAIT_MS / 1000, &wc)) {
		printf("nothing\n");
		goto out;
	}
	for (unsigned i = 0; i < GRH; i++)
		kept &= memory[i] == FILL;
	ret = ibv_init_ah_from_wc(ctx, 1, &wc, (struct ibv_grh *)(void *)memory, &back);
	answer = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)(void *)memory, 1);
	printf("status=%d bytes=%u slid=%u bits=%u sl=%u pkey_index=%u grh=%d kept=%d "
	       "back=%d dlid=%u src_bits=%u back_sl=%u global=%u answer=%d\n", wc.status, wc.byte_len,
	       wc.slid, wc.dlid_path_bits, wc.sl, wc.pkey_index, !!(wc.wc_flags & IBV_WC_GRH), kept,
	       ret, back.dlid, back.src_path_bits, back.sl, back.is_global, answer != NULL);
	if (answer)
		ibv_destroy_ah(answer);
out:
	ibv_destroy_ah(ah);
	ibv_destroy_qp(qp);
}

static struct ibv_qp *own_datagram(struct ibv_ah *ah, const struct ibv_ah_attr *to, int pkey_index)
{
	int ret;
	struct ibv_qp *qp = make_qp(IBV_QPT_UD, pkey_index, &ret);

	if (ret || to_rtr(qp, to, 0) || to_rts(qp))
		fail("a queue pair of datagrams");
	receive(qp);
	send_message(qp, ah, qp->qp_num);
	return qp;
}

/* What leaves first arrives first. */
static void limited(int lid, int pkey_index)
{
	struct ibv_ah_attr to = { .dlid = (uint16_t)lid, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(pd, &to);
	struct ibv_qp *first, *second;
	bool came[2] = { false, false };
	struct ibv_wc wc;

	if (!ah)
		fail("ibv_create_ah");
	first = own_datagram(ah, &to, pkey_index);
	second = own_datagram(ah, &to, 0);
	while (!came[1] && complete(1, WAIT_MS / 1000, &wc))
		came[wc.qp_num == second->qp_num] = true;
	printf("first=%d second=%d\n", came[0], came[1]);
	ibv_destroy_qp(first);
	ibv_destroy_qp(second);
	ibv_destroy_ah(ah);
}

static void vector(int lid, int bits)
{
	struct ibv_ah_attr to = { .dlid = (uint16_t)lid, .src_path_bits = (uint8_t)bits,
				  .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(pd, &to);
	int handle = ah ? 0 : errno, ret;
	struct ibv_qp *qp = make_qp(IBV_QPT_RC, 0, &ret);

	printf("handle=%d rtr=%d\n", handle, ret ? -1 : to_rtr(qp, &to, qp->qp_num));
	if (ah)
		ibv_destroy_ah(ah);
	ibv_destroy_qp(qp);
}

static void try_index(int pkey_index)
{
	int ret;
	struct ibv_qp *qp = make_qp(IBV_QPT_RC, pkey_index, &ret);

	printf("%d\n", ret);
	ibv_destroy_qp(qp);
}

static void connect_and_send(int lid)
{
	const struct ibv_ah_attr to = { .dlid = (uint16_t)lid, .port_num = 1 };
	struct ibv_qp *a, *b;
	struct ibv_wc wc;
	int ret[2];

	a = make_qp(IBV_QPT_RC, 0, &ret[0]);
	b = make_qp(IBV_QPT_RC, 0, &ret[1]);
	if (ret[0] || ret[1] || to_rtr(a, &to, b->qp_num) || to_rtr(b, &to, a->qp_num) ||
	    to_rts(a) || to_rts(b))
		fail("a connection");
	receive(b);
	send_message(a, NULL, 0);
	printf("%s\n", complete(0, 30, &wc) ? ibv_wc_status_str(wc.status) : "none");
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
}

static void post(int lid)
{
	struct ibv_ah_attr to = { .dlid = (uint16_t)lid, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(pd, &to);
	struct ibv_wc wc;
	int ret;
	struct ibv_qp *qp = make_qp(IBV_QPT_UD, 0, &ret);

	if (ret || !ah || to_rtr(qp, &to, 0) || to_rts(qp))
		fail("a queue pair of datagrams");
	send_message(qp, ah, 0xfffff0);
	printf("%s\n", complete(0, WAIT_MS / 1000, &wc) ? ibv_wc_status_str(wc.status) : "none");
	ibv_destroy_ah(ah);
	ibv_destroy_qp(qp);
}

static void group(int lid)
{
	struct ibv_ah_attr to = { .dlid = (uint16_t)lid, .port_num = 1, .is_global = 1,
				  .grh = { .dgid.raw = { 0xff, 0x12, [14] = (uint8_t)(lid >> 8),
							 (uint8_t)lid }, .hop_limit = 1 } };
	struct ibv_ah *ah = ibv_create_ah(pd, &to);
	struct ibv_wc wc;
	struct ibv_qp *qp;
	int ret;

	qp = make_qp(IBV_QPT_UD, 0, &ret);
	if (ret || !ah || to_rtr(qp, &to, 0) || to_rts(qp))
		fail("a member");
	ret = ibv_attach_mcast(qp, &to.grh.dgid, (uint16_t)lid);
	if (!ret) {
		receive(qp);
		send_message(qp, ah, 0xffffff);
	}
	printf("attached=%d came=%d", ret, !ret && complete(1, WAIT_MS / 1000, &wc));
	printf(" detached=%d\n", ret ? -1 : ibv_detach_mcast(qp, &to.grh.dgid, (uint16_t)lid));
	ibv_destroy_ah(ah);
	ibv_destroy_qp(qp);
}

int main(void)
{
	char line[128], word[16];
	int n[5];

	open_device();
	printf("open\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		memset(n, 0, sizeof(n));
		sscanf(line, "%15s %i %i %i %i %i", word, &n[0], &n[1], &n[2], &n[3], &n[4]);
		if (!strcmp(word, "port"))
			say_port();
		else if (!strcmp(word, "event"))
			say_event();
		else if (!strcmp(word, "datagram"))
			datagram(n[0], n[1], n[2], n[3], n[4]);
		else if (!strcmp(word, "limited"))
			limited(n[0], n[1]);
		else if (!strcmp(word, "vector"))
			vector(n[0], n[1]);
		else if (!strcmp(word, "index"))
			try_index(n[0]);
		else if (!strcmp(word, "connect"))
			connect_and_send(n[0]);
		else if (!strcmp(word, "post"))
			post(n[0]);
		else if (!strcmp(word, "group"))
			group(n[0]);
		fflush(stdout);
	}
	ibv_close_device(ctx);
	return 0;
}
