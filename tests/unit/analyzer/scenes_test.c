/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdict on each scene, in all formats, byte orders and link types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analyse.h"
#include "wire/capture/link.h"

static const struct scene_file ibdump = { .link = CAPTURE_ERF };

static struct analyzer *named(const char *name, const struct scene_file *f)
{
	struct analyzer_capture c;
	struct scene s;
	struct analyzer *a;

	assert_true(scene_named(name, &s));
	a = analyse(&s, f, &c);
	assert_false(c.corrupt);
	scene_free(&s);
	return a;
}

static void expect_near(double value, double wanted, double error)
{
	if (value - wanted > error || wanted - value > error)
		fail_msg("%f instead of %f", value, wanted);
}

/* What is expected of the first flow. */
struct expected {
	const char *name;
	enum analyzer_kind verdict;
	enum analyzer_side side;
	uint32_t psn;
	double stall_s;   /* exact to the microsecond of the listing */
	double inflation; /* 0: there is none */
	unsigned flows;
};

static const struct expected table[] = {
	{ "fig4.2", ANALYZER_PAGE_FAULT, .inflation = 3.456, .flows = 1 },
	{ "fig4.2-client", ANALYZER_PAGE_FAULT, .flows = 1 },
	{ "fig4.3", ANALYZER_PAGE_FAULT, .inflation = 2.65, .flows = 1 },
	{ "fig4.3-client", ANALYZER_NONE, .flows = 1 },
	{ "fig4.4", ANALYZER_PAGE_FAULT, .inflation = 4.304, .flows = 1 },
	{ "fig4.4-client", ANALYZER_NONE, .flows = 1 },
	{ "fig5.3", ANALYZER_DAMMING, ANALYZER_SERVER, 2, .537778, 2.99, 1 },
	{ "fig5.3-client", ANALYZER_DAMMING, ANALYZER_CLIENT, 2, .435127, 0, 1 },
	{ "fig6.2", ANALYZER_DAMMING, ANALYZER_SERVER, 27, 1.661320, 4.979, 1 },
	{ "interleaved", ANALYZER_DAMMING, ANALYZER_SERVER, 2, .537778, 2.99, 2 },
	{ "self-heal", ANALYZER_DAMMING_RECOVERED, ANALYZER_SERVER, 2, .001034, 2.99, 1 },
	{ "read-flood", ANALYZER_READ_FLOOD, .flows = 128 },
	{ "write-amplification", ANALYZER_WRITE_AMPLIFICATION, .inflation = 3.44, .flows = 1 },
	{ "wrong-lid", ANALYZER_TIMEOUT, ANALYZER_SIDE_UNKNOWN, 5, 3.7646, 0, 1 },
	{ "loss", ANALYZER_LOSS, .flows = 1 },
	{ "psn-wrap", ANALYZER_DAMMING, ANALYZER_SERVER, 0, .537778, 2.99, 1 },
	{ "clean", ANALYZER_NONE, .flows = 1 },
	{ "one-direction", ANALYZER_INCOMPLETE, .flows = 1 },
	{ "answers-only", ANALYZER_INCOMPLETE, .flows = 1 },
	{ "congested", ANALYZER_CONGESTION, .flows = 1 },
	{ "long-reads", ANALYZER_LOSS, .flows = 1 },
	{ "no-receive", ANALYZER_RNR, .inflation = 1.0875, .flows = 1 },
};

static void expect(const struct expected *e, const struct analyzer *a)
{
	const struct analyzer_result *r = analyzer_flow(a, 0);

	assert_int_equal(analyzer_flows(a), e->flows);
	if (r->verdict != e->verdict)
		fail_msg("%s: verdict %d instead of %d (kinds %x, gaps %x)", e->name, r->verdict, e->verdict,
			 r->kinds, r->gaps);
	if (e->inflation != 0)
		expect_near(r->inflation_max, e->inflation, .01);
	else
		assert_int_equal(r->rnr_waits, 0);
	if (e->stall_s == 0) {
		assert_int_equal(r->findings, 0);
		return;
	}
	assert_int_equal(r->findings, 1);
	expect_near((double)r->finding[0].stall_ns / 1e9, e->stall_s, 1.5e-6);
	assert_int_equal(r->finding[0].psn, e->psn);
	assert_int_equal(r->finding[0].side, e->side);
	if (e->verdict == ANALYZER_DAMMING)
		assert_int_equal(r->finding[0].confidence, ANALYZER_HIGH);
}

