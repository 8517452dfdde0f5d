/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated network; see sim.h. All packets on their way are in one heap by the time
 * of their arrival; one that has come waits in its end's list until that polls.
 */
#include "transport/carrier/sim.h"

#include <errno.h>
#include <stdlib.h>

#include "transport/carrier/held.h"
#include "util/container_of.h"

#define SEND_BYTES (256u << 10)
#define RECEIVE_BYTES (1u << 20)
#define FLIGHT_BYTES (256u << 20)

struct end {
	struct carrier carrier;
	struct carrier_sim *sim;
	bool open, polling;
	struct impair_lane lane;
	uint64_t room_at_ns;  /* when emit had no room: there is some; else UINT64_MAX */
	struct held_packet *first, **last; /* that have come */
	size_t bytes;
	uint64_t delivered, overrun, parted, unreachable;
	uint64_t port_free_ns; /* the last packet has left the port to this end */
	uint64_t refused, marked, queued_most;
};

struct pair {
	unsigned a, b; /* a <= b */
};

struct carrier_sim {
	struct carrier_sim_params p;
	uint64_t now_ns;
	struct held flight;
	struct prng marks;
	struct pair *pairs;   /* that are parted */
	size_t pair_count, pair_room;
	struct end ends[];
};

static struct end *end_of(struct carrier *c)
{
	return container_of(c, struct end, carrier);
}

static unsigned number_of(const struct end *e)
{
	return (unsigned)(e - e->sim->ends);
}

/* ---- partitions ---- */

static size_t find_pair(const struct carrier_sim *sim, unsigned a, unsigned b)
{
	struct pair p = { MIN(a, b), MAX(a, b) };
	size_t i = 0;

	while (i < sim->pair_count &&
	       (sim->pairs[i].a != p.a || sim->pairs[i].b != p.b))
		i++;
	return i;
}

static bool is_parted(const struct carrier_sim *sim, unsigned a, unsigned b)
{
	return sim->pair_count && find_pair(sim, a, b) < sim->pair_count;
}

void carrier_sim_part(struct carrier_sim *sim, unsigned a, unsigned b, bool parted)
{
	size_t at = find_pair(sim, a, b);

	if (parted == (at < sim->pair_count))
		return;
	if (!parted) {
		sim->pairs[at] = sim->pairs[--sim->pair_count];
		return;
	}
	if (sim->pair_count == sim->pair_room) {
		size_t room = sim->pair_room ? 2 * sim->pair_room : 16;
		struct pair *pairs = realloc(sim->pairs, room * sizeof(struct pair));

		if (!pairs)
			abort(); /* a simulation that forgets is worth nothing */
		sim->pairs = pairs;
		sim->pair_room = room;
	}
	sim->pairs[sim->pair_count++] = (struct pair){ MIN(a, b), MAX(a, b) };
}

/* ---- emitting ---- */

static void fly(struct end *e, struct held_packet *packet, unsigned class,
		uint64_t due_ns, bool corrupt)
{
	if (corrupt)
		impair_corrupt(&e->lane, packet->data, packet->bytes);
	if (held_push(&e->sim->flight, packet, due_ns))
		return;
	e->lane.count[class].overflowed++;
	free(packet);
}

/* The time that `bytes` take on the link. */
static uint64_t link_ns(uint64_t rate_bps, size_t bytes)
{
	return (uint64_t)((unsigned __int128)bytes * 8 * 1000000000 / rate_bps);
}

/* May so much be added to what the rate has not let out? */
static bool has_room(struct end *e, uint64_t rate_bps, size_t bytes)
{
	uint64_t now = e->sim->now_ns, half;

	if (!rate_bps || e->lane.free_ns <= now ||
	    e->lane.free_ns - now + link_ns(rate_bps, bytes) <=
		    link_ns(rate_bps, e->sim->p.send_bytes))
		return true;
	half = link_ns(rate_bps, e->sim->p.send_bytes / 2);
	e->room_at_ns = e->lane.free_ns - now > half ? e->lane.free_ns - half : now;
	return false;
}

