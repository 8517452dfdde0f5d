/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets as bytes, with a sum that finds every changed byte; see network.h. */
#include "network.h"

enum { TABLE = 65536 };

static uint8_t table[TABLE + LONGEST];

void network_frame_init(void)
{
	struct prng p = prng_from(20);

	for (size_t i = 0; i < sizeof(table); i++)
		table[i] = (uint8_t)prng_next(&p);
}

const uint8_t *network_bytes(uint64_t number)
{
	struct prng p = prng_from(number);

	return table + prng_below(&p, TABLE);
}

/* Each step is reversible in the sum and in the word: one changed byte changes it. */
static uint64_t sum_of(uint64_t sum, const void *bytes, size_t n)
{
	const char *at = bytes;
	uint64_t word;

	for (; n; at += sizeof(word)) {
		size_t part = n < sizeof(word) ? n : sizeof(word);

		word = 0;
		memcpy(&word, at, part);
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 29;
		n -= part;
	}
	return sum;
}

static uint64_t frame_sum(const struct frame *f, const uint8_t *payload)
{
	uint64_t sum = sum_of(1, (const char *)f + sizeof(f->sum),
			      sizeof(*f) - sizeof(f->sum));

	return sum_of(sum, payload, f->bytes);
}

void network_trace(const char *what, const struct qp *qp, const struct rc_packet *p,
		   uint32_t number)
{
	static const char *const names[] = {
		"SEND", "WRITE", "READ", "COMPARE_SWAP", "FETCH_ADD", "FLUSH", "ACK",
		"READ_RESPONSE", "ATOMIC_RESPONSE", "CNP",
	};

	if (world.trace)
		printf("%ju: qp %u %s %s psn %u flags %x syndrome %x bytes %u message %u\n",
		       (uintmax_t)network_now(), qp->index, what, names[p->op], p->psn,
		       p->flags, p->syndrome, p->bytes, number);
}

int network_emit(struct qp *qp, const struct rc_packet *packet, uint32_t number,
		 const uint8_t *payload)
{
	struct frame f;
	struct iovec iov[2] = { { &f, sizeof(f) },
				{ (void *)(uintptr_t)payload, packet->bytes } };
	struct carrier_unit unit = {
		.iov = iov, .count = packet->bytes ? 2 : 1,
		.to = carrier_addr_of((uint32_t)(qp->peer->adapter - world.adapters)),
		.known = CARRIER_TOS, .tos = 2, /* ECT(0) */
	};
	int n;

	memset(&f, 0, sizeof(f));
	f.to = qp->peer->index;
	f.number = number;
	f.bytes = packet->bytes;
	f.class = !qp->reliable ? CLASS_UNRELIABLE :
		  packet->op >= RC_ACK ? CLASS_ANSWER : CLASS_REQUEST;
	/* Member by member: bytes between them are nobody's. */
	f.packet.op = packet->op;
	f.packet.flags = packet->flags;
	f.packet.syndrome = packet->syndrome;
	f.packet.flush = packet->flush;
	f.packet.psn = packet->psn;
	f.packet.msn = packet->msn;
	f.packet.bytes = packet->bytes;
	f.packet.imm = packet->imm;
	f.packet.rkey = packet->rkey;
	f.packet.length = packet->length;
	f.packet.remote_addr = packet->remote_addr;
	f.packet.compare_add = packet->compare_add;
	f.packet.swap = packet->swap;
	f.sum = frame_sum(&f, payload);
	n = carrier_emit(qp->adapter->carrier, &unit, 1);
	network_check(n == 1 || n == -EAGAIN, "a carrier takes it or has no room", qp);
	world.packets += n == 1;
	world.cnps += n == 1 && packet->op == RC_CNP;
	qp->full = n != 1;
	if (n == 1)
		network_trace("sends", qp, packet, number);
	return n == 1 ? 0 : n;
}

const struct frame *network_frame(const struct carrier_unit *unit)
{
	const struct frame *f = unit->iov[0].iov_base;
	size_t bytes = carrier_unit_bytes(unit);

	network_check(unit->count == 1, "a held packet lies in one piece", NULL);
	if (bytes < sizeof(*f) || bytes - sizeof(*f) != f->bytes)
		return NULL;
	return frame_sum(f, (const uint8_t *)(f + 1)) == f->sum ? f : NULL;
}

unsigned network_classify(void *arg, const struct carrier_unit *packet)
{
	struct frame f;

	carrier_unit_gather(packet, 0, sizeof(f), &f);
	return f.class;
}
