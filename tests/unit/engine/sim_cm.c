/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections over a network that loses, doubles, delays and reorders messages:
 * two hosts, ten thousand handshakes, all from one random number, which is
 * printed and may be given as the first argument. Applications accept, refuse,
 * take long, disconnect, give up, vanish; a host restarts, or dies for good.
 *
 * What must hold: both sides agree or both failed, each event comes once and in
 * a legal order, no machine waits without a deadline, and every machine ends within the
 * time that its repetitions and waits add up to.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cm/machine.h"
#include "engine/cm/table.h"
#include "util/container_of.h"
#include "wire/cm_answer.h"

#define WORLDS 5000
#define PAIRS 2
#define CONNS (PAIRS * 4)
#define FLYING_MAX 256
#define MSEC UINT64_C(1000000)
#define DELAY_MAX_NS (2 * MSEC)
#define RESPONSE_CODE 12 /* 16.8 ms */
#define ACK_CODE 10      /* 4.2 ms, both ways */
#define END_NS (600 * 1000 * MSEC)
/* No single wait is longer: an MRA's service time, all repetitions, the time-wait. With a
 * dead peer at most one of each kind follows the other. */
#define DEAD_NS (3 * 1000 * MSEC)
#define SERVICE 0x01061000

#define TRACE(...)                                                            \
	do {                                                                 \
		if (tracing)                                                 \
			printf(__VA_ARGS__);                                 \
	} while (0)