static int emit_packet(struct end *e, const struct carrier_unit *unit, size_t at,
		       size_t bytes, unsigned k)
{
	struct carrier_sim *sim = e->sim;
	struct held_packet *packet = held_copy(unit, at, bytes, k), *copy = NULL;
	struct impair_fate fate;
	unsigned class = 0;

	if (!packet) {
		e->room_at_ns = sim->now_ns;
		return -EAGAIN;
	}
	packet->unit.from = carrier_addr_of(number_of(e));
	packet->unit.known |= CARRIER_FROM;
	if (sim->p.classify)
		class = sim->p.classify(sim->p.classify_arg, &packet->unit);
	if (class >= IMPAIR_CLASSES)
		class = 0;
	if (!has_room(e, e->lane.params[class].rate_bps, bytes)) {
		free(packet);
		return -EAGAIN;
	}
	impair_decide(&e->lane, class, bytes, sim->now_ns, &fate);
	if (fate.copies &&
	    is_parted(sim, number_of(e), carrier_addr_number(&unit->to))) {
		e->parted++;
		fate.copies = 0;
	}
	if (fate.copies == 2)
		copy = held_double(packet);
	if (fate.copies)
		fly(e, packet, class, fate.copy[0].due_ns, fate.copy[0].corrupt);
	else
		free(packet);
	if (copy)
		fly(e, copy, class, fate.copy[1].due_ns, fate.copy[1].corrupt);
	return 0;
}

static int check_unit(const struct carrier_sim *sim, const struct carrier_unit *unit,
		      size_t bytes)
{
	size_t longest = unit->segment && unit->segment < bytes ? unit->segment : bytes;

	if (!bytes)
		return -EINVAL;
	if (longest > sim->p.packet_max)
		return -EMSGSIZE;
	return carrier_addr_number(&unit->to) < sim->p.ends ? 0 : -EHOSTUNREACH;
}

/* A train of which not all packets had room counts as taken; the rest is lost. */
static int emit_unit(struct end *e, const struct carrier_unit *unit)
{
	size_t bytes = carrier_unit_bytes(unit);
	int err = check_unit(e->sim, unit, bytes);
	unsigned packets;

	if (err)
		return err;
	packets = carrier_unit_packets(unit, bytes);
	for (unsigned k = 0; k < packets; k++) {
		err = emit_packet(e, unit, (size_t)k * unit->segment,
				  carrier_packet_bytes(unit, bytes, k), k);
		if (err && !k)
			return err;
		e->lane.count[0].overflowed += err != 0;
	}
	return 0;
}

static int sim_emit(struct carrier *c, const struct carrier_unit *units, unsigned n)
{
	struct end *e = end_of(c);

	for (unsigned i = 0; i < n; i++) {
		int err = emit_unit(e, &units[i]);

		if (err)
			return i ? (int)i : err;
	}
	return (int)n;
}

/* ---- the switch ---- */

enum { IN_NETWORK, BEHIND_PORT }; /* held_packet.stage */
#define ECN_BITS 3

static uint64_t queued_bytes(const struct carrier_sim *sim, const struct end *to)
{
	uint64_t wait = to->port_free_ns > sim->now_ns ? to->port_free_ns - sim->now_ns : 0;

	return (uint64_t)((unsigned __int128)wait * sim->p.port.rate_bps / 8000000000);
}

/* The packet leaves the port. */
static void mark(struct carrier_sim *sim, struct held_packet *packet)
{
	const struct carrier_sim_port *p = &sim->p.port;
	struct carrier_unit *u = &packet->unit;
	struct end *to = &sim->ends[carrier_addr_number(&u->to)];
	uint64_t queued = queued_bytes(sim, to);
	double chance = 1;

	if (queued <= p->mark_from || !(u->known & CARRIER_TOS) ||
	    !(u->tos & ECN_BITS))
		return;
	if (queued < p->mark_all)
		chance = p->mark_most * (double)(queued - p->mark_from) /
			 (double)(p->mark_all - p->mark_from);
	if (!prng_chance(&sim->marks, chance))
		return;
	u->tos |= ECN_BITS;
	to->marked++;
}

