/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams: header, keys, silent loss, and the way back to a sender
 * (InfiniBand specification volume 1, 9.8.3 and annex A17 for the header of
 * RoCE v2; ibv_create_ah_from_wc(3)).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <signal.h>
#include <string.h>

#include "pair.h"

enum { GRH = 40, QKEY = 0x11111111, ROOM = 8192 };

static const struct side_options ud = { .type = IBV_QPT_UD, .bytes = 1 << 18,
					.inline_bytes = 256 };

static void start(struct pair *p)
{
	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &ud);
}

static struct send_req datagram(const struct side *s, const struct side *to,
				int ah, uint64_t wr_id, uint64_t offset,
				uint32_t length)
{
	struct send_req r = send_req(s, IBV_WR_SEND, wr_id, offset, length);

	r.ah = ah;
	r.remote_qpn = to->qpn[0];
	r.qkey = QKEY;
	return r;
}

/* One that must arrive, so that what was sent before had its time. */
static void marker(struct pair *p, int ah)
{
	struct send_req r = datagram(&p->a, &p->b, ah, 77, 0, 5);

	side_recv(&p->b, 78, ROOM * 4, ROOM);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 77);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 78).byte_len, GRH + 5);
}

static void every_size_arrives_behind_forty_bytes(struct pair *p)
{
	static const uint32_t sizes[] = { 0, 1, 55, 56, 57, 96, 97, 1024, 4055,
					  4056, 4095, 4096 };
	struct ibv_wc wc;
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int way = 0; way < 3; way++) {
			struct send_req r = datagram(&p->a, &p->b, ah, i, 0,
						     sizes[i]);
			uint8_t behind;

			if (way == 1) {
				r.num_sge = 2;
				r.sge[0].length = sizes[i] / 3;
				r.sge[1] = side_sge(&p->a, sizes[i] / 3,
						    sizes[i] - sizes[i] / 3);
			} else if (way == 2) {
				if (sizes[i] > 256)
					continue;
				r.flags |= IBV_SEND_INLINE;
			}
			side_fill(&p->a, 0, sizes[i], i);
			side_set(&p->b, 0, ROOM, 0xcc);
			side_recv(&p->b, i, 0, GRH + 4096);
			expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
			side_wait_ok(&p->a, SEND_CQ, i);
			wc = side_wait_ok(&p->b, RECV_CQ, i);
			expect_eq(wc.byte_len, GRH + sizes[i]);
			expect_eq(wc.opcode, IBV_WC_RECV);
			expect_eq(wc.wc_flags, IBV_WC_GRH);
			expect_eq(wc.src_qp, p->a.qpn[0]);
			expect_eq(wc.qp_num, p->b.qpn[0]);
			side_check(&p->b, GRH, sizes[i], i);
			side_peek(&p->b, GRH + sizes[i], &behind, 1);
			expect_eq(behind, 0xcc);
		}
	}
}

static void the_header_may_lie_in_a_buffer_of_its_own(struct pair *p)
{
	struct recv_req rr = { .wr_id = 1, .num_sge = 3 };
	struct send_req r;
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	rr.sge[0] = side_sge(&p->b, 0, GRH);
	rr.sge[1] = side_sge(&p->b, 1000, 10);
	rr.sge[2] = side_sge(&p->b, 2000, 3000);
	side_fill(&p->a, 0, 2000, 3);
	expect_eq(side_post_recv(&p->b, 0, &rr, 1).ret, 0);
	r = datagram(&p->a, &p->b, ah, 1, 0, 10);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 1).byte_len, GRH + 10);
	side_check(&p->b, 1000, 10, 3);
}

