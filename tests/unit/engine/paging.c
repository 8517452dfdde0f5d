/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of pages and the queue of faults of an adapter (engine/paging), and its profiles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/paging/paging.h"
#include "engine/paging/table.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)

static void check(bool good, const char *what)
{
	if (good)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

static struct paging *open_text(const char *text)
{
	struct paging_profile profile;
	char why[160];

	check(!paging_profile_parse(text, &profile, why, sizeof(why)), "the profile is valid");
	return paging_open(&profile);
}

static struct paging_range page(uint64_t number)
{
	return (struct paging_range){ .region = 7, .pages = 1, .first = number };
}

static bool use(struct paging *p, uint32_t qpn, enum paging_side side, uint64_t number,
		uint64_t now_ns)
{
	const struct paging_range range = page(number);

	return paging_use(p, qpn, side, &range, now_ns);
}

static void faults_are_served_one_behind_the_other(void)
{
	struct paging *p = open_text("fault_us = 500");
	struct paging_event event;

	check(!use(p, 1, PAGING_RESPONDER, 10, 0), "the first page is missing");
	check(!use(p, 2, PAGING_RESPONDER, 11, 0), "the second one, too");
	check(paging_next_ns(p) == 500 * US, "the first one takes a fault");
	check(!paging_take(p, 499 * US, &event), "not before");
	check(paging_take(p, 500 * US, &event) && event.qpn == 1 && event.range.pages == 1,
	      "the event is of who waits");
	check(use(p, 3, PAGING_RESPONDER, 10, 500 * US), "the page is there for all");
	check(paging_next_ns(p) == 1000 * US, "the second one begins behind the first");
	paging_close(p);
}

static void a_queue_pair_begins_one_fault_for_a_page(void)
{
	struct paging *p = open_text("fault_us = 500");
	struct paging_counters count;
	struct paging_event event;

	for (unsigned i = 0; i < 5; i++)
		check(!use(p, 1, PAGING_RESPONDER, 10, i), "it is missing");
	check(paging_take(p, MS, &event) && !paging_take(p, MS, &event), "one event");
	paging_count(p, &count);
	check(count.faults == 1 && count.refreshed == 0, "one fault");
	paging_close(p);
}

static void each_requester_learns_by_itself_that_the_page_is_there(void)
{
	struct paging *p = open_text("fault_us = 1000\nrefresh_us = 140\n");
	struct paging_event event;

	for (uint32_t qpn = 1; qpn <= 30; qpn++)
		check(!use(p, qpn, PAGING_REQUESTER, 10, qpn), "it is missing");
	check(paging_take(p, MS + US, &event) && event.qpn == 1, "the first one learns it");
	check(use(p, 1, PAGING_REQUESTER, 10, MS + US), "and has the page");
	check(use(p, 99, PAGING_REQUESTER, 10, MS + US), "so has one that never missed it");
	check(use(p, 2, PAGING_RESPONDER, 10, MS + US), "and each responder");
	check(!use(p, 2, PAGING_REQUESTER, 10, MS + US), "but not who waits");
	for (uint32_t qpn = 2; qpn <= 30; qpn++) {
		uint64_t at_ns = MS + 1 + (qpn - 1) * 140 * US;

		check(paging_next_ns(p) == at_ns, "140 us for each");
		check(paging_take(p, at_ns, &event) && event.qpn == qpn && !event.range.pages,
		      "in their order, without pages");
	}
	paging_close(p);
}

struct seen {
	unsigned begun, served;
	uint64_t served_ns;
};

static void see(void *arg, uint64_t at_ns, bool served, const struct paging_event *fault)
{
	struct seen *seen = arg;

	check(fault->range.pages == 1 && fault->range.first == 10, "the pages that are wanted");
	seen->begun += !served;
	seen->served += served;
	seen->served_ns = served ? at_ns : seen->served_ns;
}

static void a_watcher_sees_each_fault_begin_and_end(void)
{
	struct paging *p = open_text("fault_us = 500");
	struct paging_event event;
	struct seen seen = { 0 };

	paging_watch(p, see, &seen);
	check(!use(p, 1, PAGING_RESPONDER, 10, 0) && !use(p, 1, PAGING_RESPONDER, 10, 1), "it is missing");
	check(!use(p, 2, PAGING_RESPONDER, 10, 2), "for the other queue pair, too");
	check(seen.begun == 2 && !seen.served, "two faults begin");
	check(paging_take(p, 600 * US, &event) && seen.served_ns == 500 * US, "the first has its own time");
	check(paging_take(p, 600 * US, &event) && seen.served == 2, "the second finds the page");
	paging_watch(p, NULL, NULL);
	paging_close(p);
}

static void one_fault_brings_a_range_up_to_4_mib(void)
{
	struct paging *p = open_text("fault_us = 500");
	struct paging_range range = { .region = 7, .pages = 3000, .first = 5 };
	struct paging_event event;
	unsigned faults = 0;

	while (!paging_use(p, 1, PAGING_RESPONDER, &range, faults * MS)) {
		faults++;
		check(paging_take(p, faults * MS, &event), "it is served");
	}
	check(faults == 3, "3000 pages are three faults");
	paging_close(p);
}

static void a_peer_that_names_ever_new_pages_begins_few_faults(void)
{
	struct paging *p = open_text("fault_us = 500");
	struct paging_event event;
	unsigned events = 0;

	for (uint64_t i = 0; i < 100000; i++)
		check(!use(p, 1, PAGING_RESPONDER, 2 * i, 0), "it is missing");
	check(!use(p, 2, PAGING_RESPONDER, 1, 0), "somebody else waits, too");
	while (paging_take(p, 1000 * MS, &event) && event.qpn == 1)
		events++;
	check(events == PAGING_QP_FAULTS && event.qpn == 2, "but not behind all of them");
	check(!use(p, 1, PAGING_RESPONDER, 199998, 1000 * MS), "the last page is missing");
	check(paging_take(p, 1001 * MS, &event) && event.qpn == 1, "and comes when it is asked for again");
	paging_close(p);
}

static void reminders_come_in_the_order_of_their_times(void)
{
	struct paging *p = open_text("fault_us = 500");
	struct paging_event event;
	static const uint64_t at_ns[] = { 30, 10, 20, 10 };
	static const uint32_t order[] = { 2, 4, 3, 1 };

	for (uint32_t i = 0; i < 4; i++)
		paging_remind(p, i + 1, PAGING_RESPONDER, at_ns[i]);
	for (unsigned i = 0; i < 4; i++)
		check(paging_take(p, 30, &event) && event.reminder && event.qpn == order[i],
		      "by time, then by age");
	check(paging_next_ns(p) == UINT64_MAX, "there are no more");
	paging_close(p);
}

static void what_is_gone_is_forgotten(void)
{
	struct paging *p = open_text("fault_us = 500\nrefresh_us = 100");
	const struct paging_range range = page(10);
	struct paging_event event;

	use(p, 1, PAGING_REQUESTER, 10, 0);
	use(p, 2, PAGING_REQUESTER, 10, 0);
	paging_remind(p, 1, PAGING_RESPONDER, 5);
	paging_forget_qp(p, 1);
	check(paging_take(p, MS, &event) && event.qpn == 2, "only the other one has events");
	check(!paging_take(p, MS, &event), "no reminder either");
	paging_prefetch(p, &range);
	check(use(p, 1, PAGING_REQUESTER, 10, MS), "the page is there");
	paging_invalidate(p, &range);
	check(!use(p, 1, PAGING_REQUESTER, 10, MS), "the host has taken it back");
	paging_forget_region(p, 7);
	check(paging_take(p, 2 * MS, &event) && event.qpn == 1 && !event.range.pages,
	      "who waits for a region that is gone learns it");
	check(!use(p, 1, PAGING_REQUESTER, 10, 2 * MS), "a region of its number has no pages");
	paging_close(p);
}

static void a_page_is_fresh_until_it_is_used(void)
{
	struct paging *p = open_text("fault_us = 500");
	const struct paging_range range = page(10), other = page(11);
	struct paging_event event;

	use(p, 1, PAGING_RESPONDER, 10, 0);
	paging_take(p, MS, &event);
	check(paging_first_use(p, &range) && !paging_first_use(p, &range), "once");
	paging_prefetch(p, &other);
	check(!paging_first_use(p, &other), "a prefetched one never");
	paging_close(p);
}

/* Against a list, with few different keys, so that slots are moved a lot. */
static void the_table_has_what_was_put_in(void)
{
	struct paging_table t = { 0 };
	uint32_t model[16][64] = { 0 };
	uint32_t state = 1;

	for (unsigned i = 0; i < 200000; i++) {
		uint32_t a, b, value;

		state = state * 1664525 + 1013904223;
		a = state >> 28;
		b = state >> 20 & 63;
		value = state >> 8 & 1023;
		if (value < 2) {
			paging_table_remove_all(&t, UINT64_MAX, a);
			memset(model[a], 0, sizeof(model[a]));
		} else if (value < 400) {
			check(paging_table_remove(&t, a, b) == (model[a][b] != 0), "remove");
			model[a][b] = 0;
		} else {
			check(paging_table_set(&t, a, b, value), "set");
			model[a][b] = value;
		}
		check(paging_table_get(&t, a, 63 - b) == model[a][63 - b], "get");
	}
	paging_table_free(&t);
}

static void each_built_in_profile_names_its_source(void)
{
	const char *at = paging_profile_names;
	struct paging_profile profile;
	char name[32], why[160];

	while (sscanf(at, " %31[^,]", name) == 1) {
		const char *text = paging_profile_text(name);

		check(text && !strncmp(text, "# source: ", 10), name);
		check(!paging_profile_parse(text, &profile, why, sizeof(why)), why);
		at += strcspn(at, ",");
		at += *at == ',';
	}
	check(paging_timeout_ns(&profile, 0) == 0, "code 0 is no timeout");
}

static void a_profile_that_is_wrong_is_refused_with_its_line(void)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "fault_us = 5\nwhat = 1\n", "line 2: there is no parameter 'what'" },
		{ "fault_us", "line 1: expected PARAMETER = VALUE" },
		{ "\n\ntimeout_floor = 32", "line 3: timeout_floor is a number up to 31, not '32'" },
		{ "loses_posted = maybe", "line 1: loses_posted is on or off, not 'maybe'" },
		{ "fault_us = -1", "line 1: fault_us is a number up to 3600000000, not '-1'" },
	};
	struct paging_profile profile;
	char why[160];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		check(paging_profile_parse(cases[i].text, &profile, why, sizeof(why)) < 0,
		      cases[i].text);
		check(!strcmp(why, cases[i].why), why);
	}
}

int main(void)
{
	faults_are_served_one_behind_the_other();
	a_queue_pair_begins_one_fault_for_a_page();
	each_requester_learns_by_itself_that_the_page_is_there();
	a_watcher_sees_each_fault_begin_and_end();
	one_fault_brings_a_range_up_to_4_mib();
	a_peer_that_names_ever_new_pages_begins_few_faults();
	reminders_come_in_the_order_of_their_times();
	what_is_gone_is_forgotten();
	a_page_is_fresh_until_it_is_used();
	the_table_has_what_was_put_in();
	each_built_in_profile_names_its_source();
	a_profile_that_is_wrong_is_refused_with_its_line();
	return 0;
}