/* The packet has come to the port of its receiver, and waits there for its turn. */
static void queue_at_port(struct carrier_sim *sim, struct held_packet *packet)
{
	const struct carrier_sim_port *p = &sim->p.port;
	struct end *to = &sim->ends[carrier_addr_number(&packet->unit.to)];
	uint64_t queued = queued_bytes(sim, to), now = sim->now_ns;

	if (queued + packet->bytes > p->queue_bytes) {
		to->refused++;
		free(packet);
		return;
	}
	if (queued + packet->bytes > to->queued_most)
		to->queued_most = queued + packet->bytes;
	if (to->port_free_ns < now)
		to->port_free_ns = now;
	to->port_free_ns += link_ns(p->rate_bps, packet->bytes);
	packet->stage = BEHIND_PORT;
	if (!held_push(&sim->flight, packet, to->port_free_ns)) {
		to->refused++;
		free(packet);
	}
}

/* ---- arriving ---- */

/* False: it is lost. */
static bool arrive(struct carrier_sim *sim, struct held_packet *packet)
{
	struct end *from = &sim->ends[carrier_addr_number(&packet->unit.from)];
	struct end *to = &sim->ends[carrier_addr_number(&packet->unit.to)];

	if (!to->open) {
		from->unreachable++;
	} else if (is_parted(sim, number_of(from), number_of(to))) {
		from->parted++;
	} else if (to->bytes + packet->bytes > sim->p.receive_bytes) {
		to->overrun++;
	} else {
		packet->unit.when_ns = sim->now_ns;
		packet->unit.known |= CARRIER_WHEN;
		packet->next = NULL;
		*to->last = packet;
		to->last = &packet->next;
		to->bytes += packet->bytes;
		return true;
	}
	free(packet);
	return false;
}

uint64_t carrier_sim_next_ns(const struct carrier_sim *sim)
{
	return held_next_ns(&sim->flight);
}

int carrier_sim_next(struct carrier_sim *sim, uint64_t until_ns)
{
	struct held_packet *packet;

	while ((packet = held_pop(&sim->flight, until_ns))) {
		int end = (int)carrier_addr_number(&packet->unit.to);

		if (packet->due_ns > sim->now_ns)
			sim->now_ns = packet->due_ns;
		if (sim->p.port.rate_bps && packet->stage == IN_NETWORK) {
			queue_at_port(sim, packet);
			continue;
		}
		if (sim->p.port.mark_all)
			mark(sim, packet);
		if (arrive(sim, packet))
			return end;
	}
	if (until_ns > sim->now_ns && until_ns != UINT64_MAX)
		sim->now_ns = until_ns;
	return -1;
}

static struct held_packet *take_first(struct end *e)
{
	struct held_packet *packet = e->first;

	if (!packet)
		return NULL;
	e->first = packet->next;
	if (!e->first)
		e->last = &e->first;
	e->bytes -= packet->bytes;
	return packet;
}

static unsigned sim_poll(struct carrier *c, unsigned budget)
{
	struct end *e = end_of(c);
	struct held_packet *packet;
	unsigned n = 0;

	if (e->polling)
		return 0;
	e->polling = true;
	while (n < budget && (packet = take_first(e))) {
		carrier_deliver(c, &packet->unit);
		e->delivered++;
		free(packet);
		n++;
	}
	if (e->room_at_ns <= e->sim->now_ns) {
		e->room_at_ns = UINT64_MAX;
		carrier_writable(c);
	}
	e->polling = false;
	return n;
}