static void the_immediate_arrives(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	r = datagram(&p->a, &p->b, ah, 1, 0, 100);
	r.opcode = IBV_WR_SEND_WITH_IMM;
	r.imm = htonl(0xcafe);
	side_recv(&p->b, 2, 0, ROOM);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	wc = side_wait_ok(&p->b, RECV_CQ, 2);
	expect_eq(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	expect_eq(wc.imm_data, htonl(0xcafe));
	expect_eq(side_wait_ok(&p->a, SEND_CQ, 1).opcode, IBV_WC_SEND);
}

static void the_header_names_the_ipv4_addresses_of_both_ends(struct pair *p)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_ah_attr attr = { .is_global = 1, .dlid = 1, .port_num = 1 };
	uint8_t grh[GRH];
	struct iphdr ip;
	struct send_req r;

	start(p);
	if (memcmp(p->a.gid.raw, v4, 12) || memcmp(p->b.gid.raw, v4, 12))
		exit(77); /* a host without an IPv4 address */
	attr.grh.dgid = p->b.gid;
	attr.grh.hop_limit = 17;
	attr.grh.traffic_class = 0x20;
	r = datagram(&p->a, &p->b, side_ah_create(&p->a, &attr), 1, 0, 8);
	side_recv(&p->b, 2, 0, ROOM);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, RECV_CQ, 2);
	side_peek(&p->b, 0, grh, GRH);
	memcpy(&ip, grh + 20, sizeof(ip));
	expect_eq(ip.version, 4);
	expect_eq(ip.ihl, 5);
	expect_eq(ip.protocol, IPPROTO_UDP);
	expect_eq(ip.ttl, 17);
	expect_eq(ip.tos, 0x20);
	expect(!memcmp(&ip.saddr, p->a.gid.raw + 12, 4));
	expect(!memcmp(&ip.daddr, p->b.gid.raw + 12, 4));
}

/* One's complement sum over 16-bit words (RFC 1071). */
static unsigned ipv4_sum(const uint8_t *header)
{
	unsigned sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (unsigned)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void the_header_has_the_length_and_checksum_of_the_packet(struct pair *p)
{
	static const uint32_t sizes[] = { 0, 1, 4, 57, 1000, 4096 };
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t grh[GRH];
	struct iphdr ip;
	int ah;

	start(p);
	if (memcmp(p->b.gid.raw, v4, 12))
		exit(77); /* a host without an IPv4 address */
	ah = side_ah_to(&p->a, &p->b.gid);
	for (unsigned i = 0; i < 12; i++) {
		bool imm = i % 2;
		uint32_t size = sizes[i / 2];
		struct send_req r = datagram(&p->a, &p->b, ah, 1, 0, size);

		if (imm)
			r.opcode = IBV_WR_SEND_WITH_IMM;
		side_recv(&p->b, 2, 0, ROOM);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->b, RECV_CQ, 2);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_peek(&p->b, 0, grh, GRH);
		memcpy(&ip, grh + 20, sizeof(ip));
		/* IPv4, UDP, BTH, DETH, immediate, padded data, ICRC. */
		expect_eq(ntohs(ip.tot_len), 20 + 8 + 12 + 8 + (imm ? 4 : 0) +
						     (size + 3) / 4 * 4 + 4);
		expect_eq(ipv4_sum(grh + 20), 0xffff);
		expect_eq(ntohs(ip.frag_off), IP_DF);
		for (int k = 0; k < 20; k++)
			expect_eq(grh[k], 0);
	}
}

static void an_ipv6_header_has_the_length_of_what_follows(struct pair *p)
{
	const union ibv_gid loopback = { .raw = { [15] = 1 } };
	struct ibv_ah_attr attr = { .is_global = 1, .dlid = 1, .port_num = 1 };
	struct send_req r;
	struct ibv_grh grh;

	start(p);
	attr.grh.dgid = loopback;
	attr.grh.hop_limit = 3;
	attr.grh.flow_label = 0x54321;
	attr.grh.traffic_class = 0x8;
	r = datagram(&p->a, &p->b, side_ah_create(&p->a, &attr), 1, 0, 10);
	side_recv(&p->b, 2, 0, ROOM);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	if (side_poll(&p->b, RECV_CQ, 1, 500).count != 1)
		exit(77); /* a host without IPv6 */
	side_peek(&p->b, 0, &grh, GRH);
	expect_eq(ntohl(grh.version_tclass_flow),
		  6u << 28 | 0x8 << 20 | 0x54321);
	expect_eq(ntohs(grh.paylen), 8 + 12 + 8 + 12 + 4);
	expect_eq(grh.next_hdr, IPPROTO_UDP);
	expect_eq(grh.hop_limit, 3);
	expect(!memcmp(grh.dgid.raw, loopback.raw, 16));
}

