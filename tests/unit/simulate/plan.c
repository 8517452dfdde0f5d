/* SPDX-License-Identifier: BSD-2-Clause */
/* See plan.h. */
#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "carrier.h"
#include "world.h"

static const char *const names[PLAN_NODES] = { "s0", "s1", "s2", "w0", "w1",
					       "l0", "k0", "k1", "k2", "k3", "k4" };
static const enum plan_kind kinds[PLAN_NODES] = {
	PLAN_SOURCE, PLAN_SOURCE, PLAN_SOURCE, PLAN_WIRE, PLAN_WIRE, PLAN_LOOP,
	PLAN_SINK, PLAN_SINK, PLAN_SINK, PLAN_SINK, PLAN_SINK
};
static const char *const modes[] = { "plain", "hold", "refuse", "slow",
				     "stuck" };
static const char *const fulls[] = { "auto", "block", "drop_newest",
				     "drop_oldest" };
/* Hooks of a path. The last ones are for paths on which samples may be late. */
static const char *const hooks[] = {
	"", "hooks = ( { type = \"scale\"; scale = 1; offset = 0; signal = 0; } );",
	"hooks = ( { type = \"decimate\"; ratio = 3; } );",
	"hooks = ( { type = \"shift_seq\"; offset = 5; } );",
	"hooks = ( { type = \"reorder_ts\"; window_size = 5; } );",
};
#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))

/* The node that feeds each node in this run. Where the order of samples is checked, a node
 * keeps its feeder, also when the path between them is removed and added again: samples that
 * wait on a longer way arrive late, in an order that nobody promises. */
#define NOBODY PLAN_NODES
static unsigned feeders[PLAN_NODES];

static bool chance(unsigned percent)
{
	return world_draw(100) < percent;
}

static void make_node(struct plan_node *n)
{
	n->format = carrier_formats[world_draw(carrier_format_count)];
	n->mode = modes[n->kind == PLAN_SINK ? world_draw(5) : 0];
	n->vectorize = chance(60) ? 1 : 1 + world_draw(8);
	n->gap_ns = 5000 + world_draw(200) * 1000;
	n->limit = chance(70) ? 16000 : 20 + world_draw(200);
	n->room = 2 + world_draw(30);
	n->waits = chance(50);
	n->spins = n->waits && chance(50);
	n->hooked = chance(20);
}

/* A mask of the sources whose samples arrive at a node. */
static unsigned roots(const struct plan *p, unsigned node, unsigned depth)
{
	unsigned set = p->nodes[node].kind == PLAN_SOURCE ? 1u << node : 0;

	for (unsigned i = 0; depth && i < PLAN_PATHS; i++) {
		const struct plan_path *q = &p->paths[i];

		for (unsigned d = 0; q->used && d < q->out_count; d++)
			for (unsigned k = 0; q->out[d] == node && k < q->in_count;
			     k++)
				set |= roots(p, q->in[k], depth - 1);
	}
	return set;
}

/* Several sources; none of them twice, so that names of values differ. */
static void add_sources(struct plan *p, struct plan_path *q)
{
	unsigned most = p->strict || chance(50) ? 1 : 2 + world_draw(2);
	unsigned set = 0;

	for (unsigned tries = 0; tries < 12 && q->in_count < most; tries++) {
		unsigned n = world_draw(6), of = roots(p, n, 4);

		/* Only nodes with a lower index feed a node. */
		if (!of || of & set)
			continue;
		set |= of;
		q->in[q->in_count++] = n;
	}
	if (!q->in_count)
		q->in[q->in_count++] = world_draw(3);
}

static void add_destinations(struct plan *p, struct plan_path *q)
{
	unsigned most = chance(15) ? 0 : chance(70) ? 1 : 2, highest = 0;

	for (unsigned i = 0; i < q->in_count; i++)
		highest = q->in[i] > highest ? q->in[i] : highest;
	for (unsigned tries = 0; tries < 12 && q->out_count < most; tries++) {
		unsigned n = 3 + world_draw(PLAN_NODES - 3);

		if (n <= highest || p->taken[n])
			continue;
		if (p->strict && feeders[n] != NOBODY && feeders[n] != q->in[0])
			continue;
		feeders[n] = q->in[0];
		p->taken[n] = true;
		q->out[q->out_count++] = n;
	}
}

static void make_settings(const struct plan *p, struct plan_path *q)
{
	q->queuelen = chance(50) ? 1024 : 2 + world_draw(14);
	q->full = world_draw(4);
	q->hook = chance(50) ? 0 : world_draw(HOOKS);
	q->rate = p->strict || chance(70) ? 0 : 500 + world_draw(5000);
	q->poll = world_draw(3);
	q->all = chance(30);
	q->mask = chance(20);
}

static void make_path(struct plan *p, struct plan_path *q)
{
	*q = (struct plan_path){ .used = false };
	add_sources(p, q);
	add_destinations(p, q);
	make_settings(p, q);
	q->used = true;
}

void plan_make(struct plan *p)
{
	unsigned paths = 1 + world_draw(4);

	memset(p, 0, sizeof(*p));
	p->strict = chance(40);
	for (unsigned i = 0; i < PLAN_NODES; i++) {
		p->nodes[i].kind = kinds[i];
		p->nodes[i].name = names[i];
		feeders[i] = NOBODY;
		make_node(&p->nodes[i]);
	}
	for (unsigned i = 0; i < paths; i++)
		make_path(p, &p->paths[i]);
}

