/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of pages, and the queue of faults; see paging.h. */
#include "engine/paging/paging.h"

#include <stdlib.h>

#include "engine/paging/table.h"
#include "util/list.h"

/* Of a page in the table. */
enum { FRESH = 1, USED = 2 };

struct fault {
	struct list entry;
	struct paging_event event; /* its range: the pages that are wanted */
	bool silent;               /* its queue pair is gone */
	uint64_t at_ns;            /* of a reminder */
};

struct paging {
	struct paging_profile profile;
	/* Pages in the table of the adapter: (region, page). */
	struct paging_table pages;
	/* Pages that a queue pair waits for: (who, page); of those `stale` on the side of the
	 * requester. */
	struct paging_table waits;
	uint64_t stale;
	struct list faults;    /* the first one is being served, until due_ns */
	uint64_t due_ns;
	struct list reminders; /* by their time */
	struct paging_counters count;
	paging_saw *saw;
	void *saw_arg;
};

#define QPN_MASK UINT64_C(0xffffff)
/* In the place of a region: how many faults of the queue pair on this side are queued. */
#define NO_REGION UINT32_MAX

/* The first number of an entry of `waits`. */
static uint64_t who(uint32_t region, uint32_t qpn, enum paging_side side)
{
	return (uint64_t)side << 56 | (qpn & QPN_MASK) << 32 | region;
}

struct paging *paging_open(const struct paging_profile *profile)
{
	struct paging *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->profile = *profile;
	list_init(&p->faults);
	list_init(&p->reminders);
	return p;
}

static void free_all(struct list *list)
{
	list_for_each_safe(f, list, struct fault, entry)
		free(f);
}

void paging_close(struct paging *p)
{
	if (!p)
		return;
	free_all(&p->faults);
	free_all(&p->reminders);
	paging_table_free(&p->pages);
	paging_table_free(&p->waits);
	free(p);
}

const struct paging_profile *paging_profile_of(const struct paging *p)
{
	return &p->profile;
}

static bool is_there(const struct paging *p, uint32_t region, uint64_t page)
{
	return paging_table_get(&p->pages, region, page);
}

/* Does each queue pair of a requester learn by its own fault that a page is there? */
static bool learns_alone(const struct paging *p, enum paging_side side)
{
	return side == PAGING_REQUESTER && p->profile.refresh_us;
}

static bool all_there(const struct paging *p, const struct paging_range *r)
{
	for (uint32_t i = 0; i < r->pages; i++)
		if (!is_there(p, r->region, r->first + i))
			return false;
	return true;
}

/* The first fault of the queue is being served from this time on. */
static void serve(struct paging *p, uint64_t now_ns)
{
	const struct fault *f = list_entry(p->faults.next, struct fault, entry);
	const struct paging_profile *profile = &p->profile;
	uint64_t ns = 0;

	if (list_empty(&p->faults))
		return;
	if (!all_there(p, &f->event.range))
		ns = profile->fault_us * 1000;
	else if (learns_alone(p, f->event.side))
		ns = profile->refresh_us * 1000 +
		     profile->refresh_us * profile->refresh_growth_ppm * p->stale / 1000;
	p->due_ns = now_ns + ns;
}

/* A responder has one request at a time, whose buffers are few. A peer that names other pages each time
 * must neither fill the memory nor make all others wait. */
static bool has_many(const struct paging *p, uint32_t qpn, enum paging_side side)
{
	return side == PAGING_RESPONDER &&
	       paging_table_get(&p->waits, who(NO_REGION, qpn, side), 0) >= PAGING_QP_FAULTS;
}

static void count_fault(struct paging *p, uint32_t qpn, bool begins)
{
	uint64_t key = who(NO_REGION, qpn, PAGING_RESPONDER);
	uint32_t count = paging_table_get(&p->waits, key, 0);

	if (begins)
		paging_table_set(&p->waits, key, 0, count + 1);
	else if (count > 1)
		paging_table_set(&p->waits, key, 0, count - 1);
	else
		paging_table_remove(&p->waits, key, 0);
}

static void show(const struct paging *p, uint64_t at_ns, bool served,
		 const struct paging_event *fault)
{
	if (p->saw)
		p->saw(p->saw_arg, at_ns, served, fault);
}

static void add_fault(struct paging *p, uint32_t qpn, enum paging_side side,
		      const struct paging_range *range, uint64_t now_ns)
{
	struct fault *f = calloc(1, sizeof(*f));
	bool idle = list_empty(&p->faults);

	if (!f || !paging_table_set(&p->waits, who(range->region, qpn, side), range->first, 1)) {
		free(f);
		return;
	}
	p->stale += side == PAGING_REQUESTER;
	if (side == PAGING_RESPONDER)
		count_fault(p, qpn, true);
	f->event = (struct paging_event){ .side = side, .qpn = qpn, .range = *range };
	if (f->event.range.pages > PAGING_FAULT_PAGES)
		f->event.range.pages = PAGING_FAULT_PAGES;
	list_push(&p->faults, &f->entry);
	show(p, now_ns, false, &f->event);
	if (idle)
		serve(p, now_ns);
}

bool paging_there(const struct paging *p, uint32_t qpn, enum paging_side side,
		  const struct paging_range *range)
{
	for (uint32_t i = 0; i < range->pages; i++)
		if (!is_there(p, range->region, range->first + i) ||
		    (learns_alone(p, side) &&
		     paging_table_get(&p->waits, who(range->region, qpn, side),
				      range->first + i)))
			return false;
	return true;
}

