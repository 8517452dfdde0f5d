/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that have passed, by their PSN; see history.h. */
#include "transport/packet/event/history.h"

#include "engine/rc/rules.h"

/* An entry so many first transmissions ago is of an earlier round of the PSNs. */
#define ROUND (1u << 22)

static struct packet_history_entry *slot_of(struct packet_history *h, uint32_t psn)
{
	return &h->entry[psn % PACKET_HISTORY_PACKETS];
}

/* NULL: no packet with this PSN has passed, or too long ago. */
static struct packet_history_entry *find(struct packet_history *h, uint32_t psn)
{
	struct packet_history_entry *e = slot_of(h, psn);

	return e->stamp && e->psn == psn && h->count - e->stamp < ROUND ? e : NULL;
}

/* The READ of which the packet requests the rest; NULL: none. */
static struct packet_history_entry *find_read(struct packet_history *h, const struct rc_packet *p)
{
	unsigned known = h->reads < PACKET_HISTORY_READS ? h->reads : PACKET_HISTORY_READS;

	for (unsigned i = 0; i < known; i++) {
		const struct packet_history_read *r = &h->read[i];

		if (r->rkey == p->rkey && r->end == p->remote_addr + p->length &&
		    r->from < p->remote_addr && rc_psn_diff(p->psn, r->psn) > 0)
			return find(h, r->psn);
	}
	return NULL;
}

static void remember_read(struct packet_history *h, const struct rc_packet *p)
{
	h->read[h->reads++ % PACKET_HISTORY_READS] = (struct packet_history_read){
		.psn = p->psn, .rkey = p->rkey,
		.from = p->remote_addr, .end = p->remote_addr + p->length,
	};
}

struct packet_history_entry *packet_history_see(struct packet_history *h,
						const struct rc_packet *packet)
{
	struct packet_history_entry *e = find(h, packet->psn);

	if (!e && packet->op == RC_READ)
		e = find_read(h, packet);
	if (e) {
		e->times += e->times < UINT8_MAX;
		return e;
	}
	if (packet->op == RC_READ)
		remember_read(h, packet);
	h->count += h->count < UINT32_MAX ? 1 : 0;
	e = slot_of(h, packet->psn);
	*e = (struct packet_history_entry){ .psn = packet->psn, .stamp = h->count };
	return e;
}
