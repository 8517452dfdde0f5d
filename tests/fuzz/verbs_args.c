/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzer of the arguments of ibv_*: random calls with random values; see api.h.
 *
 *     fuzz_verbs_args [SECONDS [SEED [RUN]]]
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_args.h"

enum { CALLS = 250 };

struct verbs_args v;

uint32_t any_qpn(void)
{
	const struct ibv_qp *qp = pick(&v.qps);
	/* The first thousand are nobody's, the last one is of multicast. */
	uint32_t n = qp && draw(8) ? qp->qp_num :
		     one_in(4)	   ? 0xffffff : draw(1024);

	return n | (one_in(3) ? number() << 24 : 0);
}

static union ibv_gid any_gid(void)
{
	union ibv_gid gid = { 0 };

	if (draw(4) == 0 || ibv_query_gid(v.ctx, 1, 0, &gid))
		for (int i = 0; i < 16; i++)
			gid.raw[i] = (uint8_t)draw(256);
	return gid;
}

static struct ibv_ah_attr any_ah_attr(void)
{
	struct ibv_ah_attr any;

	any_words(&any, sizeof(any));
	if (one_in(8))
		return any;
	return (struct ibv_ah_attr){
		.is_global = (uint8_t)mostly(2),
		.port_num = one_in(20) ? (uint8_t)number() : 1,
		.grh = { .dgid = any_gid(), .sgid_index = (uint8_t)mostly(1),
			 .hop_limit = (uint8_t)number(),
			 .flow_label = number(),
			 .traffic_class = (uint8_t)number() },
		.src_path_bits = (uint8_t)number(),
		.dlid = (uint16_t)number(), .sl = (uint8_t)mostly(16),
		.static_rate = (uint8_t)number(),
	};
}

static struct ibv_qp_cap any_cap(void)
{
	struct ibv_qp_cap c = {
		.max_send_wr = mostly(40), .max_recv_wr = mostly(40),
		.max_send_sge = mostly(8), .max_recv_sge = mostly(8),
		.max_inline_data = mostly(300),
	};

	/* Valid, but tens of megabytes. */
	if (c.max_send_wr > 1000 && c.max_send_wr <= 32768 && draw(20))
		c.max_send_wr = 1000;
	return c;
}

/* ---- creating ---- */

static void call_alloc_pd(void)
{
	CALL("ibv_alloc_pd");
	/* Few, so that objects of the same one meet. */
	if (v.pds.count < 1 || (has_room(&v.pds) && one_in(12)))
		keep(&v.pds, pointer(ibv_alloc_pd(one_in(20) ? NULL : v.ctx)));
}

static void call_create_channel(void)
{
	struct ibv_comp_channel *ch;

	CALL("ibv_create_comp_channel");
	if (!has_room(&v.channels))
		return;
	ch = keep(&v.channels, pointer(ibv_create_comp_channel(
					       one_in(20) ? NULL : v.ctx)));
	if (ch)
		must(!fcntl(ch->fd, F_SETFL, O_NONBLOCK));
}

static int any_cqe(void)
{
	static const int edges[] = { 0, -1, 1, 2, 4096, (1 << 22) + 1, INT32_MAX,
				     INT32_MIN };

	return draw(3) ? 1 + (int)draw(500) : edges[draw(8)];
}

static void call_create_cq(void)
{
	CALL("ibv_create_cq");
	if (has_room(&v.cqs))
		keep(&v.cqs, pointer(ibv_create_cq(
				     one_in(20) ? NULL : v.ctx, any_cqe(), &v,
				     draw(2) ? pick(&v.channels) : NULL,
				     one_in(8) ? (int)number() : 0)));
}