/* All but the service level, see the_completion_tells_which_ip_the_datagram_had. */
static void fields_of_infiniband_are_zero_on_ethernet(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;

	start(p);
	r = datagram(&p->a, &p->b, side_ah_to(&p->a, &p->b.gid), 1, 0, 8);
	side_recv(&p->b, 2, 0, ROOM);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	wc = side_wait_ok(&p->b, RECV_CQ, 2);
	expect_eq(wc.slid, 0);
	expect_eq(wc.dlid_path_bits, 0);
	expect_eq(wc.pkey_index, 0);
	expect_eq(wc.vendor_err, 0);
}

static void checksums_of_ethernet_are_not_offered(struct pair *p)
{
	struct ibv_device_attr dev;
	struct send_req r[2];
	struct posted posted;
	int ah;

	start(p);
	expect_eq(ibv_query_device(p->a.end->ctx, &dev), 0);
	expect(!(dev.device_cap_flags & IBV_DEVICE_UD_IP_CSUM));
	ah = side_ah_to(&p->a, &p->b.gid);
	r[0] = r[1] = datagram(&p->a, &p->b, ah, 1, 0, 8);
	r[1].flags |= IBV_SEND_IP_CSUM;
	side_recv(&p->b, 2, 0, ROOM);
	posted = side_post_send(&p->a, 0, r, 2);
	expect_eq(posted.ret, EINVAL);
	expect_eq(posted.bad, 1);
	side_wait_ok(&p->b, RECV_CQ, 2);
	side_wait_ok(&p->a, SEND_CQ, 1);
}

static void an_address_handle_of_another_domain_is_an_error(struct pair *p)
{
	struct ibv_ah_attr attr = { .is_global = 1, .dlid = 1, .port_num = 1 };
	struct end *e = p->a.end;
	struct send_req r;

	start(p);
	attr.grh.dgid = p->b.gid;
	e->ah[0] = ibv_create_ah(e->other_pd, &attr);
	expect(e->ah[0]);
	r = datagram(&p->a, &p->b, 0, 1, 0, 8);
	side_recv(&p->b, 2, 0, ROOM);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_QP_OP_ERR);
	expect_eq(side_state(&p->a, 0), IBV_QPS_SQE);
	side_expect_none(&p->b, RECV_CQ);
}

static void the_completion_leads_back_to_the_sender(struct pair *p)
{
	struct ibv_wc wc;
	struct send_req r;
	int ah, back;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	for (int round = 0; round < 3; round++) {
		r = datagram(&p->a, &p->b, ah, 1, 0, 100);
		side_recv(&p->b, 2, 0, ROOM);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		wc = side_wait_ok(&p->b, RECV_CQ, 2);
		back = side_ah_from_wc(&p->b, &wc, 0);
		expect(back >= 0);
		r = datagram(&p->b, &p->a, back, 3, GRH, 100);
		r.remote_qpn = wc.src_qp;
		side_recv(&p->a, 4, 1000, ROOM);
		expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
		expect_eq(side_wait_ok(&p->a, RECV_CQ, 4).src_qp, p->b.qpn[0]);
		side_wait_ok(&p->b, SEND_CQ, 3);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_ah_destroy(&p->b, back);
	}
}

static int has_gid(struct end *e, void *arg)
{
	union ibv_gid gid;

	for (int i = 0; !ibv_query_gid(e->ctx, 1, i, &gid); i++)
		if (!memcmp(&gid, arg, sizeof(gid)))
			return 1;
	return 0;
}

