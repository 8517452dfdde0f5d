/* SPDX-License-Identifier: BSD-2-Clause */
/* The shapes of the suite tutorial: what a message of MPI is, and what the ways to send cost. */
#include <stdio.h>

#include "bench/result/shapes_private.h"
#include "util/container_of.h"

#define SAME 1.15 /* the source's medians of Send and Ssend by rendezvous differ by 1 % */
/* Messages that an MPI sends for itself, and counts at the edges of what is measured. */
#define ALMOST 0.15

static const char *const libraries[] = { "openmpi", "mpich" };

enum { EAGER = 16384, RENDEZVOUS = 4096 };

static void eager_is_one(struct shape_run *r, struct shape_answer *a)
{
	char wanted[100], what[60];

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		snprintf(wanted, sizeof(wanted), "library=%s call=send rendezvous_from=%d",
			 libraries[i], EAGER);
		snprintf(what, sizeof(what), "%s send", libraries[i]);
		shape_count(a, what, shape_figure(r, "E1-messages", "wire_messages", wanted), 1,
			    ALMOST);
		snprintf(wanted, sizeof(wanted), "library=%s call=ssend rendezvous_from=%d",
			 libraries[i], EAGER);
		snprintf(what, sizeof(what), "%s ssend", libraries[i]);
		shape_count(a, what, shape_figure(r, "E1-messages", "wire_messages", wanted), 2,
			    ALMOST);
	}
}

static void rendezvous_is(struct shape_run *r, struct shape_answer *a,
			  const char *scheme, double expected)
{
	char wanted[120];

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		snprintf(wanted, sizeof(wanted), "library=%s call=send environment="
			 "UCX_RNDV_SCHEME=%s", libraries[i], scheme);
		shape_count(a, libraries[i],
			    shape_figure(r, "E1-messages", "wire_messages", wanted), expected,
			    ALMOST);
	}
}

static void rendezvous_by_read(struct shape_run *r, struct shape_answer *a)
{
	rendezvous_is(r, a, "get_zcopy", 3);
}

static void rendezvous_by_write(struct shape_run *r, struct shape_answer *a)
{
	rendezvous_is(r, a, "put_zcopy", 4);
}

static void collectives(struct shape_run *r, struct shape_answer *a)
{
	static const struct {
		const char *operation;
		int processes;
		double messages;
	} expected[] = {
		{ "barrier", 4, 8 }, { "barrier", 6, 18 }, { "barrier", 8, 24 },
		{ "reduce", 4, 3 }, { "reduce", 6, 5 }, { "reduce", 8, 7 },
		{ "allreduce", 4, 8 }, { "allreduce", 6, 12 }, { "allreduce", 8, 24 },
	};
	char wanted[100], what[60];

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		snprintf(wanted, sizeof(wanted), "library=openmpi operation=%s processes=%d",
			 expected[i].operation, expected[i].processes);
		snprintf(what, sizeof(what), "%s of %d", expected[i].operation,
			 expected[i].processes);
		shape_count(a, what, shape_figure(r, "E1-algorithms", "wire_messages", wanted),
			    expected[i].messages, ALMOST);
	}
}

static const struct shape_value *baseline_of(struct shape_run *r, const char *program)
{
	return shape_latency(r, "E2-latency", "t_lat", "p50", "program=%s size=8", program);
}

static void baseline(struct shape_run *r, struct shape_answer *a)
{
	const struct shape_value *send = baseline_of(r, "ib_send_lat");

	shape_compare(a, "SEND, WRITE", send, baseline_of(r, "ib_write_lat"), SHAPE_AT_MOST,
		      SAME);
	shape_compare(a, "READ, SEND", baseline_of(r, "ib_read_lat"), send, SHAPE_AT_MOST,
		      SAME);
}

static const struct shape_value *call_of(struct shape_run *r, const char *library,
					 const char *call, int limit)
{
	return shape_latency(r, "E3", "t_call", "p50",
			     "library=%s transport=adapter call=%s rendezvous_from=%d", library,
			     call, limit);
}

static const struct shape_value *lat_of(struct shape_run *r, const char *library, int limit)
{
	return shape_latency(r, "E3", "t_lat", "p50",
			     "library=%s transport=adapter call=send rendezvous_from=%d",
			     library, limit);
}

static void synchronous(struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		shape_compare(a, libraries[i], call_of(r, libraries[i], "send", EAGER),
			      call_of(r, libraries[i], "ssend", EAGER), SHAPE_ABOVE, 2);
}

static void early_return(struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		shape_compare(a, libraries[i], call_of(r, libraries[i], "isend", RENDEZVOUS),
			      call_of(r, libraries[i], "isend", EAGER), SHAPE_ABOVE, 1);
}

static void rendezvous_alike(struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		shape_compare(a, libraries[i], call_of(r, libraries[i], "send", RENDEZVOUS),
			      call_of(r, libraries[i], "ssend", RENDEZVOUS), SHAPE_ALIKE, SAME);
}

static void rendezvous_slower(struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		shape_compare(a, libraries[i], lat_of(r, libraries[i], EAGER),
			      lat_of(r, libraries[i], RENDEZVOUS), SHAPE_ABOVE, 1);
}

const struct shape shapes_tutorial[] = {
	{ "E1", "an eager message is one message of the adapter, a synchronous one two",
	  eager_is_one },
	{ "E1", "rendezvous by READ is three transfers", rendezvous_by_read },
	{ "E1", "rendezvous by WRITE is four transfers", rendezvous_by_write },
	{ "E1", "operations of all processes take as many messages as their algorithms say",
	  collectives },
	{ "E2", "WRITE is no slower than SEND, and SEND no slower than READ", baseline },
	{ "E3", "eager: Ssend takes far longer than Send (6.8 times there)", synchronous },
	{ "E3", "Isend returns earlier by rendezvous than eagerly (0.61 times there)",
	  early_return },
	{ "E3", "rendezvous: Send and Ssend take the same time", rendezvous_alike },
	{ "E3", "8192 bytes take longer by rendezvous than eagerly", rendezvous_slower },
	{ .claim = NULL },
};