static void call_create_cq_ex(void)
{
	struct ibv_cq_init_attr_ex a = {
		.cqe = (uint32_t)any_cqe(), .channel = pick(&v.channels),
		.comp_vector = one_in(8) ? number() : 0,
		.wc_flags = flags(0xffff), .comp_mask = flags(7),
		.flags = flags(3),
		.parent_domain = one_in(2) ? pick(&v.pds) : NULL,
	};
	struct ibv_cq_ex *cq;

	CALL("ibv_create_cq_ex");
	if (!has_room(&v.cqs))
		return;
	cq = pointer(ibv_create_cq_ex(v.ctx, &a));
	if (cq) {
		keep(&v.cqs, ibv_cq_ex_to_cq(cq));
		keep(&v.ex_cqs, cq);
	}
}

static void call_domain(void)
{
	struct ibv_td_init_attr ta = { .comp_mask = one_in(8) ? number() : 0 };
	struct ibv_parent_domain_init_attr pa = {
		.pd = pick(&v.pds), .td = draw(2) ? pick(&v.tds) : NULL,
		.comp_mask = one_in(8) ? number() & ~3u : 0,
	};

	CALL("ibv_alloc_td");
	if (has_room(&v.tds))
		keep(&v.tds, pointer(ibv_alloc_td(v.ctx, &ta)));
	CALL("ibv_alloc_parent_domain");
	if (has_room(&v.pds) && one_in(4))
		keep(&v.pds, pointer(ibv_alloc_parent_domain(v.ctx, &pa)));
}

/* Also where nothing is, but not what the address sanitizer keeps for itself: that is
 * mapped, may be registered, and is not to be read. */
static uint64_t anywhere(void)
{
	uint64_t at = (uint64_t)number() << 20;

#ifdef __SANITIZE_ADDRESS__
	if (at >= UINT64_C(0x7fff0000) && at < UINT64_C(0x100080000000))
		at = 0;
#endif
	return at;
}

static void call_reg_mr(void)
{
	uint64_t at = (uintptr_t)v.memory + draw(MEMORY / 2);
	size_t length = 1 + draw(MEMORY / 2);
	int access = (int)flags(0x1ff) | (draw(3) ? IBV_ACCESS_LOCAL_WRITE : 0);
	struct ibv_pd *pd = one_in(20) ? NULL : pick(&v.pds);

	CALL("ibv_reg_mr");
	if (!has_room(&v.mrs))
		return;
	switch (draw(12)) {
	case 0: at = anywhere(); break;
	case 1: length = (size_t)number() << draw(40); break;
	case 2: at = UINT64_MAX - draw(5000); break;
	case 3: access = (int)number(); break;
	default: break;
	}
	switch (draw(4)) {
	case 0:
		keep(&v.mrs, pointer((ibv_reg_mr_iova2)(
				     pd, (void *)(uintptr_t)at, length,
				     (uint64_t)number() << draw(33),
				     (unsigned)access)));
		break;
	case 1:
		keep(&v.mrs, pointer((ibv_reg_mr_iova)(
				     pd, (void *)(uintptr_t)at, length,
				     (uint64_t)number() << draw(33), access)));
		break;
	default:
		keep(&v.mrs, pointer((ibv_reg_mr)(pd, (void *)(uintptr_t)at,
						  length, access)));
		break;
	}
}

static void call_rereg_mr(void)
{
	struct ibv_mr *mr = one_in(20) ? NULL : pick(&v.mrs);
	int ret;

	CALL("ibv_rereg_mr");
	ret = ibv_rereg_mr(mr, (int)flags(7), pick(&v.pds),
			   v.memory + draw(MEMORY / 2), mostly(MEMORY / 2),
			   (int)flags(0xf));
	must(ret == 0 || (ret < 0 && ret >= IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW &&
			  is_errno(errno)));
}

static void call_create_srq(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = mostly(100),
						 .max_sge = mostly(6),
						 .srq_limit = number() } };

	CALL("ibv_create_srq");
	if (has_room(&v.srqs))
		keep(&v.srqs, pointer(ibv_create_srq(
				      one_in(20) ? NULL : pick(&v.pds), &a)));
}