struct answer {
	struct ibv_wc wc;
	int version; /* of IP */
	uint8_t hops;
};

/* What the completion and the header at 0 say of the way back. */
static int do_answer(struct end *e, void *arg)
{
	struct answer *a = arg;
	struct ibv_ah_attr attr;
	struct ibv_grh grh;

	memcpy(&grh, e->buffer, GRH);
	a->version = ntohl(grh.version_tclass_flow) >> 28 == 6 ? 6 : 4;
	memset(&attr, 0xff, sizeof(attr));
	if (ibv_init_ah_from_wc(e->ctx, 1, &a->wc, &grh, &attr) || !attr.is_global)
		return -1;
	a->hops = attr.grh.hop_limit;
	/* Neither IPv4 nor IPv6, and a protocol that is not UDP. */
	memset(&grh, 0, sizeof(grh));
	errno = 0;
	return ibv_init_ah_from_wc(e->ctx, 1, &a->wc, &grh, &attr) == -1 &&
			       errno == EPROTONOSUPPORT ? 0 : -2;
}

/* The answer may go as far as the datagram may still have gone. */
static void an_answer_has_the_hop_limit_of_the_header(struct pair *p)
{
	static const uint8_t hops[] = { 0, 1, 3, 64, 255 };
	union ibv_gid v6 = { .raw = { [15] = 1 } };
	struct ibv_ah_attr attr = { .is_global = 1, .dlid = 1, .port_num = 1 };
	struct answer a;
	struct send_req r;

	start(p);
	for (unsigned i = 0; i < 2 * sizeof(hops); i++) {
		attr.grh.dgid = i % 2 ? v6 : p->b.gid;
		attr.grh.hop_limit = hops[i / 2];
		if (i % 2 && !side_run(&p->b, has_gid, &v6, sizeof(v6)))
			continue;
		r = datagram(&p->a, &p->b, side_ah_create(&p->a, &attr), 1, 0, 10);
		side_recv(&p->b, 2, 0, ROOM);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
		a.wc = side_wait_ok(&p->b, RECV_CQ, 2);
		expect_eq(side_run(&p->b, do_answer, &a, sizeof(a)), 0);
		expect_eq(a.version, i % 2 ? 6 : 4);
		/* As Linux, where it is left open. */
		expect_eq(a.hops, hops[i / 2] ? hops[i / 2] : 64);
		side_ah_destroy(&p->a, r.ah);
	}
}

/* Where InfiniBand has the service level: 8 for UDP, and 1 or 2 for IPv6 or
 * IPv4. UCX drops datagrams when it does not fit the header. */
static void the_completion_tells_which_ip_the_datagram_had(struct pair *p)
{
	static const struct {
		union ibv_gid to;
		uint8_t sl;
	} cases[] = {
		{ { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } }, 8 | 2 },
		{ { { [15] = 1 } }, 8 | 1 },
	};
	int tried = 0;

	start(p);
	for (unsigned i = 0; i < 2; i++) {
		union ibv_gid to = cases[i].to;
		struct send_req r;

		if (!side_run(&p->b, has_gid, &to, sizeof(to)))
			continue;
		tried++;
		r = datagram(&p->a, &p->b, side_ah_to(&p->a, &to), 1, 0, 100);
		side_recv(&p->b, 2, 0, ROOM);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, 2).sl, cases[i].sl);
		side_wait_ok(&p->a, SEND_CQ, 1);
	}
	expect(tried);
}

static void a_wrong_qkey_is_dropped_and_the_sender_learns_nothing(struct pair *p)
{
	struct send_req r;
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	side_recv(&p->b, 1, 0, ROOM);
	r = datagram(&p->a, &p->b, ah, 2, 0, 10);
	r.qkey = QKEY + 1;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_expect_none(&p->b, RECV_CQ);
	/* The receive is still there. */
	r.qkey = QKEY;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, RECV_CQ, 1);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
}