static void remove_path(struct plan *p, struct plan_path *q)
{
	for (unsigned d = 0; d < q->out_count; d++)
		p->taken[q->out[d]] = false;
	q->used = false;
}

/* Does each of several sources still get samples of its own? A path that fed one may have
 * been removed. */
static bool is_fed(const struct plan *p, const struct plan_path *q)
{
	unsigned set = 0;

	for (unsigned i = 0; i < q->in_count; i++) {
		unsigned of = roots(p, q->in[i], 4);

		if (q->in_count > 1 && (!of || of & set))
			return false;
		set |= of;
	}
	return true;
}

static void remove_unfed(struct plan *p)
{
	for (unsigned i = 0; i < PLAN_PATHS; i++) {
		if (!p->paths[i].used || is_fed(p, &p->paths[i]))
			continue;
		remove_path(p, &p->paths[i]);
		i = 0;
	}
}

void plan_change(struct plan *p)
{
	struct plan_path *q = &p->paths[world_draw(PLAN_PATHS)];

	switch (world_draw(6)) {
	case 0: /* nothing */
		break;
	case 1:
	case 2: /* exchange */
		make_node(&p->nodes[world_draw(PLAN_NODES)]);
		break;
	case 3:
		make_settings(p, q);
		break;
	default: /* adds or removes a path */
		if (q->used)
			remove_path(p, q);
		else
			make_path(p, q);
	}
	remove_unfed(p);
}

struct text {
	char *at, *end;
};

static void __attribute__((format(printf, 2, 3)))
add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, (size_t)(t->end - t->at), fmt, ap);
	va_end(ap);
	if (n < 0 || n >= t->end - t->at)
		world_fail("a configuration is too long");
	t->at += n;
}

static void print_node(struct text *t, const struct plan *p,
		       const struct plan_node *n)
{
	static const char *const types[] = { "sim.source", "sim.wire",
					     "loopback", "sim.sink" };

	add(t, "%s = { type = \"%s\"; vectorize = %u; ", n->name, types[n->kind],
	    n->vectorize);
	if (n->kind == PLAN_LOOP) {
		add(t, "queuelen = %u; full = \"%s\"; };\n", n->room,
		    n->waits ? "block" : "drop");
		return;
	}
	add(t, "format = \"%s\"; mode = \"%s\"; ", n->format, n->mode);
	if (n->kind != PLAN_SINK)
		add(t, "waits = %s; ", n->waits ? "true" : "false");
	if (n->kind == PLAN_SOURCE)
		add(t, "%sgap = %u; limit = %u; in = { signals = ( { name = \"%s_a\" }, { name = \"%s_b\" } ); %s };",
		    n->spins ? "spins = true; " : "", n->gap_ns, n->limit, n->name,
		    n->name,
		    n->hooked ? "hooks = ( { type = \"skip_first\"; samples = 3; } );" : "");
	if (n->kind == PLAN_WIRE)
		add(t, "room = %u; ", n->room);
	if (n->kind == PLAN_SINK)
		add(t, "strict = %s; out = { %s };", p->strict ? "true" : "false",
		    n->hooked ? "hooks = ( { type = \"decimate\"; ratio = 2; } );" : "");
	add(t, " };\n");
}

static void print_names(struct text *t, const struct plan *p, const unsigned *of,
			unsigned n)
{
	add(t, "( ");
	for (unsigned i = 0; i < n; i++)
		add(t, "%s\"%s\"", i ? ", " : "", p->nodes[of[i]].name);
	add(t, " )");
}

static void print_path(struct text *t, const struct plan *p,
		       const struct plan_path *q)
{
	add(t, "{ in = ");
	print_names(t, p, q->in, q->in_count);
	if (q->out_count) {
		add(t, "; out = ");
		print_names(t, p, q->out, q->out_count);
	}
	add(t, "; queuelen = %u; queue_full = \"%s\"; mode = \"%s\"; %s",
	    q->queuelen, fulls[q->full], q->all ? "all" : "any", hooks[q->hook]);
	if (q->rate)
		add(t, " rate = %u;", q->rate);
	if (q->poll)
		add(t, " poll = %s;", q->poll == 1 ? "true" : "false");
	if (q->mask)
		add(t, " mask = ( \"%s\" );", p->nodes[q->in[0]].name);
	add(t, " }");
}

void plan_print(const struct plan *p, char *buf)
{
	struct text t = { buf, buf + PLAN_TEXT };
	bool first = true;

	add(&t, "stats = 200.0; hugepages = 0; idle_stop = false; logging = { level = \"info\" };\nnodes = {\n");
	for (unsigned i = 0; i < PLAN_NODES; i++)
		print_node(&t, p, &p->nodes[i]);
	add(&t, "};\npaths = (\n");
	for (unsigned i = 0; i < PLAN_PATHS; i++) {
		if (!p->paths[i].used)
			continue;
		if (!first)
			add(&t, ",\n");
		first = false;
		print_path(&t, p, &p->paths[i]);
	}
	add(&t, "\n);\n");
}
