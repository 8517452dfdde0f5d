/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of a port; see watch.h. */
#include "transport/packet/event/watch.h"

#include <stdlib.h>
#include <string.h>

#include "transport/packet/event/history.h"
#include "transport/packet/event/outcome.h"
#include "transport/packet/frame/ib.h"
#include "util/spin.h"

#define FLOWS_MAX 4096
#define BUCKETS 256

/* Kinds of packets that have PSNs of their own in a direction. */
enum space { REQUESTS, RESPONSES, ACKS, NAKS, SPACES, NO_SPACE };

/* A queue pair. */
struct flow {
	struct flow *next;
	uint32_t qpn;
	uint32_t nth; /* which one that sends; 0: it has not sent */
	/* By direction: the last answer was a NAK, enum packet_event_reaction; else 0. */
	uint8_t pending[2];
	unsigned open; /* records that wait for what becomes of them */
	/* By direction, and by class; 0: all classes. */
	uint32_t firsts[2][PACKET_EVENT_CLASSES], all[2][PACKET_EVENT_CLASSES];
	struct packet_history *history[2][SPACES]; /* NULL: no packet so far */
};

struct packet_events {
	struct spin lock; /* a leaf; for all that follows */
	struct packet_event_rules rules;
	uint64_t since_ns;
	struct flow *bucket[BUCKETS];
	unsigned flows, sending;
	unsigned records;
	struct packet_event_record record[PACKET_EVENT_RECORDS];
};

/* ---- queue pairs ---- */

static void free_flow(struct flow *f)
{
	for (unsigned d = 0; d < 2; d++)
		for (unsigned s = 0; s < SPACES; s++)
			free(f->history[d][s]);
	free(f);
}

static struct flow **find_flow(struct packet_events *e, uint32_t qpn)
{
	struct flow **at = &e->bucket[qpn % BUCKETS];

	while (*at && (*at)->qpn != qpn)
		at = &(*at)->next;
	return at;
}

/* NULL: there are too many, or there is no memory. */
static struct flow *flow_of(struct packet_events *e, uint32_t qpn)
{
	struct flow **at = find_flow(e, qpn);

	if (*at || e->flows == FLOWS_MAX)
		return *at;
	*at = calloc(1, sizeof(**at));
	if (*at) {
		(*at)->qpn = qpn;
		e->flows++;
	}
	return *at;
}

static void close_records(struct packet_events *e, uint32_t qpn)
{
	for (unsigned i = 0; i < e->records; i++)
		if (e->record[i].packet.qpn == qpn)
			e->record[i].open = false;
}

static void restart(struct packet_events *e)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct flow *f = e->bucket[i], *next; f; f = next) {
			next = f->next;
			free_flow(f);
		}
	memset(e->bucket, 0, sizeof(e->bucket));
	e->flows = e->sending = e->records = 0;
}

/* ---- packets ---- */

static enum packet_event_class class_of(const struct rc_packet *p)
{
	switch ((enum rc_op)p->op) {
	case RC_SEND: return PACKET_EVENT_SEND;
	case RC_WRITE: return PACKET_EVENT_WRITE;
	case RC_READ: return PACKET_EVENT_READ_REQUEST;
	case RC_READ_RESPONSE: return PACKET_EVENT_READ_RESPONSE;
	case RC_COMPARE_SWAP:
	case RC_FETCH_ADD:
	case RC_ATOMIC_RESPONSE: return PACKET_EVENT_ATOMIC;
	case RC_ACK: return p->syndrome & RC_SYN_KIND ? PACKET_EVENT_NAK : PACKET_EVENT_ACK;
	case RC_CNP: return PACKET_EVENT_CNP;
	case RC_FLUSH: break;
	}
	return PACKET_EVENT_ANY_CLASS;
}

static enum space space_of(const struct packet_frame *f, enum packet_event_class class)
{
	if (f->service == PACKET_UD || class == PACKET_EVENT_CNP)
		return NO_SPACE;
	if (f->rc.op < RC_ACK)
		return REQUESTS;
	return class == PACKET_EVENT_ACK ? ACKS : class == PACKET_EVENT_NAK ? NAKS : RESPONSES;
}