static void a_qkey_with_the_top_bit_means_that_of_the_queue_pair(struct pair *p)
{
	struct send_req r;

	start(p);
	r = datagram(&p->a, &p->b, side_ah_to(&p->a, &p->b.gid), 2, 0, 10);
	r.qkey = 0x80000000;
	side_recv(&p->b, 1, 0, ROOM);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

static void without_a_posted_receive_it_is_dropped(struct pair *p)
{
	struct send_req r;
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	marker(p, ah);
	r = datagram(&p->a, &p->b, ah, 2, 0, 10);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_expect_none(&p->b, RECV_CQ);
	side_recv(&p->b, 1, 0, ROOM);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

/* Anybody who has the Q_Key can send it: it must not stop the receiver. */
static void one_that_is_longer_than_the_receive_is_dropped(struct pair *p)
{
	static const uint32_t lengths[] = { 21, 60, 4096 };
	struct send_req r;
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	side_recv(&p->b, 1, 0, GRH + 20);
	for (uint64_t i = 0; i < 3; i++) {
		r = datagram(&p->a, &p->b, ah, i, 0, lengths[i]);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_expect_none(&p->b, RECV_CQ);
		expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	}
	/* The receive is still there. */
	side_fill(&p->a, 0, 20, 4);
	r = datagram(&p->a, &p->b, ah, 7, 0, 20);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 1).byte_len, GRH + 20);
	side_check(&p->b, GRH, 20, 4);
	expect_eq(side_async(&p->b, 0), -1);
}

static void nor_does_it_take_a_receive_of_a_shared_queue(struct pair *p)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr qa = { .qp_type = IBV_QPT_UD };
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct end *e;
	struct send_req r;
	int ah;

	start(p);
	e = p->b.end;
	qa.send_cq = e->cq[SEND_CQ];
	qa.recv_cq = e->cq[RECV_CQ];
	qa.srq = ibv_create_srq(e->pd, &sa);
	expect(qa.srq);
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	e->qp[0] = ibv_create_qp(e->pd, &qa);
	expect(e->qp[0]);
	p->b.qpn[0] = e->qp[0]->qp_num;
	expect_eq(side_to_init(&p->b, 0, QKEY), 0);
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid, 0, 0), 0);
	sge = side_sge(&p->b, 0, GRH + 20);
	expect_eq(ibv_post_srq_recv(qa.srq, &wr, &bad), 0);
	ah = side_ah_to(&p->a, &p->b.gid);
	r = datagram(&p->a, &p->b, ah, 1, 0, 21);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTR);
	r = datagram(&p->a, &p->b, ah, 2, 0, 20);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, RECV_CQ, 5);
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	expect_eq(ibv_destroy_srq(qa.srq), 0);
}

/* The upper byte of the word means nothing. */
static void of_the_queue_pair_number_24_bits_count(struct pair *p)
{
	struct side_options opt = ud;
	struct send_req r;
	int ah;

	opt.extended = true;
	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &opt);
	ah = side_ah_to(&p->a, &p->b.gid);
	for (uint32_t i = 0; i < 3; i++) {
		r = datagram(&p->a, &p->b, ah, i, 0, 10);
		r.remote_qpn |= i == 0 ? 0xff000000 : i == 1 ? 0x1000000 :
							       0x80000000;
		side_recv(&p->b, i, 0, ROOM);
		expect_eq((i ? side_build_send(&p->a, 0, &r, 1) :
			       side_post_send(&p->a, 0, &r, 1)).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
}

static void to_nobody_it_succeeds(struct pair *p)
{
	static const uint32_t nobody[] = { 0, 1, 2, 0x5555, 0x400123, 0xfffffe };
	struct send_req r;
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	for (unsigned i = 0; i < 6; i++) {
		if (nobody[i] >> 10 == p->b.qpn[0] >> 10 ||
		    nobody[i] >> 10 == p->a.qpn[0] >> 10)
			continue;
		r = datagram(&p->a, &p->b, ah, i, 0, 10);
		r.remote_qpn = nobody[i];
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	/* A number of the peer that is free, and a reliable one. */
	r.remote_qpn = p->b.qpn[0] ^ 0x3ff;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, r.wr_id);
	expect_eq(side_qp_create(&p->b, NULL), 1);
	r.remote_qpn = p->b.qpn[1];
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, r.wr_id);
	expect_eq(side_async(&p->b, 0), -1);
	marker(p, ah);
}