#define CHECK(what)                                                          \
	do {                                                                 \
		if (!(what)) {                                               \
			fprintf(stderr, "%s:%d: seed %u world %u: %s\n",     \
				__FILE__, __LINE__, first_seed, world_number, \
				#what);                                      \
			exit(1);                                             \
		}                                                            \
	} while (0)

struct packet {
	uint64_t at_ns;
	unsigned to;
	uint8_t bytes[CM_MAD_SIZE];
};

/* One end of a connection, with its application. */
struct end {
	struct cm_machine m;
	struct cm_entry entry;
	bool used, gone; /* gone: its host restarted */
	unsigned host, pair;
	bool requested, answered, up, ended, rested; /* what was reported */
	int end_event, end_status;
	enum cm_input wish;      /* next request of the application; at wish_ns, if not 0 */
	uint64_t wish_ns;
};

static unsigned first_seed, seed, world_number;
static struct cm_table tables[2];
static struct end ends[CONNS];
static struct packet flying[FLYING_MAX];
static unsigned flying_count;
static uint64_t now_ns;
static bool listens[2];
static bool dead[2];      /* the host is gone: packets to it vanish */
static unsigned counts[CM_APR + 1], ups, meetings, stales, delayed, partings, widows;

/* CM_SIM_TRACE=world: prints what happens in that run. */
static bool tracing;

static unsigned pick(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static uint64_t within(uint64_t ns)
{
	return ((uint64_t)rand_r(&seed) << 31 | (uint64_t)rand_r(&seed)) % ns;
}

static void fly(unsigned to, const struct cm_mad *mad)
{
	unsigned copies = pick(5) == 0 ? 0 : pick(10) == 0 ? 2 : 1;

	counts[mad->type]++;
	TRACE("%9.3f host %u sends %s %s\n", (double)now_ns / 1e6, !to,
	      wire_cm_name(mad->type), copies == 0 ? "lost" :
	      copies == 2 ? "twice" : "");
	for (; copies > 0; copies--) {
		struct packet *p = &flying[flying_count++];

		CHECK(flying_count < FLYING_MAX);
		CHECK(wire_cm_encode(mad, p->bytes) == 0);
		p->to = to;
		p->at_ns = now_ns + 1 + within(DELAY_MAX_NS);
	}
}

static struct end *end_new(unsigned host, unsigned pair)
{
	for (unsigned i = 0; i < CONNS; i++) {
		struct end *e = &ends[i];

		if (e->used)
			continue;
		memset(e, 0, sizeof(*e));
		e->used = true;
		e->host = host;
		e->pair = pair;
		cm_machine_init(&e->m, (uint32_t)rand_r(&seed));
		cm_machine_pace(&e->m, RESPONSE_CODE, 15, ACK_CODE);
		cm_entry_init(&e->entry);
		return e;
	}
	CHECK(!"room for another end");
	return NULL;
}

static void wish(struct end *e, enum cm_input what, uint64_t in_ns)
{
	e->wish = what;
	e->wish_ns = now_ns + 1 + within(in_ns);
}

/* Chooses what the application of this end does when it is connected. */
static void live(struct end *e)
{
	e->up = true;
	ups++;
	wish(e, pick(4) ? CM_DO_DISCONNECT : pick(4) ? CM_DO_LOAD_PATH :
						       CM_DO_DESTROY,
	     pick(2) ? 5 * MSEC : 100 * MSEC);
	/* In half of the cases only the other end acts. */
	if (pick(2))
		e->wish_ns = 0;
}

static void on_request(struct end *e)
{
	unsigned what = pick(20);

	CHECK(!e->requested && !e->answered && !e->up && !e->ended);
	e->requested = true;
	if (what == 0)
		return; /* forgets it */
	wish(e, what == 1 ? CM_DO_DESTROY : what < 4 ? CM_DO_REJECT :
						       CM_DO_ACCEPT,
	     pick(4) ? 10 * MSEC : 800 * MSEC);
	delayed += e->wish_ns > now_ns + 300 * MSEC;
}

static void on_event(struct end *e, const struct cm_output *out)
{
	CHECK(!e->gone && !e->m.orphan);
	switch (out->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		on_request(e);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		CHECK(!e->answered && !e->up && !e->ended && !e->requested);
		e->answered = true;
		wish(e, pick(12) ? CM_DO_ESTABLISH : pick(2) ? CM_DO_REJECT :
							       CM_DO_DESTROY,
		     pick(4) ? 10 * MSEC : 800 * MSEC);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		CHECK(!e->up && !e->ended);
		live(e);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		CHECK(e->ended && !e->rested);
		e->rested = true;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		CHECK(e->requested || e->up);
		/* fall through */
	default:
		CHECK(!e->ended);
		CHECK(out->event == RDMA_CM_EVENT_DISCONNECTED ||
		      out->event == RDMA_CM_EVENT_REJECTED ||
		      out->event == RDMA_CM_EVENT_UNREACHABLE ||
		      out->event == RDMA_CM_EVENT_CONNECT_ERROR);
		CHECK(out->event == RDMA_CM_EVENT_DISCONNECTED || out->status);
		/* An end that was connected reports DISCONNECTED and nothing else. */
		CHECK(!e->up || out->event == RDMA_CM_EVENT_DISCONNECTED);
		e->ended = true;
		e->end_event = out->event;
		e->end_status = out->status;
		wish(e, CM_DO_DESTROY, pick(2) ? MSEC : 50 * MSEC);
		break;
	}
}

static void check_deadline(const struct end *e)
{
	switch (e->m.state) {
	case CM_IDLE:
	case CM_LISTEN:
	case CM_ESTABLISHED:
		break;
	case CM_DONE:
		CHECK(!e->m.deadline_ns);
		break;
	default:
		CHECK(e->m.deadline_ns > now_ns);
		break;
	}
}

static void took(struct end *e, const struct cm_output *out)
{
	if (out->send)
		fly(!e->host, &out->mad);
	TRACE("%9.3f end %d on host %u: %s", (double)now_ns / 1e6,
	      (int)(e - ends), e->host, cm_state_name(e->m.state));
	TRACE(", event %d status %d\n", out->report ? out->event : -1,
	      out->status);
	if (out->report)
		on_event(e, out);
	cm_table_update(&tables[e->host], &e->entry, 0, &e->m);
	check_deadline(e);
}

static int ask(struct end *e, enum cm_input what, const struct cm_mad *message)
{
	struct cm_output out;
	int ret = cm_machine_ask(&e->m, what, message, now_ns, &out);

	if (!ret)
		took(e, &out);
	return ret;
}

static void call(unsigned host, unsigned pair, uint32_t qpn, bool peer_to_peer)
{
	struct end *e = end_new(host, pair);
	struct cm_mad req = {
		.type = CM_REQ,
		.tid = (uint64_t)rand_r(&seed) << 8,
		.req = {
			.service_id = SERVICE + (peer_to_peer ? 1 : 0),
			.local_ca_guid = pick(4) ? 100 + host : 100,
			.local_qpn = qpn,
			.remote_response_timeout = RESPONSE_CODE,
			.local_response_timeout = RESPONSE_CODE,
			.max_cm_retries = 15,
			.path_mtu = 5,
			.primary.local_ack_timeout = ACK_CODE,
		},
	};

	e->m.peer_to_peer = peer_to_peer;
	CHECK(ask(e, CM_DO_CONNECT, &req) == 0);
	if (pick(12) == 0)
		wish(e, CM_DO_DESTROY, 30 * MSEC);
}

static void look_up(unsigned host, unsigned pair)
{
	struct end *e = end_new(host, pair);
	struct cm_mad req = { .type = CM_SIDR_REQ, .tid = 5,
			      .sidr_req.service_id = SERVICE };

	CHECK(ask(e, CM_DO_LOOKUP, &req) == 0);
}

/* Number of ends that are connected, in their own view, to this one. */
static unsigned partners_of(const struct end *e)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CONNS; i++) {
		const struct cm_machine *o = &ends[i].m;

		count += ends[i].used && o->state == CM_ESTABLISHED &&
			 o->local_comm_id == e->m.remote_comm_id &&
			 o->remote_comm_id == e->m.local_comm_id &&
			 o->local_qpn == e->m.remote_qpn &&
			 o->remote_qpn == e->m.local_qpn;
	}
	return count;
}