static void call_create_qp(void)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, 1, 0, 7,
		IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER, 77,
	};
	struct ibv_qp_init_attr_ex a = {
		.send_cq = pick(&v.cqs), .recv_cq = pick(&v.cqs),
		.srq = one_in(4) ? pick(&v.srqs) : NULL, .cap = any_cap(),
		.qp_type = types[draw(one_in(5) ? 10 : 4)],
		.sq_sig_all = (int)draw(2),
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pick(&v.pds),
	};
	struct ibv_qp *qp;

	CALL("ibv_create_qp");
	if (!has_room(&v.qps) || !a.pd)
		return;
	if (draw(2)) {
		struct ibv_qp_init_attr plain = {
			.send_cq = a.send_cq, .recv_cq = a.recv_cq,
			.srq = a.srq, .cap = a.cap, .qp_type = a.qp_type,
			.sq_sig_all = a.sq_sig_all };

		qp = pointer(ibv_create_qp(one_in(20) ? NULL : a.pd, &plain));
		a.cap = plain.cap;
	} else {
		a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.send_ops_flags = flags(a.qp_type == IBV_QPT_RC   ? 0x3ff :
					 a.qp_type == IBV_QPT_UC ? 0x387 :
								   0xc) |
				   IBV_QP_EX_WITH_SEND;
		if (one_in(8))
			a.comp_mask = number();
		a.create_flags = one_in(4) ? number() : 0;
		a.max_tso_header = (uint16_t)number();
		a.rx_hash_conf.rx_hash_fields_mask = number();
		a.source_qpn = number();
		qp = pointer(ibv_create_qp_ex(v.ctx, &a));
	}
	keep(&v.qps, qp);
}

static void call_create_ah(void)
{
	struct ibv_ah_attr a = any_ah_attr();

	CALL("ibv_create_ah");
	if (has_room(&v.ahs))
		keep(&v.ahs, pointer(ibv_create_ah(one_in(20) ? NULL : pick(&v.pds),
						   one_in(20) ? NULL : &a)));
}

static void call_ah_from_wc(void)
{
	struct ibv_wc wc = { .wc_flags = flags(0xf), .slid = (uint16_t)number(),
			     .src_qp = number() };
	struct ibv_grh grh;
	struct ibv_ah_attr a;

	CALL("ibv_init_ah_from_wc");
	for (size_t i = 0; i < sizeof(grh); i++)
		((uint8_t *)&grh)[i] = (uint8_t)draw(256);
	if (draw(2))
		((uint8_t *)&grh)[draw(2) ? 0 : 20] = draw(2) ? 0x45 : 0x60;
	done_or_minus1(ibv_init_ah_from_wc(one_in(20) ? NULL : v.ctx,
					   (uint8_t)mostly(3), &wc,
					   one_in(8) ? NULL : &grh, &a));
}

/* ---- changing and asking ---- */

static struct ibv_qp_attr any_attr(void)
{
	struct ibv_qp_attr any;

	any_words(&any, sizeof(any));
	any.dest_qp_num = any_qpn();
	if (one_in(6))
		return any;
	return (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)mostly(7),
		.cur_qp_state = (enum ibv_qp_state)mostly(7),
		.path_mtu = (enum ibv_mtu)mostly(7), .qkey = mostly(3),
		.rq_psn = number(), .sq_psn = number(),
		.dest_qp_num = any_qpn(), .qp_access_flags = flags(0xf),
		.ah_attr = any_ah_attr(), .alt_ah_attr = any_ah_attr(),
		.pkey_index = (uint16_t)mostly(1),
		.en_sqd_async_notify = (uint8_t)draw(2),
		.max_rd_atomic = (uint8_t)mostly(129),
		.max_dest_rd_atomic = (uint8_t)mostly(129),
		.min_rnr_timer = (uint8_t)mostly(32),
		.alt_pkey_index = (uint16_t)number(),
		.alt_port_num = (uint8_t)number(),
		.alt_timeout = (uint8_t)number(),
		.sq_draining = (uint8_t)number(),
		.port_num = one_in(8) ? (uint8_t)number() : 1,
		.timeout = (uint8_t)mostly(8),
		.retry_cnt = (uint8_t)mostly(8), .rnr_retry = (uint8_t)mostly(8),
		.cap = any_cap(), .rate_limit = number(),
		.path_mig_state = (enum ibv_mig_state)mostly(3),
	};
}

