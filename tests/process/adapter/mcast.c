/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast: every attached queue pair gets one copy, no other one any
 * (ibv_attach_mcast(3); InfiniBand specification volume 1, 10.5).
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "pair.h"

enum { GRH = 40, QKEY = 0x11111111, ROOM = 8192, GROUP_QPN = 0xffffff };

static const struct side_options ud = { .type = IBV_QPT_UD, .bytes = 1 << 18 };

/* One group of IPv4 and one of IPv6, chosen for this run, so that other runs on this host
 * neither send to them nor receive from them. */
static union ibv_gid v4 = { .raw = { [10] = 0xff, 0xff, 239 } };
static union ibv_gid v6 = { .raw = { 0xff, 0x0e } };

static void groups_make_own(void)
{
	uint32_t run = (uint32_t)getpid();

	for (int i = 0; i < 3; i++)
		v4.raw[13 + i] = v6.raw[10 + i] = (uint8_t)(run >> 8 * i);
}

/* So many calls to owners of QP numbers find a full backlog. */
static atomic_int full;

static bool is_owners(const struct sockaddr_un *to)
{
	static const char name[] = "busbar.qpn.";

	return to->sun_family == AF_UNIX && !to->sun_path[0] &&
	       !strncmp(to->sun_path + 1, name, sizeof(name) - 1);
}

/* The adapter's calls come here. */
int connect(int fd, const struct sockaddr *to, socklen_t length)
{
	if (atomic_load(&full) > 0 && is_owners((const struct sockaddr_un *)(const void *)to)) {
		atomic_fetch_sub(&full, 1);
		errno = EAGAIN;
		return -1;
	}
	return (int)syscall(SYS_connect, (long)fd, to, (long)length);
}

struct joining {
	int qp;
	bool leave;
	union ibv_gid gid;
};

static int at_join(struct end *e, void *arg)
{
	const struct joining *j = arg;

	return j->leave ? ibv_detach_mcast(e->qp[j->qp], &j->gid, 0) :
			  ibv_attach_mcast(e->qp[j->qp], &j->gid, 0);
}

static int attach(struct side *s, int qp, const union ibv_gid *gid)
{
	struct joining j = { qp, false, *gid };

	return side_run(s, at_join, &j, sizeof(j));
}

static int detach(struct side *s, int qp, const union ibv_gid *gid)
{
	struct joining j = { qp, true, *gid };

	return side_run(s, at_join, &j, sizeof(j));
}

static void to_rts(struct pair *p, struct side *s, int qp)
{
	expect_eq(side_to_init(s, qp, QKEY), 0);
	expect_eq(side_to_rtr(s, qp, &p->conn, &s->gid, 0, 0), 0);
	expect_eq(side_to_rts(s, qp, &p->conn, 0), 0);
}

/* Two QPs on each side, a's first sends. */
static void start(struct pair *p)
{
	pair_open(p, &ud);
	for (int i = 0; i < 2; i++) {
		struct side *s = i ? &p->b : &p->a;

		expect_eq(side_qp_create(s, &ud), 1);
		to_rts(p, s, 0);
		to_rts(p, s, 1);
	}
}

static struct send_req datagram(struct pair *p, int ah, uint64_t wr_id,
				uint32_t length)
{
	struct send_req r = send_req(&p->a, IBV_WR_SEND, wr_id, 0, length);

	r.ah = ah;
	r.remote_qpn = GROUP_QPN;
	r.qkey = QKEY;
	return r;
}

static void send_one(struct pair *p, int ah, uint64_t wr_id, uint32_t length)
{
	struct send_req r = datagram(p, ah, wr_id, length);

	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, wr_id);
}

/* A receive of `qp`: its buffer and its wr_id. */
static void recv_on(struct side *s, int qp, uint64_t wr_id)
{
	struct recv_req r = { .wr_id = wr_id, .num_sge = 1 };

	r.sge[0] = side_sge(s, wr_id * ROOM, ROOM);
	expect_eq(side_post_recv(s, qp, &r, 1).ret, 0);
}

static void check_copy(struct pair *p, struct side *s, const struct ibv_wc *wc,
		       const union ibv_gid *group, uint32_t length)
{
	uint8_t grh[GRH];

	expect_status(*wc, IBV_WC_SUCCESS);
	expect_eq(wc->src_qp, p->a.qpn[0]);
	expect_eq(wc->byte_len, GRH + length);
	expect(wc->wc_flags & IBV_WC_GRH);
	side_peek(s, wc->wr_id * ROOM, grh, GRH);
	if (group->raw[0] == 0xff)
		expect(!memcmp(grh + 24, group->raw, 16));
	else
		expect(grh[20] >> 4 == 4 && !memcmp(grh + 36, group->raw + 12, 4));
	if (length)
		side_check(s, wc->wr_id * ROOM + GRH, length, length);
}