bool paging_use(struct paging *p, uint32_t qpn, enum paging_side side,
		const struct paging_range *range, uint64_t now_ns)
{
	for (uint32_t i = 0; i < range->pages; i++) {
		const struct paging_range rest = {
			.region = range->region,
			.first = range->first + i,
			.pages = range->pages - i,
		};
		bool there = is_there(p, rest.region, rest.first);

		if (there && !learns_alone(p, side))
			continue;
		if (paging_table_get(&p->waits, who(rest.region, qpn, side), rest.first))
			return false;
		if (!there) {
			if (!has_many(p, qpn, side))
				add_fault(p, qpn, side, &rest, now_ns);
			return false;
		}
	}
	return true;
}

bool paging_first_use(struct paging *p, const struct paging_range *range)
{
	bool first = false;

	for (uint32_t i = 0; i < range->pages; i++) {
		uint64_t page = range->first + i;

		if (paging_table_get(&p->pages, range->region, page) != FRESH)
			continue;
		first = true;
		paging_table_set(&p->pages, range->region, page, USED);
	}
	return first;
}

void paging_remind(struct paging *p, uint32_t qpn, enum paging_side side, uint64_t at_ns)
{
	struct fault *f = calloc(1, sizeof(*f));
	struct list *before = &p->reminders;

	if (!f)
		return;
	f->event = (struct paging_event){ .side = side, .qpn = qpn, .reminder = true };
	f->at_ns = at_ns;
	/* Behind all that are not later: most are the latest. */
	while (before->prev != &p->reminders &&
	       list_entry(before->prev, struct fault, entry)->at_ns > at_ns)
		before = before->prev;
	list_push(before, &f->entry);
}

static uint64_t reminder_ns(const struct paging *p)
{
	return list_empty(&p->reminders) ?
		       UINT64_MAX :
		       list_entry(p->reminders.next, struct fault, entry)->at_ns;
}

uint64_t paging_next_ns(const struct paging *p)
{
	uint64_t fault_ns = list_empty(&p->faults) ? UINT64_MAX : p->due_ns;
	uint64_t other_ns = reminder_ns(p);

	return fault_ns < other_ns ? fault_ns : other_ns;
}

/* Puts the pages into the table that are not there; returns how many. */
static uint32_t bring(struct paging *p, const struct paging_range *range, uint32_t state)
{
	uint32_t brought = 0;

	for (uint32_t i = 0; i < range->pages; i++)
		if (!is_there(p, range->region, range->first + i))
			brought += paging_table_set(&p->pages, range->region, range->first + i,
						    state);
	return brought;
}

/* The first fault is served. False: nobody waits for it any more. */
static bool end_fault(struct paging *p, struct paging_event *event)
{
	struct fault *f = list_entry(p->faults.next, struct fault, entry);
	uint64_t ended_ns = p->due_ns;
	bool silent = f->silent;
	uint32_t brought;

	list_remove(&f->entry);
	*event = f->event;
	free(f);
	if (!silent) {
		show(p, ended_ns, true, event);
		brought = bring(p, &event->range, FRESH);
		p->count.faults += brought;
		p->count.refreshed += !brought;
		paging_table_remove(&p->waits,
				    who(event->range.region, event->qpn, event->side),
				    event->range.first);
		p->stale -= event->side == PAGING_REQUESTER;
		if (event->side == PAGING_RESPONDER)
			count_fault(p, event->qpn, false);
		event->range.pages = brought ? event->range.pages : 0;
	}
	serve(p, ended_ns);
	return !silent;
}

bool paging_take(struct paging *p, uint64_t now_ns, struct paging_event *event)
{
	while (!list_empty(&p->faults) && p->due_ns <= now_ns && p->due_ns <= reminder_ns(p))
		if (end_fault(p, event))
			return true;
	if (reminder_ns(p) <= now_ns) {
		struct fault *f = list_entry(p->reminders.next, struct fault, entry);

		list_remove(&f->entry);
		*event = f->event;
		free(f);
		return true;
	}
	return false;
}

void paging_prefetch(struct paging *p, const struct paging_range *range)
{
	p->count.prefetched += bring(p, range, USED);
}

void paging_invalidate(struct paging *p, const struct paging_range *range)
{
	for (uint32_t i = 0; i < range->pages; i++)
		p->count.invalidated += paging_table_remove(&p->pages, range->region,
							    range->first + i);
}

void paging_forget_region(struct paging *p, uint32_t region)
{
	paging_table_remove_all(&p->pages, UINT32_MAX, region);
	paging_table_remove_all(&p->waits, UINT32_MAX, region);
	/* Who waits for its pages learns at the end of the fault that they do not come. */
	list_for_each(f, &p->faults, struct fault, entry)
		if (f->event.range.region == region)
			f->event.range.pages = 0;
}

void paging_forget_qp(struct paging *p, uint32_t qpn)
{
	paging_table_remove_all(&p->waits, QPN_MASK << 32, (qpn & QPN_MASK) << 32);
	list_for_each(f, &p->faults, struct fault, entry)
		if (f->event.qpn == qpn && !f->silent) {
			f->silent = true;
			p->stale -= f->event.side == PAGING_REQUESTER;
		}
	list_for_each_safe(f, &p->reminders, struct fault, entry)
		if (f->event.qpn == qpn) {
			list_remove(&f->entry);
			free(f);
		}
}

void paging_watch(struct paging *p, paging_saw *saw, void *arg)
{
	p->saw = saw;
	p->saw_arg = arg;
}

void paging_count(const struct paging *p, struct paging_counters *out)
{
	*out = p->count;
}