static void call_modify_qp(void)
{
	struct ibv_qp_attr a = any_attr();
	struct ibv_qp *qp = one_in(20) ? NULL : pick(&v.qps);

	CALL("ibv_modify_qp");
	done(ibv_modify_qp(qp, one_in(40) ? NULL : &a,
			   (int)(draw(2) ? flags(0x1fffff) :
					   IBV_QP_STATE | flags(0x3ff))));
}

/* Through the states as it should be, so that something moves at all. */
static void call_connect_qp(void)
{
	struct ibv_qp *qp = pick(&v.qps);
	struct ibv_qp_attr a = any_attr();
	bool ud, rc;

	CALL("ibv_modify_qp, connecting");
	if (!qp)
		return;
	ud = qp->qp_type == IBV_QPT_UD;
	/* Both halves of an XRC connection are given all of them. */
	rc = !ud && qp->qp_type != IBV_QPT_UC;
	a.qp_access_flags &= 0xf;
	a.dest_qp_num &= 0xffffff;
	a.timeout &= 31;
	a.retry_cnt &= 7;
	a.rnr_retry &= 7;
	a.min_rnr_timer &= 31;
	a.ah_attr.sl = 0;
	a.qp_state = IBV_QPS_RESET;
	a.port_num = a.ah_attr.port_num = 1;
	a.pkey_index = 0;
	a.path_mtu = IBV_MTU_1024;
	a.max_rd_atomic = a.max_dest_rd_atomic = 4;
	a.ah_attr.is_global = 0;
	done(ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_INIT;
	done(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			   IBV_QP_PORT | (ud ? IBV_QP_QKEY :
					       IBV_QP_ACCESS_FLAGS)));
	a.qp_state = IBV_QPS_RTR;
	done(ibv_modify_qp(qp, &a, IBV_QP_STATE |
			   (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
			   (rc ? IBV_QP_MAX_DEST_RD_ATOMIC |
				 IBV_QP_MIN_RNR_TIMER : 0)));
	a.qp_state = IBV_QPS_RTS;
	done(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			   (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC :
				 0)));
}

static void call_query(void)
{
	struct ibv_qp_attr qa;
	struct ibv_qp_init_attr qi;
	struct ibv_srq_attr sa;
	struct ibv_port_attr pa;
	struct ibv_device_attr da;
	struct ibv_device_attr_ex dx;
	struct ibv_gid_entry entries[8];
	union ibv_gid gid;
	__be16 pkey;
	int n = 0;

	CALL("ibv_query_*");
	done(ibv_query_qp(one_in(20) ? NULL : pick(&v.qps), &qa, (int)number(),
			  &qi));
	done(ibv_query_srq(one_in(20) ? NULL : pick(&v.srqs), &sa));
	done(ibv_query_port(v.ctx, (uint8_t)mostly(3), &pa));
	done(ibv_query_device(one_in(20) ? NULL : v.ctx, &da));
	done(ibv_query_device_ex(v.ctx, &(struct ibv_query_device_ex_input){
			.comp_mask = one_in(4) ? number() : 0 }, &dx));
	done_or_minus1(ibv_query_gid(v.ctx, (uint8_t)mostly(3), (int)mostly(4),
				     &gid));
	done_or_minus1(ibv_query_pkey(v.ctx, (uint8_t)mostly(3), (int)mostly(2),
				      &pkey));
	ibv_get_pkey_index(v.ctx, (uint8_t)mostly(3), (__be16)number());
	n = (int)ibv_query_gid_table(v.ctx, entries, draw(9), one_in(8) ?
				     number() : 0);
	must(n <= 8 && (n >= 0 || is_errno(-n)));
	done(ibv_query_gid_ex(v.ctx, mostly(3), mostly(4), entries,
			      one_in(8) ? number() : 0));
}

