/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of the rings as packets; see watch.h. */
#include <stdlib.h>
#include <sys/uio.h>

#include "hca/share/process.h"
#include "transport/packet/frame/show.h"
#include "transport/shm/link/shown.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/watch/faults.h"
#include "transport/shm/watch/watch.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

bool shm_watches;
struct hca_transport_ops shm_watched_ops;

#define BUCKETS 1024u
#define FLOWS_MAX 16384u /* peers choose the numbers of XRC initiators */

/* ---- sequence numbers ---- */

/* Requests of one direction between two queue pairs. */
struct flow {
	struct list entry;
	uint8_t direction;     /* enum carrier_direction */
	uint32_t own, other;   /* QP numbers; `other` is 0 for datagrams that leave */
	uint32_t next_message, next_psn;
	uint32_t msn;
	/* The first PSN of each message that is in the ring, as it can come again. */
	struct {
		uint32_t message, psn;
	} begun[SHM_SLOTS];
};

static struct {
	struct spin lock; /* no other lock is taken under it */
	struct list flows[BUCKETS];
	unsigned count;
} watch;

/* The lock is held, here and below. NULL: there is no memory, or there are too many. */
static struct flow *flow_get(enum carrier_direction direction, uint32_t own,
			     uint32_t other, uint32_t first_psn)
{
	struct list *bucket = &watch.flows[own % BUCKETS];
	struct flow *f;

	list_for_each(found, bucket, struct flow, entry)
		if (found->own == own && found->other == other && found->direction == direction)
			return found;
	if (watch.count >= FLOWS_MAX)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	watch.count++;
	f->direction = (uint8_t)direction;
	f->own = own;
	f->other = other;
	f->next_message = f->next_psn = first_psn;
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		f->begun[i].message = UINT32_MAX;
	list_push(bucket, &f->entry);
	return f;
}

/* The PSN of the message's first packet. *again: the message was shown before. */
static uint32_t flow_psn(struct flow *f, uint32_t message, uint32_t packets, bool *again)
{
	uint32_t place = message % SHM_SLOTS, psn;

	*again = f->begun[place].message == message && message != f->next_message;
	if (*again)
		return f->begun[place].psn;
	/* A message that is not the next one comes only after a reset. */
	psn = (f->next_psn + message - f->next_message) & HCA_PSN_MASK;
	f->begun[place].message = message;
	f->begun[place].psn = psn;
	f->next_message = (message + 1) & HCA_PSN_MASK;
	f->next_psn = (psn + packets) & HCA_PSN_MASK;
	return psn;
}

static void flows_forget(uint32_t own)
{
	struct list *bucket = &watch.flows[own % BUCKETS];
	struct list kept, *entry;

	list_init(&kept);
	while ((entry = list_pop(bucket))) {
		struct flow *f = list_entry(entry, struct flow, entry);

		if (f->own != own) {
			list_push(&kept, entry);
			continue;
		}
		watch.count--;
		free(f);
	}
	list_splice(bucket, &kept);
}

static uint32_t packets_of(uint32_t length, uint32_t mtu)
{
	return length ? (length - 1) / mtu + 1 : 1;
}

/* ---- slots ---- */

static bool is_datagram(const struct shm_header *h)
{
	return h->op == SHM_DATAGRAM || h->op == SHM_DATAGRAM_IMM;
}

static enum packet_service service_of(const struct shm_header *h)
{
	if (is_datagram(h))
		return PACKET_UD;
	if (h->flags & SHM_UNRELIABLE)
		return PACKET_UC;
	return h->flags & SHM_XRC ? PACKET_XRC : PACKET_RC;
}

/* Fills in the queue pairs; returns the number of the message. */
static uint32_t read_addresses(const struct shm_header *h, struct packet_frame *f)
{
	struct shm_xrc_header x;

	f->service = (uint8_t)service_of(h);
	f->src_qpn = h->src_qpn;
	f->dst_qpn = h->dst_qpn;
	if (f->service != PACKET_XRC)
		return h->psn;
	x = shm_xrc_header(h->dst_qpn, h->src_qpn, h->psn);
	f->src_qpn = x.src_qpn;
	f->dst_qpn = x.target_qpn;
	f->srqn = x.srqn;
	return x.psn;
}

