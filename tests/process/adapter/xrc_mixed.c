/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that no adapter sends: those of one XRC message that name different SRQs
 * (InfiniBand specification volume 1, annex A14).
 *
 * This program has the adapter's insides linked into it, not the library: it hands the packets to
 * the port of transport loop.
 */
#include <string.h>

#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "transport/packet/packet.h"
#include "xrc_help.h"

enum { REST = 100, ROOM = 3 * PACKET_MTU };

/* One packet of a SEND to the target, in sequence, as if its initiator had sent it. */
static void arrive(uint32_t target, uint32_t srqn, unsigned flags)
{
	static const uint8_t payload[PACKET_MTU];
	const struct carrier_unit unit = { .known = 0 };
	struct hca_qp *qp = hca_qp_find(target);
	struct packet_qp *pq = packet_part(qp)->state;
	struct packet_port *port = pq->port;
	struct packet_frame f = {
		.rc = { .op = RC_SEND, .flags = (uint8_t)flags,
			.psn = pq->responder.expected_psn,
			.bytes = flags & RC_LAST ? REST : pq->responder.p.mtu },
		.service = PACKET_XRC,
		.dst_qpn = target,
		.src_qpn = qp->attr.dest_qp_num,
		.srqn = srqn,
	};

	hca_enter();
	hca_lock(&port->receive_lock);
	port->now_ns = packet_now_ns();
	packet_receive(port, &unit, &f, payload);
	hca_unlock(&port->receive_lock);
	hca_leave();
}

static void begin(struct pair *p, struct x *a, struct x *b)
{
	x_start(p, a, b);
	for (int srq = 0; srq < X_SRQS; srq++)
		x_recv(b, srq, (uint64_t)srq, 0, ROOM);
}

static void packets_that_name_one_srq_are_a_message(struct pair *p)
{
	struct x a, b;
	struct ibv_wc wc;

	begin(p, &a, &b);
	for (int srq = X_SRQS - 1; srq >= 0; srq--) {
		arrive(b.tgt, b.srqn[srq], RC_FIRST);
		arrive(b.tgt, b.srqn[srq], 0);
		arrive(b.tgt, b.srqn[srq], RC_LAST);
		wc = side_wait_ok(&p->b, RECV_CQ, (uint64_t)srq);
		expect(wc.byte_len > REST);
	}
	x_end(&a, &b);
}

/* `at`: the packet that names another SRQ, after the first. */
static void mix(struct pair *p, int at, bool there)
{
	struct x a, b;

	begin(p, &a, &b);
	arrive(b.tgt, b.srqn[0], RC_FIRST);
	for (int i = 1; i < at; i++)
		arrive(b.tgt, b.srqn[0], 0);
	/* One that is there, and one that is not. */
	arrive(b.tgt, there ? b.srqn[1] : b.srqn[1] + 100, at > 1 ? RC_LAST : 0);
	expect_eq(x_state(&b, X_TGT), IBV_QPS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_REQ_ERR);
	/* The other SRQ has its receive. */
	expect_eq(side_poll(&p->b, RECV_CQ, 2, QUIET_MS).count, 0);
	x_end(&a, &b);
}

static void a_middle_packet_of_another_srq_is_refused(struct pair *p)
{
	mix(p, 1, true);
}

static void a_last_packet_of_another_srq_is_refused(struct pair *p)
{
	mix(p, 2, true);
}

static void a_packet_of_an_srq_that_is_not_there_is_refused(struct pair *p)
{
	mix(p, 2, false);
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_ONE_PROCESS, packets_that_name_one_srq_are_a_message),
	CASE_IN(ONLY_ONE_PROCESS, a_middle_packet_of_another_srq_is_refused),
	CASE_IN(ONLY_ONE_PROCESS, a_last_packet_of_another_srq_is_refused),
	CASE_IN(ONLY_ONE_PROCESS, a_packet_of_an_srq_that_is_not_there_is_refused),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