static struct ibv_wc expect_copy(struct pair *p, struct side *s, int qp,
				 uint64_t wr_id, const union ibv_gid *group,
				 uint32_t length)
{
	struct ibv_wc wc = side_wait_ok(s, RECV_CQ, wr_id);

	expect_eq(wc.qp_num, s->qpn[qp]);
	check_copy(p, s, &wc, group, length);
	return wc;
}

/* Both QPs of b have a receive, 3 and 4; they share the CQ. */
static void expect_two_copies(struct pair *p, const union ibv_gid *group,
			      uint32_t length)
{
	struct polled got = side_poll(&p->b, RECV_CQ, 2, WAIT_MS);

	expect_eq(got.count, 2);
	expect_eq(got.wc[0].wr_id + got.wc[1].wr_id, 3 + 4);
	for (int i = 0; i < 2; i++) {
		expect_eq(got.wc[i].qp_num, p->b.qpn[got.wc[i].wr_id - 3]);
		check_copy(p, &p->b, &got.wc[i], group, length);
	}
}

static void each_attached_queue_pair_gets_one_copy(struct pair *p)
{
	static const uint32_t sizes[] = { 0, 1, 56, 57, 1000, 4096 };

	start(p);
	for (int g = 0; g < 2; g++) {
		const union ibv_gid *group = g ? &v6 : &v4;
		int ah;

		expect_eq(attach(&p->a, 1, group), 0);
		expect_eq(attach(&p->b, 0, group), 0);
		expect_eq(attach(&p->b, 1, group), 0);
		ah = side_ah_to(&p->a, group);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			side_fill(&p->a, 0, sizes[i] + 1, sizes[i]);
			recv_on(&p->a, 1, 2);
			recv_on(&p->b, 0, 3);
			recv_on(&p->b, 1, 4);
			send_one(p, ah, 1, sizes[i]);
			expect_copy(p, &p->a, 1, 2, group, sizes[i]);
			expect_two_copies(p, group, sizes[i]);
		}
		expect_eq(detach(&p->a, 1, group), 0);
		expect_eq(detach(&p->b, 0, group), 0);
		expect_eq(detach(&p->b, 1, group), 0);
	}
}

static void immediate_data_come_along(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;

	start(p);
	expect_eq(attach(&p->b, 0, &v4), 0);
	r = datagram(p, side_ah_to(&p->a, &v4), 1, 10);
	r.opcode = IBV_WR_SEND_WITH_IMM;
	r.imm = 0x12345;
	side_fill(&p->a, 0, 10, 10);
	recv_on(&p->b, 0, 3);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	wc = expect_copy(p, &p->b, 0, 3, &v4, 10);
	expect(wc.wc_flags & IBV_WC_WITH_IMM);
	expect_eq(wc.imm_data, 0x12345);
	expect_eq(detach(&p->b, 0, &v4), 0);
}

struct quiet {
	union ibv_gid gid;
	uint32_t flags;
};

/* QP 0 made anew, with `flags`. */
static int at_remake(struct end *e, void *arg)
{
	const struct quiet *q = arg;
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_UD,
		.send_cq = e->cq[SEND_CQ],
		.recv_cq = e->cq[RECV_CQ],
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = e->pd,
		.create_flags = q->flags,
	};

	if (ibv_destroy_qp(e->qp[0]))
		return -1;
	e->qp[0] = ibv_create_qp_ex(e->ctx, &a);
	return e->qp[0] ? (int)e->qp[0]->qp_num : -1;
}

static void the_sender_receives_its_own_datagram_unless_that_is_blocked(struct pair *p)
{
	struct quiet q = { v4, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB };
	int ah;

	start(p);
	expect_eq(attach(&p->a, 0, &v4), 0);
	ah = side_ah_to(&p->a, &v4);
	side_fill(&p->a, 0, 20, 20);
	recv_on(&p->a, 0, 2);
	send_one(p, ah, 1, 20);
	expect_copy(p, &p->a, 0, 2, &v4, 20);
	expect_eq(detach(&p->a, 0, &v4), 0);
	p->a.qpn[0] = (uint32_t)side_run(&p->a, at_remake, &q, sizeof(q));
	to_rts(p, &p->a, 0);
	expect_eq(attach(&p->a, 0, &v4), 0);
	expect_eq(attach(&p->a, 1, &v4), 0);
	recv_on(&p->a, 0, 2);
	recv_on(&p->a, 1, 3);
	send_one(p, ah, 1, 20);
	expect_copy(p, &p->a, 1, 3, &v4, 20);
	side_expect_none(&p->a, RECV_CQ);
	expect_eq(detach(&p->a, 0, &v4), 0);
	expect_eq(detach(&p->a, 1, &v4), 0);
}