/* ---- applications ---- */

static void act(struct end *e)
{
	struct cm_mad message = { .type = CM_REP, .rep.target_ack_delay = 5 };
	enum cm_input what = e->wish;
	bool datagram = e->m.state == CM_SIDR_REQ_RCVD;
	int ret;

	e->wish_ns = 0;
	if (what == CM_DO_ACCEPT && datagram)
		message.type = CM_SIDR_REP;
	else
		message.rep.local_qpn = 0x800 + e->pair;
	if (what == CM_DO_LOAD_PATH) {
		message = (struct cm_mad){
			.type = CM_LAP,
			.lap.remote_response_timeout = RESPONSE_CODE,
		};
		wish(e, CM_DO_DISCONNECT, 30 * MSEC);
	}
	/* Data can come before the RTU only from an end that is connected. */
	if (what == CM_DO_NOTIFY && !partners_of(e))
		return;
	TRACE("%9.3f end %d: %s\n", (double)now_ns / 1e6, (int)(e - ends),
	      cm_input_name(what));
	ret = ask(e, what, what == CM_DO_DESTROY ? NULL : &message);
	/* Errors: the connection has ended, which was or will be reported. */
	CHECK(ret == 0 || ret == -EALREADY || ret == -ECONNRESET ||
	      (ret == -EINVAL &&
	       (e->ended || e->up || e->m.state == CM_DONE)) ||
	      (ret == -EISCONN && what == CM_DO_NOTIFY) || ret == -EBUSY);
	if (!ret && what == CM_DO_ESTABLISH)
		live(e);
	if (!ret && what == CM_DO_REJECT)
		wish(e, CM_DO_DESTROY, MSEC);
	if (!ret && what == CM_DO_ACCEPT && !datagram && pick(6) == 0)
		wish(e, pick(3) ? CM_DO_NOTIFY : CM_DO_DESTROY, 10 * MSEC);
}

/* ---- hosts ---- */

static void answer(unsigned host, const struct cm_mad *mad, int reason)
{
	struct cm_mad reply;

	if (!(reason ? wire_cm_refusal(mad, reason, &reply) :
		       wire_cm_stray_answer(mad, &reply)))
		fly(!host, &reply);
}