static void to_a_host_that_is_not_there_it_succeeds(struct pair *p)
{
	/* 192.0.2.1 is reserved for documentation; no host has it. */
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, 192, 0, 2, 1 } };
	struct send_req r;

	start(p);
	r = datagram(&p->a, &p->b, side_ah_to(&p->a, &gid), 1, 0, 10);
	side_recv(&p->b, 5, 0, ROOM);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_expect_none(&p->b, RECV_CQ);
}

static void to_a_queue_pair_that_does_not_receive_yet_it_is_dropped(struct pair *p)
{
	struct send_req r;
	int ah;

	p->conn.access_a = QKEY;
	pair_open(p, &ud);
	expect_eq(side_to_init(&p->a, 0, QKEY), 0);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, 0, 0), 0);
	expect_eq(side_to_rts(&p->a, 0, &p->conn, 0), 0);
	expect_eq(side_to_init(&p->b, 0, QKEY), 0);
	side_recv(&p->b, 1, 0, ROOM);
	ah = side_ah_to(&p->a, &p->b.gid);
	r = datagram(&p->a, &p->b, ah, 2, 0, 10);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid, 0, 0), 0);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

static void more_than_a_packet_is_an_error_and_stops_only_the_send_queue(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	side_recv(&p->b, 1, 0, 3 * ROOM);
	r = datagram(&p->a, &p->b, ah, 2, 0, 4097);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	wc = side_wait(&p->a, SEND_CQ);
	expect_status(wc, IBV_WC_LOC_LEN_ERR);
	expect_eq(side_state(&p->a, 0), IBV_QPS_SQE);
	side_expect_none(&p->b, RECV_CQ);
	/* SQE: sends are flushed, receives go on, RTS again when asked. */
	r = datagram(&p->a, &p->b, ah, 3, 0, 10);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_WR_FLUSH_ERR);
	side_recv(&p->a, 4, 0, ROOM);
	r = datagram(&p->b, &p->a, side_ah_to(&p->b, &p->a.gid), 5, 0, 10);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, RECV_CQ, 4);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RTS), 0);
	r = datagram(&p->a, &p->b, ah, 6, 0, 10);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 6);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

/* Nobody wakes it for the others while it polls. */
static void who_polls_and_then_sleeps_is_woken_by_a_solicited_one(struct pair *p)
{
	struct side_options opt = ud;
	struct send_req r;
	int ah;

	opt.events = true;
	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &opt);
	ah = side_ah_to(&p->a, &p->b.gid);
	marker(p, ah);
	for (uint64_t i = 0; i < 6; i += 2) {
		side_recv(&p->b, i, 0, ROOM);
		side_recv(&p->b, i + 1, ROOM, ROOM);
		expect_eq(side_arm(&p->b, RECV_CQ, true), 0);
		side_expect_none(&p->b, RECV_CQ); /* some thousand polls */
		r = datagram(&p->a, &p->b, ah, i, 0, 10);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		r.wr_id = i + 1;
		r.flags |= IBV_SEND_SOLICITED;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i + 1);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i + 1);
	}
}

static void rdma_is_refused(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM
	};
	struct send_req r;
	int ah;

	start(p);
	ah = side_ah_to(&p->a, &p->b.gid);
	for (int i = 0; i < 3; i++) {
		struct posted posted;

		r = datagram(&p->a, &p->b, ah, 1, 0, 10);
		r.opcode = ops[i];
		posted = side_post_send(&p->a, 0, &r, 1);
		expect(posted.ret == EINVAL || posted.ret == EOPNOTSUPP);
		expect_eq(posted.bad, 0);
	}
}