static void call_resize_cq(void)
{
	CALL("ibv_resize_cq");
	done(ibv_resize_cq(one_in(20) ? NULL : pick(&v.cqs), any_cqe()));
}

static void call_modify_srq(void)
{
	struct ibv_srq_attr a = { .max_wr = number(), .srq_limit = mostly(20) };

	CALL("ibv_modify_srq");
	done(ibv_modify_srq(one_in(20) ? NULL : pick(&v.srqs), &a,
			    (int)flags(3)));
}

static void call_text(void)
{
	CALL("ibv_*_str");
	must(ibv_wc_status_str((enum ibv_wc_status)number()));
	must(ibv_event_type_str((enum ibv_event_type)number()));
	must(ibv_node_type_str((enum ibv_node_type)number()));
	must(ibv_port_state_str((enum ibv_port_state)number()));
	(void)ibv_rate_to_mult((enum ibv_rate)number());
	(void)ibv_rate_to_mbps((enum ibv_rate)number());
	(void)mult_to_ibv_rate((int)number());
	(void)mbps_to_ibv_rate((int)number());
}

#define FILE_BYTES 8192
static int memory_file; /* sealed against shrinking */

/* What may not be there at all; and what it gave, if it is. */
static void call_optional(void)
{
	struct ibv_pd *pd = pick(&v.pds);
	struct ibv_ece ece;
	struct ibv_qp *qp = pick(&v.qps);
	union ibv_gid gid = any_gid();

	CALL("ibv_attach_mcast");
	if (qp && done(ibv_attach_mcast(qp, &gid, (uint16_t)number())))
		must(done(ibv_detach_mcast(qp, &gid, 0)));
	CALL("ibv_query_ece");
	done(ibv_query_ece(qp, &ece));
	done(ibv_set_ece(qp, &ece));
	CALL("ibv_reg_dmabuf_mr");
	keep(&v.mrs, has_room(&v.mrs) ?
			     pointer(ibv_reg_dmabuf_mr(pd, mostly(FILE_BYTES), mostly(FILE_BYTES),
						       number(), one_in(3) ? -1 : memory_file,
						       (int)mostly(16))) :
			     NULL);
}

/* ---- destroying ---- */

static void call_destroy(void)
{
	void *o;

	switch (draw(9)) {
	case 0:
		CALL("ibv_destroy_qp");
		o = one_in(20) ? NULL : pick(&v.qps);
		if (done(ibv_destroy_qp(o)))
			forget(&v.qps, o);
		break;
	case 1:
		CALL("ibv_destroy_cq");
		o = one_in(20) ? NULL : pick(&v.cqs);
		if (done(ibv_destroy_cq(o))) {
			forget(&v.cqs, o);
			forget(&v.ex_cqs, o);
		}
		break;
	case 2:
		CALL("ibv_destroy_srq");
		o = one_in(20) ? NULL : pick(&v.srqs);
		if (done(ibv_destroy_srq(o)))
			forget(&v.srqs, o);
		break;
	case 3:
		CALL("ibv_dereg_mr");
		o = one_in(20) ? NULL : pick(&v.mrs);
		if (done(ibv_dereg_mr(o)))
			forget(&v.mrs, o);
		break;
	case 4:
		CALL("ibv_destroy_comp_channel");
		o = one_in(20) ? NULL : pick(&v.channels);
		if (done(ibv_destroy_comp_channel(o)))
			forget(&v.channels, o);
		break;
	case 5: /* behind a datagram of it, maybe */
	case 6:
		CALL("ibv_destroy_ah");
		o = one_in(20) ? NULL : pick(&v.ahs);
		if (done(ibv_destroy_ah(o)))
			forget(&v.ahs, o);
		break;
	case 7:
		CALL("ibv_close_xrcd");
		o = pick(&v.xrcds);
		if (o && done(ibv_close_xrcd(o)))
			forget(&v.xrcds, o);
		break;
	default:
		CALL("ibv_dealloc_pd");
		o = one_in(20) ? NULL : pick(&v.pds);
		if (done(ibv_dealloc_pd(o)))
			forget(&v.pds, o);
		break;
	}
}