static const struct {
	uint8_t op, flags;
	bool request; /* struct shm_request is in the slot */
} kinds[] = {
	[SHM_SEND] = { RC_SEND, 0, false },
	[SHM_SEND_IMM] = { RC_SEND, RC_IMM, false },
	[SHM_SEND_INV] = { RC_SEND, RC_INVALIDATE, false },
	[SHM_WRITE_IMM] = { RC_WRITE, RC_IMM, false },
	[SHM_DATAGRAM] = { RC_SEND, 0, false },
	[SHM_DATAGRAM_IMM] = { RC_SEND, RC_IMM, false },
	[SHM_COMPARE_SWAP] = { RC_COMPARE_SWAP, 0, false },
	[SHM_FETCH_ADD] = { RC_FETCH_ADD, 0, false },
	[SHM_ATOMIC_WRITE] = { RC_WRITE, RC_WORD, false },
	[SHM_WRITE] = { RC_WRITE, 0, true },
	[SHM_WRITE_DATA_IMM] = { RC_WRITE, RC_IMM, true },
	[SHM_READ] = { RC_READ, 0, true },
};

static bool is_atomic(const struct shm_header *h)
{
	return h->op == SHM_COMPARE_SWAP || h->op == SHM_FETCH_ADD || h->op == SHM_ATOMIC_WRITE;
}

static void read_atomic(const struct shm_slot *slot, struct shm_part_shown *p)
{
	struct rc_packet *rc = &p->frame.rc;
	struct shm_atomic a;

	shm_copy_once(&a, slot->payload, sizeof(a));
	rc->remote_addr = a.remote_addr;
	rc->rkey = a.rkey;
	rc->compare_add = a.compare_add;
	rc->swap = a.swap;
	p->length = 0;
	if (rc->flags & RC_WORD) {
		p->length = p->bytes = rc->length = sizeof(a.swap);
		p->data = slot->payload + offsetof(struct shm_atomic, swap);
	}
}

/* Where the data of the part are. False: not within the ring. */
static bool read_extent(const struct shm_header *h, const struct shm_slot *slot,
			const uint8_t *area, bool request, struct shm_part_shown *p)
{
	struct shm_extent x = { .length = h->length };
	uint32_t room = SHM_SLOT_PAYLOAD;
	struct shm_request q;

	p->data = slot->payload;
	if (request) {
		shm_copy_once(&q, slot->payload, sizeof(q));
		x = q.part;
		p->frame.rc.rkey = q.rkey;
		p->frame.rc.remote_addr = q.remote_addr;
		p->frame.rc.length = h->length;
		p->data += sizeof(q);
		room = SHM_REQUEST_PAYLOAD;
	} else if (h->flags & SHM_IN_DATA) {
		shm_copy_once(&x, slot->payload, sizeof(x));
	}
	if (h->flags & SHM_IN_DATA) {
		if (x.offset > SHM_DATA_BYTES)
			return false;
		p->data = area + x.offset;
		room = SHM_DATA_BYTES - x.offset;
	}
	p->at = x.at;
	p->bytes = x.length;
	return x.length <= room && x.at <= h->length && x.length <= h->length - x.at;
}

/* The header of a datagram precedes its data. */
static bool read_datagram(const struct shm_header *h, struct shm_part_shown *p)
{
	struct packet_frame *f = &p->frame;

	if (p->bytes < HCA_GRH_BYTES || p->bytes > HCA_GRH_BYTES + PACKET_MTU)
		return false;
	f->qkey = h->psn;
	f->ipv4 = h->flags & SHM_IPV4;
	shm_copy_once(f->grh, p->data, sizeof(f->grh));
	p->data += HCA_GRH_BYTES;
	p->bytes -= HCA_GRH_BYTES;
	p->length = p->bytes;
	p->mtu = PACKET_MTU;
	return true;
}

/* Fills *p, but for the PSN; *message is the number of the message. False: it is not
 * shown. */
static bool read_part(const struct shm_header *h, const struct shm_slot *slot,
		      const uint8_t *area, struct shm_part_shown *p, uint32_t *message)
{
	*p = (struct shm_part_shown){ .length = h->length, .more = h->flags & SHM_MORE };
	if (h->op >= ARRAY_SIZE(kinds) || !h->op || h->op == SHM_ACCESS_FAULT ||
	    h->flags & SHM_PULL || h->dst_qpn == UINT32_MAX)
		return false;
	*message = read_addresses(h, &p->frame);
	p->frame.rc.op = kinds[h->op].op;
	p->frame.rc.flags = kinds[h->op].flags;
	p->frame.rc.imm = h->imm;
	if (h->flags & SHM_SOLICITED)
		p->frame.rc.flags |= RC_SOLICITED;
	p->answered = p->frame.service == PACKET_RC || p->frame.service == PACKET_XRC;
	if (is_atomic(h)) {
		read_atomic(slot, p);
		return true;
	}
	if (h->op == SHM_WRITE_IMM) { /* its data were not in the ring */
		p->length = 0;
		return true;
	}
	return read_extent(h, slot, area, kinds[h->op].request, p) &&
	       (!is_datagram(h) || read_datagram(h, p));
}

/* ---- packets ---- */