static void builder_calls_send_datagrams(struct pair *p)
{
	struct side_options opt = ud;
	struct send_req r[2];
	int ah;

	opt.extended = true;
	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &opt);
	ah = side_ah_to(&p->a, &p->b.gid);
	r[0] = datagram(&p->a, &p->b, ah, 1, 0, 100);
	r[1] = datagram(&p->a, &p->b, ah, 2, 0, 50);
	r[1].opcode = IBV_WR_SEND_WITH_IMM;
	r[1].imm = htonl(9);
	r[1].flags |= IBV_SEND_INLINE;
	side_recv(&p->b, 3, 0, ROOM);
	side_recv(&p->b, 4, 0, ROOM);
	expect_eq(side_build_send(&p->a, 0, r, 2).ret, 0);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 3).byte_len, GRH + 100);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 4).imm_data, htonl(9));
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 2);
}

static void a_handle_without_a_local_address_is_refused(struct pair *p)
{
	struct ibv_ah_attr attr = { .is_global = 1, .dlid = 1, .port_num = 1 };

	start(p);
	attr.grh.dgid = p->b.gid;
	attr.grh.sgid_index = 250;
	expect_eq(side_ah_create(&p->a, &attr), -1);
	attr.grh.sgid_index = 0;
	attr.port_num = 2;
	expect_eq(side_ah_create(&p->a, &attr), -1);
}

/* Ethernet ports want a global address; what has our own LID is for programs that
 * know no other addresses. */
static void a_handle_without_a_global_address_is_for_this_host(struct pair *p)
{
	struct ibv_ah_attr attr = { .port_num = 1 };
	struct ibv_port_attr port;
	struct send_req r;
	int ah;

	start(p);
	expect_eq(ibv_query_port(p->a.end->ctx, 1, &port), 0);
	expect(port.flags & IBV_QPF_GRH_REQUIRED);
	expect_eq(side_ah_create(&p->a, &attr), -1);
	attr.dlid = (uint16_t)(port.lid + 1);
	expect_eq(side_ah_create(&p->a, &attr), -1);
	attr.dlid = port.lid;
	ah = side_ah_create(&p->a, &attr);
	expect(ah >= 0);
	side_recv(&p->b, 2, 0, ROOM);
	r = datagram(&p->a, &p->b, ah, 1, 0, 10);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 2).byte_len, GRH + 10);
}

static void a_flood_loses_at_most_datagrams(struct pair *p)
{
	/* Far more than fit, while the receiver does nothing. */
	struct side_options opt = ud;
	struct send_req r[8];
	struct polled polled;
	int ah, got = 0;

	opt.send_wr = 4096;
	opt.recv_wr = 4096;
	opt.cqe = 8192;
	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &opt);
	ah = side_ah_to(&p->a, &p->b.gid);
	side_fill(&p->a, 0, 4096, 5);
	for (int i = 0; i < 30; i++)
		side_recv(&p->b, 0, (uint64_t)i * ROOM, ROOM);
	for (int i = 0; i < 8; i++)
		r[i] = datagram(&p->a, &p->b, ah, 1, 0, 4096);
	for (int i = 0; i < 500; i++)
		expect_eq(side_post_send(&p->a, 0, r, 8).ret, 0);
	for (int done = 0; done < 4000; done += polled.count) {
		polled = side_poll(&p->a, SEND_CQ, 50, WAIT_MS);
		expect(polled.count > 0);
		for (int i = 0; i < polled.count; i++)
			expect_status(polled.wc[i], IBV_WC_SUCCESS);
	}
	polled = side_poll(&p->b, RECV_CQ, 30, QUIET_MS);
	for (got = 0; got < polled.count; got++) {
		expect_status(polled.wc[got], IBV_WC_SUCCESS);
		side_check(&p->b, (uint64_t)got * ROOM + GRH, 4096, 5);
	}
	expect(got > 0);
}