static void every_scene_has_its_verdict_in_every_file(void **state)
{
	static const uint16_t links[] = { CAPTURE_ETHERNET, CAPTURE_RAW_IP, CAPTURE_COOKED, CAPTURE_ERF,
					  CAPTURE_INFINIBAND, CAPTURE_COOKED_2 };

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (size_t l = 0; l < sizeof(links) / sizeof(links[0]); l++)
			for (unsigned bits = 0; bits < 32; bits += table[i].flows > 2 ? 5 : 1) {
				struct scene_file f = { .link = links[l], .ng = bits & 1, .big = bits & 2,
							.ns = bits & 4, .tagged = bits & 8,
							.ip6 = bits & 16 };
				struct analyzer *a = named(table[i].name, &f);

				expect(&table[i], a);
				analyzer_free(a);
			}
}

static void packets_that_are_cut_behind_their_headers_give_the_same(void **state)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct analyzer *a = named(table[i].name, &(struct scene_file){ .link = CAPTURE_ETHERNET,
										.snap = 70 });

		expect(&table[i], a);
		analyzer_free(a);
	}
}

static void a_capture_at_both_ends_gives_the_same(void **state)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct analyzer *a = named(table[i].name, &(struct scene_file){
			.link = CAPTURE_ETHERNET, .ng = true, .twice = true });

		assert_true(analyzer_flow(a, 0)->twice > 0);
		assert_int_equal(analyzer_flow(a, 0)->verdict, table[i].verdict);
		assert_int_equal(analyzer_flows(a), table[i].flows);
		analyzer_free(a);
	}
}

static void the_verdict_is_on_the_dammed_connection_alone(void **state)
{
	struct analyzer *a = named("interleaved", &ibdump);

	assert_int_equal(analyzer_flow(a, 0)->verdict, ANALYZER_DAMMING);
	assert_int_equal(analyzer_flow(a, 0)->qpn, 0x22);
	assert_int_equal(analyzer_flow(a, 0)->peer_qpn, 0x11);
	assert_int_equal(analyzer_flow(a, 1)->verdict, ANALYZER_NONE);
	assert_int_equal(analyzer_flow(a, 1)->peer_qpn, 0x13);
	analyzer_free(a);
}

static void the_evidence_names_the_packets(void **state)
{
	struct analyzer *a = named("fig5.3", &ibdump);
	const struct analyzer_finding *g = &analyzer_flow(a, 0)->finding[0];

	assert_int_equal(g->packet_open, 2);
	assert_int_equal(g->packet_closed, 4);
	assert_int_equal(g->packet_sent, 5);
	assert_int_equal(g->packet_again, 7);
	assert_int_equal(g->packet_answer, 8);
	assert_int_equal(g->psn_before, 1);
	assert_int_equal(g->timeout_code, 16);
	expect_near(g->timeout_factor, 2.0, .01);
	analyzer_free(a);
}

static void a_flood_is_counted(void **state)
{
	struct analyzer *a = named("read-flood", &ibdump);
	unsigned flood = 0;

	for (unsigned i = 0; i < analyzer_flows(a); i++) {
		const struct analyzer_result *r = analyzer_flow(a, i);

		flood += r->verdict == ANALYZER_READ_FLOOD;
		if (r->verdict == ANALYZER_READ_FLOOD)
			assert_int_equal(r->flood_flows, 30);
		assert_true(r->verdict == ANALYZER_READ_FLOOD || r->verdict == ANALYZER_PAGE_FAULT ||
			    r->verdict == ANALYZER_NONE);
	}
	assert_int_equal(flood, 30);
	assert_int_equal(analyzer_totals(a)->pages, 1);
	analyzer_free(a);
}