static void attaching_twice_is_attaching_once(struct pair *p)
{
	int ah;

	start(p);
	expect_eq(attach(&p->b, 0, &v4), 0);
	expect_eq(attach(&p->b, 0, &v4), 0);
	ah = side_ah_to(&p->a, &v4);
	side_fill(&p->a, 0, 20, 20);
	recv_on(&p->b, 0, 2);
	recv_on(&p->b, 0, 3);
	send_one(p, ah, 1, 20);
	expect_copy(p, &p->b, 0, 2, &v4, 20);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(detach(&p->b, 0, &v4), 0);
	expect_eq(detach(&p->b, 0, &v4), EINVAL);
	send_one(p, ah, 1, 20);
	side_expect_none(&p->b, RECV_CQ);
}

static void only_what_is_for_the_group_arrives(struct pair *p)
{
	struct send_req r;
	int group, other, unicast;

	start(p);
	expect_eq(attach(&p->b, 0, &v4), 0);
	group = side_ah_to(&p->a, &v4);
	other = side_ah_to(&p->a, &v6);
	unicast = side_ah_to(&p->a, &p->b.gid);
	recv_on(&p->b, 0, 2);
	recv_on(&p->b, 1, 3);
	/* Another group; another key; a number that is no group's; a group's
	 * number at an address that is none. */
	send_one(p, other, 1, 5);
	r = datagram(p, group, 2, 5);
	r.qkey++;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	r = datagram(p, group, 3, 5);
	r.remote_qpn = p->b.qpn[1];
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 3);
	send_one(p, unicast, 4, 5);
	side_expect_none(&p->b, RECV_CQ);
	/* The receives are still there. */
	side_fill(&p->a, 0, 6, 6);
	send_one(p, group, 5, 6);
	expect_copy(p, &p->b, 0, 2, &v4, 6);
	expect_eq(detach(&p->b, 0, &v4), 0);
}

static void members_that_cannot_receive_do_not_disturb_others(struct pair *p)
{
	int ah;

	start(p);
	expect_eq(attach(&p->a, 1, &v4), 0);
	expect_eq(attach(&p->b, 0, &v4), 0);
	expect_eq(attach(&p->b, 1, &v4), 0);
	ah = side_ah_to(&p->a, &v4);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_ERR), 0);
	/* a's member has no receive, one of b's is in error. */
	recv_on(&p->b, 1, 4);
	side_fill(&p->a, 0, 6, 6);
	send_one(p, ah, 1, 6);
	expect_copy(p, &p->b, 1, 4, &v4, 6);
	expect_eq(detach(&p->a, 1, &v4), 0);
	expect_eq(detach(&p->b, 0, &v4), 0);
	expect_eq(detach(&p->b, 1, &v4), 0);
}

static void who_joins_later_is_found(struct pair *p)
{
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &v4);
	side_fill(&p->a, 0, 6, 6);
	send_one(p, ah, 1, 6);
	expect_eq(attach(&p->b, 0, &v4), 0);
	recv_on(&p->b, 0, 3);
	send_one(p, ah, 2, 6);
	expect_copy(p, &p->b, 0, 3, &v4, 6);
	expect_eq(detach(&p->b, 0, &v4), 0);
}

static void a_member_with_many_callers_at_the_moment_is_found(struct pair *p)
{
	int ah;

	start(p);
	expect_eq(attach(&p->b, 0, &v4), 0);
	atomic_store(&full, 8);
	ah = side_ah_to(&p->a, &v4);
	side_fill(&p->a, 0, 6, 6);
	recv_on(&p->b, 0, 3);
	send_one(p, ah, 1, 6);
	expect_copy(p, &p->b, 0, 3, &v4, 6);
	expect_eq(detach(&p->b, 0, &v4), 0);
	atomic_store(&full, 0);
}