static void a_flood_to_a_peer_that_dies_completes(struct pair *p)
{
	struct side_options opt = ud;
	struct send_req r[8];
	struct polled polled;
	int ah;

	opt.send_wr = 4096;
	opt.cqe = 8192;
	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &opt);
	ah = side_ah_to(&p->a, &p->b.gid);
	marker(p, ah);
	side_stop(&p->b);
	for (int i = 0; i < 8; i++)
		r[i] = datagram(&p->a, &p->b, ah, 1, 0, 4096);
	for (int i = 0; i < 250; i++)
		expect_eq(side_post_send(&p->a, 0, r, 8).ret, 0);
	polled = side_poll(&p->a, SEND_CQ, 64, WAIT_MS);
	expect(polled.count > 0);
	side_kill(&p->b);
	for (int done = polled.count; done < 2000; done += polled.count) {
		int left = 2000 - done;

		polled = side_poll(&p->a, SEND_CQ, left < 50 ? left : 50, WAIT_MS);
		if (polled.count <= 0)
			fail("%d of 2000 datagrams never completed", left);
		for (int i = 0; i < polled.count; i++)
			expect_status(polled.wc[i], IBV_WC_SUCCESS);
	}
}

static const struct test_case cases[] = {
	RULE("IBTA 11.4.1.2", every_size_arrives_behind_forty_bytes),
	RULE("IBTA 11.4.1.2", the_header_may_lie_in_a_buffer_of_its_own),
	RULE("ibv_poll_cq(3)", the_immediate_arrives),
	RULE("IBTA A17.4.5.2",
	     the_header_names_the_ipv4_addresses_of_both_ends),
	RULE("IBTA A17.4.5.2",
	     the_header_has_the_length_and_checksum_of_the_packet),
	RULE("IBTA 8.3", an_ipv6_header_has_the_length_of_what_follows),
	RULE("ibv_poll_cq(3)", fields_of_infiniband_are_zero_on_ethernet),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_post_send(3)",
		checksums_of_ethernet_are_not_offered),
	RULE_IN(ONLY_ONE_PROCESS, "IBTA 10.2.3",
		an_address_handle_of_another_domain_is_an_error),
	CASE(an_answer_has_the_hop_limit_of_the_header),
	RULE("ibv_create_ah_from_wc(3)",
	     the_completion_leads_back_to_the_sender),
	RULE("IBTA A17.4.5.1", the_completion_tells_which_ip_the_datagram_had),
	RULE("IBTA 9.8.3",
	     a_wrong_qkey_is_dropped_and_the_sender_learns_nothing),
	RULE("IBTA 11.4.1.1",
	     a_qkey_with_the_top_bit_means_that_of_the_queue_pair),
	RULE("IBTA 9.8.3", without_a_posted_receive_it_is_dropped),
	RULE("IBTA 9.9.3", one_that_is_longer_than_the_receive_is_dropped),
	CASE_IN(ONLY_ONE_PROCESS, nor_does_it_take_a_receive_of_a_shared_queue),
	RULE("IBTA 9.2.3", of_the_queue_pair_number_24_bits_count),
	RULE("IBTA 9.8.3", to_nobody_it_succeeds),
	RULE("IBTA 9.8.3", to_a_host_that_is_not_there_it_succeeds),
	RULE("IBTA 10.3.1.2",
	     to_a_queue_pair_that_does_not_receive_yet_it_is_dropped),
	RULE("IBTA 10.3.1.6",
	     more_than_a_packet_is_an_error_and_stops_only_the_send_queue),
	RULE("ibv_req_notify_cq(3)",
	     who_polls_and_then_sleeps_is_woken_by_a_solicited_one),
	RULE("ibv_post_send(3)", rdma_is_refused),
	RULE("ibv_wr_post(3)", builder_calls_send_datagrams),
	RULE("ibv_create_ah(3)", a_handle_without_a_local_address_is_refused),
	CASE(a_handle_without_a_global_address_is_for_this_host),
	RULE("IBTA 9.8.3", a_flood_loses_at_most_datagrams),
	CASE_IN(ONLY_TWO_PROCESSES, a_flood_to_a_peer_that_dies_completes),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
