/* SPDX-License-Identifier: BSD-2-Clause */
/* What the peer of the fuzzed link does: messages that keep to the rules, some
 * spoilt, marks, and its tables. See shm_link.c. */
#include <arpa/inet.h>
#include <string.h>

#include "hca/limits.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/share/process.h"
#include "shm_link.h"
#include "transport/shm/ring/ring.h"

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

/* A WRITE or READ that we are to carry out, whole or in parts. */
static void request(struct shm_slot *s, const struct hca_qp *qp)
{
	static const uint8_t ops[] = { SHM_WRITE, SHM_WRITE_DATA_IMM, SHM_READ };
	struct shm_request q = { .rkey = f.window->rkey };

	s->op = ops[byte() % 3];
	s->length %= WINDOW_BYTES + 1;
	q.remote_addr = (uintptr_t)f.arena + WINDOW +
			word() % (WINDOW_BYTES - s->length + 1);
	q.part.at = qp->rx_offset < s->length ? qp->rx_offset : 0;
	q.part.length = s->length - q.part.at;
	if (s->length > SHM_REQUEST_PAYLOAD) {
		s->flags |= SHM_IN_DATA;
		q.part.offset = word() % (SHM_DATA_BYTES - WINDOW_BYTES);
		if (q.part.length > 1 && byte() & 1) {
			q.part.length = 1 + word() % (q.part.length - 1);
			s->flags |= SHM_MORE;
		}
	}
	if (byte() > 230)
		q.remote_addr += length();
	if (byte() > 240)
		q.rkey = byte() & 1 ? f.mr->rkey : word();
	put(s, &q, sizeof(q));
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
	if (qp->ibv.qp_type == IBV_QPT_UC)
		s->flags |= SHM_UNRELIABLE;
	else if (byte() > 250)
		s->op = SHM_SEND_INV;
	if (ud)
		s->length = HCA_GRH_BYTES + s->length % (HCA_UD_MTU + 1);
	else if (byte() % 4 == 0)
		s->op = SHM_COMPARE_SWAP + byte() % 2;
	if (!ud && byte() % 4 == 0)
		request(s, qp);
	else if (s->op == SHM_COMPARE_SWAP || s->op == SHM_FETCH_ADD)
		atomic_request(s);
	else if (s->op != SHM_WRITE_IMM && !ud && byte() % 4 == 0)
		pull(s);
	else if (s->op != SHM_WRITE_IMM && (byte() & 1 || s->length > 1000))
		part_in_data(s, qp);
	else if (s->op != SHM_WRITE_IMM)
		s->length %= SHM_SLOT_PAYLOAD + 1;
}

/* The same to the XRC shared queue; one initiator mostly, its messages in
 * sequence or not. */
static void readdress_xrc(struct shm_slot *s)
{
	static uint32_t psn;
	uint32_t from = byte() < 240 ? peer_qpn(0) : word() & HCA_PSN_MASK;
	uint32_t target = byte() < 240 ? peer_qpn(1) : word() & HCA_PSN_MASK;

	psn += byte() < 200;
	s->flags |= SHM_XRC | (byte() & 1 ? SHM_XRC_FIRST : 0);
	s->dst_qpn = f.xrc_number | target << 24;
	s->src_qpn = from | target >> 8 << 24;
	s->psn = (psn & HCA_PSN_MASK) | target >> 16 << 24;
}

/* The same to the members of a group. */
static void readdress_group(struct shm_slot *s)
{
	struct ibv_grh grh = {
		.version_tclass_flow = htonl(6u << 28), .dgid = group };

	s->dst_qpn = HCA_QPN_MULTICAST;
	if (s->flags & SHM_IN_DATA) {
		struct shm_extent x;

		memcpy(&x, s->payload, sizeof(x));
		memcpy(f.area->dir[0].data + x.offset, &grh, sizeof(grh));
	} else {
		memcpy(s->payload, &grh, sizeof(grh));
	}
}

/* And one field of it that does not. */
static void spoil_slot(struct shm_slot *s)
{
	switch (byte() % 12) {
	case 0: s->op = 1 + byte() % SHM_READ; break;
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

void peer_slot(void)
{
	struct shm_slot *s = &f.area->dir[0].slots[f.pos % SHM_SLOTS];
	int i = byte() % QPS;

	fill_slot(s, hca_qp(f.qp[i]), i);
	if (i == UD && byte() & 1)
		readdress_group(s);
	else if (i == 0 && byte() & 1)
		readdress_xrc(s);
	for (unsigned n = byte() % 8; n > 5; n--)
		spoil_slot(s);
	if (byte() < 250)
		atomic_store(&s->tag, f.pos++ / SHM_SLOTS + 1);
	else /* not yet, or for ever */
		atomic_store(&s->tag, word());
	if (byte() & 1) /* else the next comes on top of this one */
		poll_all();
}

void peer_marks(void)
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

void peer_tables(void)
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