static void repeated_writes_are_counted(void **state)
{
	struct analyzer *a = named("write-amplification", &ibdump);
	const struct analyzer_result *r = analyzer_flow(a, 0);

	assert_int_equal(r->write_naks, 24);
	assert_int_equal(r->write_distinct, 96);
	assert_true(r->write_resends > 4 * 96);
	assert_true(r->write_resends + 96 <= 96 * 25 / 2 + 96);
	analyzer_free(a);
}

static void the_ladder_marks_the_lost_packet(void **state)
{
	struct analyzer *a = named("fig5.3", &ibdump);
	const struct analyzer_ladder *l = analyzer_ladder(a, 1);

	assert_int_equal(analyzer_ladder_at(l, 1)->notes, ANALYZER_RUNG_OPENS);
	assert_int_equal(analyzer_ladder_at(l, 2)->notes, ANALYZER_RUNG_DISCARDED);
	assert_int_equal(analyzer_ladder_at(l, 3)->notes, ANALYZER_RUNG_CLOSES | ANALYZER_RUNG_AGAIN);
	assert_int_equal(analyzer_ladder_at(l, 4)->notes, ANALYZER_RUNG_LOST);
	assert_int_equal(analyzer_ladder_at(l, 6)->notes, ANALYZER_RUNG_AGAIN);
	assert_non_null(analyzer_ladder_at(l, 7));
	assert_null(analyzer_ladder_at(l, 8));
	analyzer_free(a);
}

struct told {
	unsigned count;
	enum analyzer_kind kind;
	uint64_t packet; /* that was fed last when it was told first */
	uint64_t fed;
};

static void tell(void *arg, const struct analyzer_news *news)
{
	struct told *t = arg;

	if (!t->count++) {
		t->kind = news->kind;
		t->packet = t->fed;
	}
}

/* As for a capture that comes slowly: what can be analysed is, behind each packet. */
static struct analyzer *live(const char *name, struct told *t)
{
	struct analyzer *a = analyzer_new(0);
	struct analyzer_capture c;
	size_t size, used = 0;
	struct scene s;
	uint8_t *bytes;

	assert_non_null(a);
	assert_true(scene_named(name, &s));
	bytes = scene_write(&s, &ibdump, &size);
	analyzer_capture_begin(&c);
	for (size_t have = 0; have < size; have += 16) {
		size_t end = have + 16 < size ? have + 16 : size;

		used += analyzer_capture_feed(&c, a, bytes + used, end - used);
		t->fed = c.packets;
		analyzer_catch_up(a, c.last_ns);
		analyzer_news(a, tell, t);
	}
	free(bytes);
	scene_free(&s);
	return a;
}

static void pitfalls_are_told_while_packets_come(void **state)
{
	struct told damming = { 0 }, flood = { 0 }, writes = { 0 }, none = { 0 };
	unsigned flooded = 0;
	struct analyzer *a;

	analyzer_free(live("fig5.3", &damming));
	assert_int_equal(damming.count, 1);
	assert_int_equal(damming.kind, ANALYZER_DAMMING);
	assert_int_equal(damming.packet, 7); /* the resend by the timeout */
	a = live("read-flood", &flood);
	analyzer_finish(a);
	for (unsigned i = 0; i < analyzer_flows(a); i++)
		flooded += analyzer_flow(a, i)->verdict == ANALYZER_READ_FLOOD;
	analyzer_free(a);
	assert_int_equal(flood.kind, ANALYZER_READ_FLOOD);
	assert_int_equal(flood.count, flooded);
	analyzer_free(live("write-amplification", &writes));
	assert_int_equal(writes.count, 1);
	assert_int_equal(writes.kind, ANALYZER_WRITE_AMPLIFICATION);
	analyzer_free(live("loss", &none));
	analyzer_free(live("no-receive", &none));
	analyzer_free(live("clean", &none));
	assert_int_equal(none.count, 0);
}