/* Delivers in a carrier's order: existing ends, stale ones, the listener, no one. */
static void receive(unsigned host, const struct cm_mad *mad)
{
	struct cm_entry *entry = cm_table_find(&tables[host], 0, mad);
	struct end *e = entry ? container_of(entry, struct end, entry) : NULL;
	struct cm_output out;
	int ret;

	if (dead[host])
		return;
	if (e) {
		/* Both sides disconnect at the same time. */
		partings += e->m.state == CM_DREQ_SENT && mad->type == CM_DREQ;
		bool met = e->m.state == CM_REQ_SENT && mad->type == CM_REQ;

		ret = cm_machine_receive(&e->m, mad, now_ns, &out);
		meetings += met && !ret;
		if (!ret)
			took(e, &out);
		else if (ret == -ENOENT)
			answer(host, mad, 0);
		return;
	}
	if (mad->type != CM_REQ && mad->type != CM_SIDR_REQ) {
		answer(host, mad, 0);
		return;
	}
	entry = mad->type == CM_REQ ?
			cm_table_find_stale(&tables[host], 0, mad) : NULL;
	if (entry) {
		stales++;
		CHECK(ask(container_of(entry, struct end, entry), CM_GOT_STALE,
			  NULL) == 0);
		answer(host, mad, CM_REASON_STALE_CONNECTION);
		return;
	}
	if (!listens[host] ||
	    (mad->type == CM_REQ && mad->req.service_id != SERVICE)) {
		answer(host, mad, CM_REASON_INVALID_SERVICE_ID);
		return;
	}
	e = end_new(host, mad->type == CM_REQ ? mad->req.local_qpn & 0xff : 0);
	CHECK(cm_machine_receive(&e->m, mad, now_ns, &out) == 0);
	took(e, &out);
}

/* The host restarts: its ends vanish without a message. */
static void restart(unsigned host)
{
	for (unsigned i = 0; i < CONNS; i++) {
		struct end *e = &ends[i];

		if (!e->used || e->host != host || e->gone)
			continue;
		cm_table_remove(&e->entry);
		e->gone = true;
		e->wish_ns = 0;
		e->m.state = CM_DONE;
		e->m.deadline_ns = 0;
	}
}

/* ---- the world ---- */

/* Carries out the next event; false: there is none. */
static bool step(void)
{
	struct packet *next = NULL;
	struct end *who = NULL;
	uint64_t at = UINT64_MAX;
	struct cm_output out;
	struct packet p;
	struct cm_mad mad;

	for (unsigned i = 0; i < flying_count; i++)
		if (flying[i].at_ns < at)
			at = (next = &flying[i])->at_ns;
	for (unsigned i = 0; i < CONNS; i++) {
		struct end *e = &ends[i];

		if (e->used && e->m.deadline_ns && e->m.deadline_ns < at)
			at = (who = e)->m.deadline_ns;
		if (e->used && e->wish_ns && e->wish_ns < at)
			at = (who = e)->wish_ns;
	}
	if (at == UINT64_MAX)
		return false;
	CHECK(at >= now_ns && at < END_NS);
	now_ns = at;
	if (!who) {
		p = *next;
		*next = flying[--flying_count];
		CHECK(wire_cm_decode(p.bytes, CM_MAD_SIZE, &mad) == 0);
		receive(p.to, &mad);
	} else if (who->wish_ns == at) {
		act(who);
	} else {
		CHECK(cm_machine_tick(&who->m, now_ns, &out) == 0);
		took(who, &out);
	}
	return true;
}

/* At the end each connected end has a peer that is connected with the same numbers. */
static void check_agreement(void)
{
	for (unsigned i = 0; i < CONNS; i++) {
		struct end *e = &ends[i];

		if (!e->used || e->m.state == CM_DONE)
			continue;
		CHECK(e->m.state == CM_ESTABLISHED && e->up);
		CHECK(partners_of(e) == 1);
	}
}

static void world_open(void)
{
	memset(ends, 0, sizeof(ends));
	cm_table_init(&tables[0]);
	cm_table_init(&tables[1]);
	now_ns = flying_count = 0;
	dead[0] = dead[1] = false;
	listens[0] = true;
	listens[1] = pick(20) != 0;
}

static void world_close(void)
{
	for (unsigned i = 0; i < CONNS; i++)
		if (ends[i].used && ends[i].m.state != CM_DONE)
			wish(&ends[i], CM_DO_DISCONNECT, MSEC);
	while (step())
		;
	for (unsigned i = 0; i < CONNS; i++)
		CHECK(!ends[i].used || ends[i].m.state == CM_DONE);
}