static void count_first(struct flow *w, struct packet_event_packet *p)
{
	p->number = ++w->firsts[p->direction][PACKET_EVENT_ANY_CLASS];
	if (p->class)
		p->class_number = ++w->firsts[p->direction][p->class];
}

/* Numbers the packet. False: no memory. */
static bool count(struct flow *w, const struct packet_frame *f, struct packet_event_packet *p)
{
	enum space space = space_of(f, p->class);
	struct packet_history **h = space < SPACES ? &w->history[p->direction][space] : NULL;
	struct packet_history_entry *entry;

	if (h && !*h && !(*h = calloc(1, sizeof(**h))))
		return false;
	w->all[p->direction][PACKET_EVENT_ANY_CLASS]++;
	if (p->class)
		w->all[p->direction][p->class]++;
	entry = h ? packet_history_see(*h, &f->rc) : NULL;
	if (!entry || !entry->number)
		count_first(w, p);
	if (entry && !entry->number) {
		entry->number = p->number;
		entry->class_number = p->class_number;
	} else if (entry) {
		p->number = entry->number;
		p->class_number = entry->class_number;
		p->times = entry->times;
	}
	return true;
}

static struct packet_event_packet describe(enum carrier_direction direction, uint32_t qpn,
					   const struct packet_frame *f)
{
	uint8_t header[PACKET_HEADER_BYTES] = { 0 };

	packet_ib_encode(f, header);
	return (struct packet_event_packet){
		.qpn = qpn,
		.psn = f->rc.psn,
		.direction = (uint8_t)direction,
		.class = (uint8_t)class_of(&f->rc),
		.service = f->service,
		.opcode = header[0],
		.syndrome = f->rc.syndrome,
		.request = f->rc.op < RC_ACK,
		.begins = f->rc.flags & RC_FIRST,
	};
}

/* ---- rules ---- */

static bool is_meant(const struct packet_event_rule *r, const struct flow *w)
{
	/* Queue pair 1 is the connection manager's. */
	return r->whose == PACKET_EVENT_ANY_QP ? w->qpn > 1 :
	       r->whose == PACKET_EVENT_QP     ? w->qpn == r->qp :
						 w->nth == r->qp;
}

/* The number of the packet as the rule counts; 0: it is not one that the rule counts. */
static uint32_t number_for(const struct packet_event_rule *r, const struct flow *w,
			   const struct packet_event_packet *p)
{
	if (r->which == PACKET_EVENT_EACH)
		return w->all[p->direction][r->class];
	if (p->times != (r->which == PACKET_EVENT_AGAIN ? r->again : 0))
		return 0;
	return r->class ? p->class_number : p->number;
}

static void add_verdict(const struct packet_event_rule *r, struct carrier_fault_verdict *v)
{
	switch ((enum packet_event_action)r->action) {
	case PACKET_EVENT_DROP: v->drop = true; break;
	case PACKET_EVENT_DELAY: v->delay_ns += r->delay_ns; break;
	case PACKET_EVENT_MARK: v->mark = true; break;
	case PACKET_EVENT_CORRUPT: v->corrupt = true; break;
	case PACKET_EVENT_DUPLICATE: v->duplicate = true; break;
	case PACKET_EVENT_ACTIONS: break;
	}
}

static void record(struct packet_events *e, struct flow *w, const struct packet_event_rule *r,
		   const struct packet_event_packet *p, uint32_t number, uint64_t now_ns)
{
	struct packet_event_record *to = &e->record[e->records];

	if (e->records == PACKET_EVENT_RECORDS)
		return;
	e->records++;
	packet_event_record_begin(to, r, p, number,
				  w->pending[p->request ? !p->direction : p->direction], now_ns);
	w->open += to->open;
}