static void asking_for_news_changes_no_verdict(void **state)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct told t = { 0 };
		struct analyzer *a = live(table[i].name, &t);

		analyzer_finish(a);
		expect(&table[i], a);
		if (table[i].verdict < ANALYZER_PITFALLS_END && !t.count)
			fail_msg("%s: nothing was told", table[i].name);
		analyzer_free(a);
	}
}

static void a_capture_without_answers_says_so(void **state)
{
	struct analyzer *a = named("one-direction", &ibdump);

	assert_int_equal(analyzer_flow(a, 0)->gaps, ANALYZER_NO_ANSWERS);
	analyzer_free(a);
	a = named("answers-only", &ibdump);
	assert_int_equal(analyzer_flow(a, 0)->gaps, ANALYZER_NO_REQUESTS);
	analyzer_free(a);
}

/* Only packets of the requester, or only some of them. */
static struct analyzer *thinned(const char *name, bool (*keep)(const struct scene_packet *p, size_t i))
{
	struct analyzer_capture c;
	struct analyzer *a;
	struct scene s;
	size_t kept = 0;

	assert_true(scene_named(name, &s));
	for (size_t i = 0; i < s.count; i++)
		if (keep(&s.packet[i], i))
			s.packet[kept++] = s.packet[i];
	s.count = kept;
	a = analyse(&s, &ibdump, &c);
	scene_free(&s);
	return a;
}

static bool is_request(const struct scene_packet *p, size_t i)
{
	return p->from == 1;
}

static bool is_no_rnr_nak(const struct scene_packet *p, size_t i)
{
	return i != 1;
}

static bool is_not_the_resend(const struct scene_packet *p, size_t i)
{
	return i != 3;
}

static void missing_packets_lower_the_confidence(void **state)
{
	static bool (*const keep[])(const struct scene_packet *p, size_t i) = {
		is_request, is_not_the_resend };
	struct analyzer *a;

	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++) {
		const struct analyzer_result *r;

		a = thinned("fig5.3", keep[i]);
		r = analyzer_flow(a, 0);
		assert_int_equal(r->verdict, ANALYZER_DAMMING);
		assert_int_equal(r->finding[0].confidence, ANALYZER_MEDIUM);
		assert_int_equal(r->finding[0].psn, 2);
		analyzer_free(a);
	}
	/* Without the NAK the dropped answer looks like a missing page of the requester. */
	a = thinned("fig5.3", is_no_rnr_nak);
	assert_int_equal(analyzer_flow(a, 0)->verdict, ANALYZER_DAMMING);
	analyzer_free(a);
}

static void drops_that_the_capture_reports_are_known(void **state)
{
	struct analyzer_capture c;
	struct analyzer *a;
	struct scene s;

	for (int big = 0; big < 2; big++) {
		assert_true(scene_named("clean", &s));
		a = analyse(&s, &(struct scene_file){ .link = CAPTURE_ETHERNET, .ng = true, .big = big,
						      .dropped = 9 }, &c);
		assert_int_equal(analyzer_capture_lost(&c), 9);
		analyzer_free(a);
		scene_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_scene_has_its_verdict_in_every_file),
		cmocka_unit_test(packets_that_are_cut_behind_their_headers_give_the_same),
		cmocka_unit_test(a_capture_at_both_ends_gives_the_same),
		cmocka_unit_test(the_verdict_is_on_the_dammed_connection_alone),
		cmocka_unit_test(the_evidence_names_the_packets),
		cmocka_unit_test(a_flood_is_counted),
		cmocka_unit_test(repeated_writes_are_counted),
		cmocka_unit_test(the_ladder_marks_the_lost_packet),
		cmocka_unit_test(pitfalls_are_told_while_packets_come),
		cmocka_unit_test(asking_for_news_changes_no_verdict),
		cmocka_unit_test(a_capture_without_answers_says_so),
		cmocka_unit_test(missing_packets_lower_the_confidence),
		cmocka_unit_test(drops_that_the_capture_reports_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