static void connections_agree_or_fail_on_both_sides(void)
{
	world_open();
	for (unsigned i = 0; i < PAIRS; i++) {
		switch (pick(8)) {
	case 0: /* both call at the same time; one becomes passive */
			call(0, i, 0x100 + i, true);
			call(1, i, 0x200 + i, true);
			break;
		case 1:
			look_up(pick(2), i);
			break;
		default:
			call(pick(2), i, 0x300 + i, false);
			break;
		}
	}
	while (step())
		;
	check_agreement();
	world_close();
}

/* The restarted host requests a connection with the QP number that it had before. */
static void a_restarted_host_is_let_in_again(void)
{
	unsigned host = pick(2);
	unsigned survivors = 0;
	uint64_t when;

	world_open();
	listens[1] = true;
	call(host, 0, 0x300, false);
	when = within(60 * MSEC);
	while (now_ns < when && step())
		;
	restart(host);
	call(host, 0, 0x300, false);
	while (step())
		;
	/* The other end may not know of the restart yet; when it does, nothing is left
	 * of the first connection. */
	for (unsigned i = 0; i < CONNS; i++)
		survivors += ends[i].used && ends[i].host != host &&
			     ends[i].m.state == CM_ESTABLISHED;
	for (unsigned i = 0; i < CONNS; i++)
		if (ends[i].used && ends[i].host == host && ends[i].up &&
		    ends[i].m.state == CM_ESTABLISHED)
			CHECK(partners_of(&ends[i]) == 1 && survivors == 1);
	world_close();
}

/*
 * The host is gone for good, at any time. The other side's ends fail or, if they were
 * connected and do nothing, stay so until their program disconnects, which succeeds.
 */
static void ends_whose_peer_died_end_in_time(void)
{
	unsigned host = pick(2);
	uint64_t when;

	world_open();
	listens[1] = true;
	for (unsigned i = 0; i < PAIRS; i++)
		call(pick(2), i, 0x300 + i, false);
	when = within(60 * MSEC);
	while (now_ns < when && step())
		;
	restart(host);
	dead[host] = true;
	when = now_ns;
	while (step())
		;
	CHECK(now_ns - when < DEAD_NS);
	for (unsigned i = 0; i < CONNS; i++) {
		struct end *e = &ends[i];

		if (!e->used || e->gone || e->m.state == CM_DONE)
			continue;
		CHECK(e->m.state == CM_ESTABLISHED && e->up && !e->ended);
		widows++;
		e->wish_ns = 0;
		wish(e, CM_DO_DISCONNECT, MSEC);
	}
	when = now_ns;
	while (step())
		;
	CHECK(now_ns - when < DEAD_NS);
	for (unsigned i = 0; i < CONNS; i++)
		CHECK(!ends[i].used || ends[i].gone ||
		      (ends[i].m.state == CM_DONE &&
		       (ends[i].ended || ends[i].m.orphan || !ends[i].up)));
}

int main(int argc, char **argv)
{
	const char *traced = getenv("CM_SIM_TRACE");

	first_seed = seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 1;
	printf("seed %u\n", seed);
	for (world_number = 0; world_number < WORLDS; world_number++) {
		tracing = traced && world_number == strtoul(traced, NULL, 0);
		if (world_number % 8 == 7)
			a_restarted_host_is_let_in_again();
		else if (world_number % 8 == 3)
			ends_whose_peer_died_end_in_time();
		else
			connections_agree_or_fail_on_both_sides();
	}
	/* All kinds of messages were sent. */
	for (int type = CM_REQ; type <= CM_APR; type++) {
		printf("%s %u\n", wire_cm_name((enum cm_type)type), counts[type]);
		CHECK(counts[type] > 50);
	}
	printf("ends connected %u, callers that met %u, stale %u, slow %u\n", ups,
	       meetings, stales, delayed);
	printf("disconnects that met %u, connected ends whose peer died %u\n", partings,
	       widows);
	CHECK(ups > WORLDS && meetings > 100 && stales > 20 && delayed > 100);
	CHECK(partings > 100 && widows > 50);
	return 0;
}