/* Applies all rules to the packet. */
static void match(struct packet_events *e, struct flow *w, struct packet_event_packet *p,
		  uint64_t now_ns, struct carrier_fault_verdict *v)
{
	for (unsigned i = 0; i < e->rules.count; i++) {
		const struct packet_event_rule *r = &e->rules.rule[i];
		uint32_t number;

		if (r->direction != p->direction || (r->class && r->class != p->class) ||
		    !is_meant(r, w))
			continue;
		number = number_for(r, w, p);
		if (number < r->from || number > r->to)
			continue;
		add_verdict(r, v);
		record(e, w, r, p, number, now_ns);
	}
	p->lost = v->drop || v->corrupt;
}

/* Shows the packet to those of the first `records` that are of its queue pair. */
static void follow(struct packet_events *e, struct flow *w, unsigned records,
		   const struct packet_event_packet *p, uint64_t now_ns)
{
	for (unsigned i = 0; i < records && w->open; i++) {
		struct packet_event_record *r = &e->record[i];

		if (!r->open || r->packet.qpn != p->qpn)
			continue;
		packet_event_record_see(r, p, now_ns);
		w->open -= !r->open;
	}
}

/* Keeps in mind the last answer of each direction. */
static void note_answer(struct flow *w, const struct packet_event_packet *p)
{
	if (!p->request && !p->lost && p->class != PACKET_EVENT_CNP)
		w->pending[p->direction] = p->class == PACKET_EVENT_NAK ?
						   packet_event_reaction_of(p->syndrome) : 0;
}

/* The lock is held. */
static void see(struct packet_events *e, struct packet_event_packet *p,
		const struct packet_frame *f, uint64_t now_ns, struct carrier_fault_verdict *v)
{
	const unsigned records = e->records;
	struct flow *w = e->rules.count ? flow_of(e, p->qpn) : NULL;

	if (!w)
		return;
	if (p->direction == CARRIER_OUT && !w->nth && w->qpn > 1)
		w->nth = ++e->sending;
	if (!count(w, f, p))
		return;
	match(e, w, p, now_ns, v);
	follow(e, w, records, p, now_ns);
	note_answer(w, p);
}

void packet_events_see(struct packet_events *e, enum carrier_direction direction, uint32_t qpn,
		       const struct packet_frame *f, uint64_t now_ns,
		       struct carrier_fault_verdict *verdict)
{
	struct packet_event_packet p = describe(direction, qpn, f);

	spin_lock(&e->lock);
	see(e, &p, f, now_ns, verdict);
	spin_unlock(&e->lock);
}

/* ---- life ---- */

struct packet_events *packet_events_open(void)
{
	return calloc(1, sizeof(struct packet_events));
}

void packet_events_close(struct packet_events *e)
{
	if (e)
		restart(e);
	free(e);
}

void packet_events_set(struct packet_events *e, const struct packet_event_rules *rules,
		       uint64_t now_ns)
{
	spin_lock(&e->lock);
	restart(e);
	e->since_ns = now_ns;
	e->rules.count = 0;
	if (rules)
		e->rules = *rules;
	spin_unlock(&e->lock);
}

void packet_events_connected(struct packet_events *e, uint32_t qpn)
{
	struct flow **at, *gone;

	spin_lock(&e->lock);
	at = find_flow(e, qpn);
	gone = *at;
	if (gone) {
		*at = gone->next;
		e->flows--;
		close_records(e, qpn);
		free_flow(gone);
	}
	spin_unlock(&e->lock);
}

void packet_events_forked(struct packet_events *e)
{
	e->lock = (struct spin){ 0 };
	/* Another thread of the parent may have been changing them: they are not freed. */
	memset(e->bucket, 0, sizeof(e->bucket));
	e->flows = e->sending = e->records = 0;
}

unsigned packet_events_tell(struct packet_events *e, unsigned index, char *line, size_t bytes)
{
	unsigned records;

	spin_lock(&e->lock);
	records = e->records;
	if (index < records)
		packet_event_record_tell(&e->record[index], e->since_ns, line, bytes);
	spin_unlock(&e->lock);
	return records;
}