static void show_one(enum carrier_direction direction, const struct packet_frame *f,
		     const uint8_t *data, const char *comment)
{
	const struct iovec payload = { (void *)(uintptr_t)data, f->rc.bytes };

	packet_show(&shm_watched_ops, direction, f, &payload, data && f->rc.bytes, comment);
}

/* Shows the packets of one part. `last_flags`: flags that only the message's last packet has.
 * */
static void show_segments(enum carrier_direction direction, struct packet_frame *f,
			  const struct shm_part_shown *p, uint8_t last_flags,
			  const char *comment)
{
	uint8_t common = f->rc.flags & (uint8_t)~last_flags;
	uint32_t at = p->at, end = p->at + p->bytes;

	do {
		f->rc.bytes = MIN(p->mtu - at % p->mtu, end - at);
		f->rc.psn = (p->psn + at / p->mtu) & HCA_PSN_MASK;
		f->rc.flags = common | (at ? 0 : RC_FIRST);
		if (at + f->rc.bytes == p->length)
			f->rc.flags |= RC_LAST | last_flags;
		show_one(direction, f, p->data ? p->data + (at - p->at) : NULL, comment);
		at += f->rc.bytes;
	} while (at < end);
}

static bool has_answer_data(uint8_t op)
{
	return op == RC_READ || op == RC_COMPARE_SWAP || op == RC_FETCH_ADD;
}

static void show_request(enum carrier_direction direction, const struct shm_part_shown *p,
			 bool again)
{
	const char *comment = !again		      ? NULL :
			      direction == CARRIER_IN ? "came again" :
							"sent again";
	struct packet_frame f = p->frame;
	uint8_t last = f.rc.flags & (RC_IMM | RC_INVALIDATE | RC_SOLICITED);

	if (p->answered)
		last |= RC_ACK_REQ;
	if (!has_answer_data(f.rc.op)) {
		show_segments(direction, &f, p, last, comment);
	} else if (!p->at) {
		f.rc.flags |= RC_FIRST | RC_LAST | RC_ACK_REQ;
		f.rc.psn = p->psn;
		show_one(direction, &f, NULL, comment);
	}
}

/* What the target answered to one part. */
struct answer {
	enum shm_status status;
	uint8_t timer;
	uint32_t msn;
	uint64_t result;
};

static uint8_t syndrome_of(const struct answer *a)
{
	switch (a->status) {
	case SHM_OK: return RC_SYN_ACK | RC_CREDITS_UNLIMITED;
	case SHM_RNR: return RC_SYN_RNR | (a->timer & RC_SYN_VALUE);
	case SHM_INVALID: return RC_SYN_INVALID;
	case SHM_REMOTE_ACCESS: return RC_SYN_ACCESS;
	default: return RC_SYN_OPERATION;
	}
}

static void show_answer(enum carrier_direction direction, const struct shm_part_shown *p,
			const struct answer *a)
{
	uint32_t reached = p->at + p->bytes ? p->at + p->bytes - 1 : 0;
	struct packet_frame f = {
		.service = p->frame.service,
		.src_qpn = p->frame.dst_qpn,
		.dst_qpn = p->frame.src_qpn,
		.rc = { .op = RC_ACK, .flags = RC_FIRST | RC_LAST,
			.syndrome = syndrome_of(a), .msn = a->msn },
	};

	if (a->status == SHM_DROPPED || a->status == SHM_NO_PULL || a->status == SHM_LOCAL_FAULT)
		return;
	if (a->status != SHM_OK) {
		/* The refused packet is the first one of the part. */
		f.rc.psn = (p->psn + p->at / p->mtu) & HCA_PSN_MASK;
		show_one(direction, &f, NULL, NULL);
	} else if (p->frame.rc.op == RC_READ) {
		f.rc.op = RC_READ_RESPONSE;
		f.rc.flags = 0;
		show_segments(direction, &f, p, 0, NULL);
	} else if (!p->more) {
		f.rc.psn = (p->psn + reached / p->mtu) & HCA_PSN_MASK;
		if (has_answer_data(p->frame.rc.op)) {
			f.rc.op = RC_ATOMIC_RESPONSE;
			f.rc.compare_add = a->result;
		}
		show_one(direction, &f, NULL, NULL);
	}
}

/* ---- the functions of watch.h ---- */

/* Finds the PSN of the part, and shows the part. `first_psn`: of the connection. */
static void show_part(enum carrier_direction direction, uint32_t message,
		      uint32_t first_psn, struct shm_part_shown *p)
{
	bool out = direction == CARRIER_OUT, again = false;
	bool datagram = p->frame.service == PACKET_UD;
	uint32_t own = out ? p->frame.src_qpn : p->frame.dst_qpn;
	uint32_t other = out ? p->frame.dst_qpn : p->frame.src_qpn;
	struct flow *f;

	if (!p->mtu)
		p->mtu = packet_show_mtu(own);
	spin_lock(&watch.lock);
	f = flow_get(direction, own, datagram && out ? 0 : other, datagram ? 0 : first_psn);
	if (f && datagram)
		message = f->next_message;
	p->psn = f ? flow_psn(f, message, packets_of(p->length, p->mtu), &again) : message;
	spin_unlock(&watch.lock);
	/* Later parts of a message also find its number. */
	show_request(direction, p, again && !p->at);
}