static uint64_t sim_next_ns(struct carrier *c)
{
	struct end *e = end_of(c);

	return e->first ? 0 : e->room_at_ns;
}

static void sim_close_end(struct carrier *c)
{
	struct end *e = end_of(c);
	struct held_packet *packet;

	while ((packet = take_first(e)))
		free(packet);
	e->open = false;
}

static const struct carrier_ops sim_ops = {
	.emit = sim_emit,
	.poll = sim_poll,
	.next_ns = sim_next_ns,
	.close = sim_close_end,
};

/* ---- the network ---- */

static void set_defaults(struct carrier_sim_params *p)
{
	if (!p->packet_max)
		p->packet_max = CARRIER_SIM_PACKET_MAX;
	if (!p->send_bytes)
		p->send_bytes = SEND_BYTES;
	if (!p->receive_bytes)
		p->receive_bytes = RECEIVE_BYTES;
	if (!p->flight_bytes)
		p->flight_bytes = FLIGHT_BYTES;
}

int carrier_sim_open(const struct carrier_sim_params *params, struct carrier_sim **out)
{
	struct prng seeds = prng_from(params->seed);
	struct carrier_sim *sim;

	if (!params->ends || params->ends > CARRIER_SIM_ENDS_MAX)
		return -EINVAL;
	sim = calloc(1, sizeof(*sim) + params->ends * sizeof(struct end));
	if (!sim)
		return -ENOMEM;
	sim->p = *params;
	set_defaults(&sim->p);
	sim->now_ns = params->start_ns;
	held_init(&sim->flight, sim->p.flight_bytes);
	for (unsigned i = 0; i < params->ends; i++) {
		struct end *e = &sim->ends[i];

		e->carrier.ops = &sim_ops;
		e->sim = sim;
		e->open = true;
		e->room_at_ns = UINT64_MAX;
		e->last = &e->first;
		impair_lane_init(&e->lane, prng_next(&seeds));
		impair_lane_set(&e->lane, IMPAIR_ALL_CLASSES, &params->link);
	}
	sim->marks = prng_from(prng_next(&seeds));
	*out = sim;
	return 0;
}

void carrier_sim_close(struct carrier_sim *sim)
{
	for (unsigned i = 0; i < sim->p.ends; i++)
		if (sim->ends[i].open)
			sim_close_end(&sim->ends[i].carrier);
	held_destroy(&sim->flight);
	free(sim->pairs);
	free(sim);
}

struct carrier *carrier_sim_end(struct carrier_sim *sim, unsigned end)
{
	return &sim->ends[end].carrier;
}

static uint64_t virtual_now_ns(void *arg)
{
	return ((const struct carrier_sim *)arg)->now_ns;
}

struct clock_source carrier_sim_clock(struct carrier_sim *sim)
{
	return (struct clock_source){ virtual_now_ns, sim };
}

void carrier_sim_impair(struct carrier_sim *sim, unsigned end, unsigned classes,
			const struct impair_params *link)
{
	impair_lane_set(&sim->ends[end].lane, classes, link);
}

void carrier_sim_count(const struct carrier_sim *sim, unsigned end,
		       struct carrier_sim_counters *out)
{
	const struct end *e = &sim->ends[end];

	*out = (struct carrier_sim_counters){
		.delivered = e->delivered, .overrun = e->overrun, .parted = e->parted,
		.unreachable = e->unreachable, .refused = e->refused,
		.marked = e->marked, .queued_most = e->queued_most,
	};
	for (unsigned i = 0; i < IMPAIR_CLASSES; i++) {
		const struct impair_counters *c = &e->lane.count[i];

		out->sent.packets += c->packets;
		out->sent.lost += c->lost;
		out->sent.duplicated += c->duplicated;
		out->sent.reordered += c->reordered;
		out->sent.corrupted += c->corrupted;
		out->sent.cut += c->cut;
		out->sent.overflowed += c->overflowed;
	}
}