#define DESTROY_ALL(pool, fn)                                \
	while ((pool)->count)                                \
		must(fn((pool)->at[--(pool)->count]) == 0)

static void destroy_all(void)
{
	CALL("destroying everything");
	DESTROY_ALL(&v.mws, ibv_dealloc_mw);
	DESTROY_ALL(&v.qps, ibv_destroy_qp);
	DESTROY_ALL(&v.srqs, ibv_destroy_srq);
	DESTROY_ALL(&v.xrc_srqs, ibv_destroy_srq);
	DESTROY_ALL(&v.xrcds, ibv_close_xrcd);
	DESTROY_ALL(&v.cqs, ibv_destroy_cq);
	DESTROY_ALL(&v.channels, ibv_destroy_comp_channel);
	DESTROY_ALL(&v.ahs, ibv_destroy_ah);
	DESTROY_ALL(&v.mrs, ibv_dereg_mr);
	/* Some are parents of others. */
	for (int i = 0; v.pds.count && i < POOL; i++)
		for (int k = v.pds.count - 1; k >= 0; k--)
			if (done(ibv_dealloc_pd(v.pds.at[k])))
				forget(&v.pds, v.pds.at[k]);
	must(v.pds.count == 0);
	DESTROY_ALL(&v.tds, ibv_dealloc_td);
	v.ex_cqs.count = 0;
	must(ibv_close_device(v.ctx) == 0);
}

static void one_run(void)
{
	static void (*const calls[])(void) = {
		call_alloc_pd, call_create_channel, call_create_cq,
		call_create_cq_ex, call_domain, call_start_poll,
		call_start_poll, call_modify_cq, call_reg_mr, call_reg_mr, call_rereg_mr,
		call_create_srq, call_create_qp, call_create_qp, call_create_ah,
		call_ah_from_wc, call_modify_qp, call_modify_qp, call_query,
		call_connect_qp, call_connect_qp, call_resize_cq,
		call_modify_srq, call_text, call_post_send, call_post_send,
		call_post_send, call_build_send, call_post_recv, call_post_recv,
		call_poll_cq, call_poll_cq, call_events, call_optional,
		call_destroy, call_xrc, call_create_xrc_qp, call_window,
		call_build_send,
	};
	int count;
	struct ibv_device **list;

	CALL("ibv_get_device_list");
	list = pointer(ibv_get_device_list(&count));
	must(count > 0);
	v.ctx = pointer(ibv_open_device(list[0]));
	must(v.ctx);
	ibv_free_device_list(list);
	must(!fcntl(v.ctx->async_fd, F_SETFL, O_NONBLOCK));
	call_alloc_pd();
	call_create_cq();
	for (unsigned n = draw(CALLS); n > 0; n--)
		calls[draw(sizeof(calls) / sizeof(calls[0]))]();
	destroy_all();
}

int main(int argc, char **argv)
{
	int ret;

	v.memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory_file = memfd_create("verbs_args", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (v.memory == MAP_FAILED || memory_file < 0 || ftruncate(memory_file, FILE_BYTES) ||
	    fcntl(memory_file, F_ADD_SEALS, F_SEAL_SHRINK))
		return 1;
	ret = api_main(argc, argv, 5, 1, 0, one_run);
	close(memory_file);
	munmap(v.memory, MEMORY);
	return ret;
}