static void members_come_and_go_with_their_processes(struct pair *p)
{
	int ah;

	start(p);
	expect_eq(attach(&p->a, 1, &v4), 0);
	expect_eq(attach(&p->b, 0, &v4), 0);
	ah = side_ah_to(&p->a, &v4);
	side_fill(&p->a, 0, 6, 6);
	side_kill(&p->b);
	recv_on(&p->a, 1, 3);
	send_one(p, ah, 1, 6);
	expect_copy(p, &p->a, 1, 3, &v4, 6);
	pair_respawn(p);
	side_open(&p->b, &ud);
	to_rts(p, &p->b, 0);
	expect_eq(attach(&p->b, 0, &v4), 0);
	recv_on(&p->a, 1, 3);
	recv_on(&p->b, 0, 4);
	send_one(p, ah, 1, 6);
	expect_copy(p, &p->a, 1, 3, &v4, 6);
	expect_copy(p, &p->b, 0, 4, &v4, 6);
	expect_eq(detach(&p->a, 1, &v4), 0);
	expect_eq(detach(&p->b, 0, &v4), 0);
}

static void a_sleeping_member_is_woken(struct pair *p)
{
	struct side_options opt = ud;
	int ah;

	opt.events = true;
	pair_open(p, &opt);
	to_rts(p, &p->a, 0);
	to_rts(p, &p->b, 0);
	expect_eq(attach(&p->b, 0, &v4), 0);
	ah = side_ah_to(&p->a, &v4);
	recv_on(&p->b, 0, 3);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	side_fill(&p->a, 0, 6, 6);
	send_one(p, ah, 1, 6);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	expect_copy(p, &p->b, 0, 3, &v4, 6);
	expect_eq(detach(&p->b, 0, &v4), 0);
}

static void what_is_no_group_or_no_datagram_is_refused(struct pair *p)
{
	const struct side_options rc = { .type = IBV_QPT_RC };
	struct ibv_device_attr d;
	union ibv_gid gid = v6;
	int i;

	start(p);
	expect_eq(side_qp_create(&p->a, &rc), 2);
	expect_eq(attach(&p->a, 2, &v4), EINVAL);
	expect_eq(detach(&p->a, 2, &v4), EINVAL);
	expect_eq(attach(&p->a, 0, &p->a.gid), EINVAL);
	expect_eq(detach(&p->a, 0, &v4), EINVAL);
	expect_eq(attach(&p->a, 0, &v4), 0);
	expect_eq(detach(&p->a, 1, &v4), EINVAL);
	expect_eq(detach(&p->a, 0, &v6), EINVAL);
	expect_eq(side_qp_destroy(&p->a, 0), EBUSY);
	expect_eq(detach(&p->a, 0, &v4), 0);
	expect_eq(ibv_query_device(p->a.end->ctx, &d), 0);
	expect(d.max_mcast_grp > 0 && d.max_mcast_qp_attach > 0);
	expect(d.max_total_mcast_qp_attach >= d.max_mcast_qp_attach);
	for (i = 0; i < d.max_mcast_grp; i++) {
		gid.raw[14] = (uint8_t)(i >> 8);
		gid.raw[15] = (uint8_t)i;
		expect_eq(attach(&p->a, 0, &gid), 0);
	}
	expect_eq(attach(&p->a, 0, &v4), ENOMEM);
	while (i-- > 0) {
		gid.raw[14] = (uint8_t)(i >> 8);
		gid.raw[15] = (uint8_t)i;
		expect_eq(detach(&p->a, 0, &gid), 0);
	}
	expect_eq(attach(&p->a, 0, &v4), 0);
	expect_eq(detach(&p->a, 0, &v4), 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		RULE("IBTA 10.5", each_attached_queue_pair_gets_one_copy),
		RULE("IBTA 10.5", immediate_data_come_along),
		RULE("IBTA 10.5", the_sender_receives_its_own_datagram_unless_that_is_blocked),
		RULE("ibv_attach_mcast(3)", attaching_twice_is_attaching_once),
		RULE("IBTA 10.5", only_what_is_for_the_group_arrives),
		RULE("IBTA 10.5",
		     members_that_cannot_receive_do_not_disturb_others),
		CASE(who_joins_later_is_found),
		CASE_IN(ONLY_TWO_PROCESSES, a_member_with_many_callers_at_the_moment_is_found),
		{ .name = "members_come_and_go_with_their_processes",
		  .fn = members_come_and_go_with_their_processes,
		  .where = ONLY_TWO_PROCESSES, .spares = 1 },
		RULE("ibv_get_cq_event(3)", a_sleeping_member_is_woken),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_attach_mcast(3)",
			what_is_no_group_or_no_datagram_is_refused),
	};

	groups_make_own();
	return RUN_CASES(argc, argv, cases);
}