/* The MSN of an answer to this part. */
static uint32_t count_message(enum carrier_direction direction,
			      const struct shm_part_shown *p, enum shm_status status)
{
	bool out = direction == CARRIER_OUT;
	uint32_t msn = 0;
	struct flow *f;

	spin_lock(&watch.lock);
	f = flow_get(direction, out ? p->frame.src_qpn : p->frame.dst_qpn,
		     out ? p->frame.dst_qpn : p->frame.src_qpn, 0);
	if (f) {
		msn = (f->msn + (status == SHM_OK)) & HCA_PSN_MASK;
		if (status == SHM_OK && !p->more)
			f->msn = msn;
	}
	spin_unlock(&watch.lock);
	return msn;
}

static void show_sent(struct shm_link *l, uint32_t pos, const struct shm_slot *slot,
		      const struct shm_header *h)
{
	struct shm_part_shown *p = &l->shown[pos % SHM_SLOTS];
	const struct hca_qp *qp;
	uint32_t message = 0;

	p->none = !read_part(h, slot, l->tx->data, p, &message);
	if (p->none)
		return;
	qp = hca_qp_find(p->frame.src_qpn);
	show_part(CARRIER_OUT, message, qp ? qp->attr.sq_psn : message, p);
}

void shm_watch_sent(struct shm_link *l, uint32_t pos, const struct shm_slot *slot,
		    struct shm_header *h)
{
	show_sent(l, pos, slot, h);
	shm_faults_send(l, slot, h);
}

void shm_watch_received(struct shm_link *l, const struct shm_slot *slot,
			const struct shm_header *h, struct shm_part_shown *p)
{
	const struct hca_qp *qp;
	uint32_t message = 0;
	bool own;

	p->none = !read_part(h, slot, l->rx->data, p, &message);
	if (p->none)
		return;
	qp = hca_qp_find(p->frame.dst_qpn);
	own = qp && qp->counters;
	show_part(CARRIER_IN, message, own ? qp->attr.rq_psn : message, p);
}

static void read_answer(const struct shm_slot *slot, struct answer *a)
{
	a->timer = atomic_load_explicit(&slot->timer, memory_order_relaxed);
	shm_copy_once(&a->result, slot->payload + offsetof(struct shm_atomic, result),
		      sizeof(a->result));
}

void shm_watch_answered(const struct shm_slot *slot, const struct shm_part_shown *p, bool marked)
{
	struct answer a = { .status = SHM_OK };

	if (p->none || !p->answered)
		return;
	if (marked)
		a.status = (enum shm_status)atomic_load_explicit(&slot->status,
								 memory_order_relaxed);
	read_answer(slot, &a);
	a.msn = count_message(CARRIER_IN, p, a.status);
	show_answer(CARRIER_OUT, p, &a);
}

void shm_watch_acknowledged(struct shm_link *l, const struct shm_slot *slot,
			    enum shm_status status)
{
	const struct shm_part_shown *p = &l->shown[slot - l->tx->slots];
	struct answer a = { .status = status };

	if (p->none || !p->answered)
		return;
	read_answer(slot, &a);
	a.msn = count_message(CARRIER_OUT, p, status);
	show_answer(CARRIER_IN, p, &a);
}

/* ---- life ---- */

void shm_watch_start(void)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		list_init(&watch.flows[i]);
	packet_show_start();
}

static void forget_all(void)
{
	struct list *entry;

	for (unsigned i = 0; i < BUCKETS; i++)
		while (watch.flows[i].next && (entry = list_pop(&watch.flows[i])))
			free(list_entry(entry, struct flow, entry));
	watch.count = 0;
}

void shm_watch_stop(void)
{
	packet_show_stop();
	spin_lock(&watch.lock);
	forget_all();
	spin_unlock(&watch.lock);
}

void shm_watch_forked(void)
{
	watch.lock = (struct spin){ 0 };
	packet_show_forked();
	forget_all();
}

void shm_watch_connected(struct hca_qp *qp)
{
	spin_lock(&watch.lock);
	flows_forget(qp->ibv.qp_num);
	spin_unlock(&watch.lock);
	packet_show_connected(qp);
}

void shm_watch_closed(struct hca_qp *qp)
{
	spin_lock(&watch.lock);
	flows_forget(qp->ibv.qp_num);
	spin_unlock(&watch.lock);
	packet_show_closed(qp);
}
