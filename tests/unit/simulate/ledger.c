/* SPDX-License-Identifier: BSD-2-Clause */
/* See ledger.h. */
#include "ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/path/path.h"
#include "gateway/plugin/node_life.h"
#include "parts.h"
#include "world.h"

#define SOURCES_MAX 8
#define VECTORIZE_MAX 8u  /* of plan.c */
#define PATHS_MAX 64
#define NODES_MAX 64

struct ledger ledger;

struct path_page {
	const struct path *path;
	uint64_t fed[SOURCES_MAX];       /* samples for each source */
	uint64_t arrived[SOURCES_MAX];   /* that were taken out of its queue, if any */
	uint64_t slack[SOURCES_MAX];     /* of a source that another path reads for:
					  * what was under way when it joined
					  * or left that reader */
	bool fresh[SOURCES_MAX];         /* as in the register, mode `all` */
	uint64_t outputs;                /* number that must be made */
	uint64_t absorbed;
	uint64_t hooked;                 /* dropped by its hooks */
};

struct node_page {
	const struct node *node;
	uint64_t offered;                /* by paths */
	uint64_t hooked;                 /* dropped by its `out` hooks */
	uint64_t read;
};

static struct path_page path_pages[PATHS_MAX];
static struct node_page node_pages[NODES_MAX];
static _Thread_local struct path_source *reading;

int __real_node_read(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release);
unsigned __real_hook_list_process(struct hook_list *l, struct sample *smps[],
				  unsigned cnt);
unsigned __real_hook_list_flush(struct hook_list *l, struct sample *smps[],
				unsigned cnt);
void __real_path_emit(struct path *p, struct sample *smps[], unsigned cnt);
void __real_path_register_put(struct path *p, struct path_source *s,
			      struct sample *smps[], unsigned cnt);
void __real_path_resend(struct path *p);
void __real_path_destroy(struct path *p);
void __real_node_destroy(struct node *n);

int __wrap_node_read(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release);
unsigned __wrap_hook_list_process(struct hook_list *l, struct sample *smps[],
				  unsigned cnt);
unsigned __wrap_hook_list_flush(struct hook_list *l, struct sample *smps[],
				unsigned cnt);
void __wrap_path_emit(struct path *p, struct sample *smps[], unsigned cnt);
void __wrap_path_register_put(struct path *p, struct path_source *s,
			      struct sample *smps[], unsigned cnt);
void __wrap_path_resend(struct path *p);
void __wrap_path_destroy(struct path *p);
void __wrap_node_destroy(struct node *n);

static struct path_page *page_of(const struct path *p)
{
	struct path_page *free_page = NULL;

	for (unsigned i = 0; i < PATHS_MAX; i++) {
		if (path_pages[i].path == p)
			return &path_pages[i];
		if (!path_pages[i].path && !free_page)
			free_page = &path_pages[i];
	}
	if (!free_page || p->source_count > SOURCES_MAX)
		world_fail("the account is full");
	*free_page = (struct path_page){ .path = p };
	return free_page;
}

static struct node_page *node_page_of(const struct node *n)
{
	struct node_page *free_page = NULL;

	for (unsigned i = 0; i < NODES_MAX; i++) {
		if (node_pages[i].node == n)
			return &node_pages[i];
		if (!node_pages[i].node && !free_page)
			free_page = &node_pages[i];
	}
	if (!free_page)
		world_fail("the account is full");
	*free_page = (struct node_page){ .node = n };
	return free_page;
}

/* A node gets samples of the reading path's pool to fill. */
int __wrap_node_read(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release)
{
	struct path_source *s = container_of(smps[0]->pool, struct path_source,
					     pool);
	int ret;

	if (s->node != n)
		world_fail("node %s is read into a pool that is not its own",
			   n->name);
	reading = s;
	page_of(s->path);
	ret = __real_node_read(n, smps, cnt, release);
	/* Meanwhile it may have run the turn of another path, which read its own source. */
	reading = s;
	/* A reader may poll for as long as other threads can do something. */
	if (ret <= 0)
		world_turn();
	if (ret > 0) {
		node_page_of(n)->read += (unsigned)ret;
		ledger.handed += (unsigned)ret;
	}
	return ret;
}

static void fed(struct path_source *s, unsigned cnt)
{
	const struct path_share *share = atomic_load(&s->share);

	page_of(s->path)->fed[s - s->path->sources] += cnt;
	for (unsigned k = 0; share && k < share->count; k++) {
		const struct path_source *other = share->sources[k];
		struct path_page *page = page_of(other->path);
		unsigned i = (unsigned)(other - other->path->sources);

		page->fed[i] += cnt;
		page->slack[i] = MAX(page->slack[i], s->vectorize);
	}
}

/* The source that reads the node with these hooks: the one that this thread has read last
 * is preferred, if it still exists. */
static struct path_source *reader_of(const struct hook_list *l)
{
	struct path_source *other = NULL;

	for (unsigned i = 0; i < PATHS_MAX; i++) {
		const struct path *p = path_pages[i].path;

		for (unsigned k = 0; p && k < p->source_count; k++) {
			struct path_source *s = &p->sources[k];

			if (l != s->node->in.hooks || s->primary)
				continue;
			if (s == reading)
				return s;
			other = s;
		}
	}
	return other;
}

/* Counts samples that hooks dropped; the list tells whose hooks they are. `dropped` may
 * be below zero: samples that were kept before came out. */
static void hooked(struct hook_list *l, uint64_t dropped, unsigned kept)
{
	struct path_source *s = l ? reader_of(l) : NULL;

	if (!l)
		return;
	if (s) {
		ledger.hooks += dropped;
		fed(s, kept);
		return;
	}
	for (unsigned i = 0; i < PATHS_MAX; i++) {
		const struct path *p = path_pages[i].path;

		if (!p)
			continue;
		if (l == p->hooks) {
			path_pages[i].hooked += dropped;
			return;
		}
		for (unsigned d = 0; d < p->destination_count; d++) {
			if (l != p->destinations[d].node->out.hooks)
				continue;
			node_page_of(p->destinations[d].node)->hooked += dropped;
			return;
		}
	}
	if (dropped || kept)
		world_fail("hooks of nobody drop or give samples");
}

unsigned __wrap_hook_list_process(struct hook_list *l, struct sample *smps[],
				  unsigned cnt)
{
	unsigned kept = __real_hook_list_process(l, smps, cnt);

	hooked(l, (uint64_t)cnt - kept, kept);
	return kept;
}

unsigned __wrap_hook_list_flush(struct hook_list *l, struct sample *smps[],
				unsigned cnt)
{
	unsigned kept = __real_hook_list_flush(l, smps, cnt);

	if (kept)
		hooked(l, (uint64_t)0 - kept, kept);
	return kept;
}

void __wrap_path_emit(struct path *p, struct sample *smps[], unsigned cnt)
{
	struct path_page *page = page_of(p);

	page->arrived[0] += cnt;
	page->outputs += cnt;
	__real_path_emit(p, smps, cnt);
}

/* Number of outputs for one sample of source `i`, by the rules of the manual page. */
static unsigned due(struct path_page *page, unsigned i)
{
	const struct path *p = page->path;

	if (!p->sources[i].triggers)
		return 0;
	if (p->mode == PATH_ANY)
		return 1;
	page->fresh[i] = true;
	for (unsigned k = 0; k < p->source_count; k++)
		if (p->sources[k].triggers && !page->fresh[k])
			return 0;
	memset(page->fresh, 0, sizeof(page->fresh));
	return 1;
}

void __wrap_path_register_put(struct path *p, struct path_source *s,
			      struct sample *smps[], unsigned cnt)
{
	struct path_page *page = page_of(p);

	page->arrived[s - p->sources] += cnt;
	for (unsigned i = 0; i < cnt; i++) {
		unsigned n = due(page, (unsigned)(s - p->sources));

		page->outputs += n;
		page->absorbed += 1 - n;
	}
	__real_path_register_put(p, s, smps, cnt);
}

void __wrap_path_resend(struct path *p)
{
	struct path_page *page = page_of(p);

	page->outputs += p->last_valid;
	__real_path_resend(p);
}

static void close_path_page(struct path_page *page)
{
	const struct path *p = page->path;
	uint64_t out = p->forwarded + p->discarded + p->unmade + page->hooked;
	uint64_t in = page->outputs, slack = 0;

	for (unsigned i = 0; i < p->source_count; i++) {
		const struct path_source *s = &p->sources[i];
		uint64_t left = page->arrived[i] + s->overruns;
		/* It may have joined while samples of a read were being handed on. */
		uint64_t most = MAX(page->slack[i], s->late ? VECTORIZE_MAX : 0);

		if (left > page->fed[i] + most)
			world_fail("path %s: %" PRIu64 " samples of %s came, and it got %" PRIu64 " and counts %" PRIu64 " as dropped by queue_full",
				   p->name, page->fed[i], s->node->name,
				   page->arrived[i], s->overruns);
		/* The other samples were in its queue at the end. */
		in += page->fed[i] - left;
		slack += most;
		ledger.queue_full += s->overruns;
	}
	/* A path that joined may have got more than was counted: modulo 2^64. */
	if (in - out + slack > 2 * slack)
		world_fail("path %s: %" PRIu64 " outputs are due and %" PRIu64 " samples were left in queues, %" PRIu64 " were forwarded, %" PRIu64 " discarded, %" PRIu64 " not made, %" PRIu64 " dropped by hooks",
			   p->name, page->outputs, in - page->outputs,
			   p->forwarded, p->discarded, p->unmade, page->hooked);
	ledger.rested += p->discarded;
	ledger.unmade += p->unmade;
	ledger.hooks += page->hooked;
	ledger.absorbed += page->absorbed;
	for (unsigned d = 0; d < p->destination_count; d++)
		node_page_of(p->destinations[d].node)->offered += p->forwarded;
	if (!p->destination_count)
		ledger.no_destination += p->forwarded;
	page->path = NULL;
}

void __wrap_path_destroy(struct path *p)
{
	for (unsigned i = 0; p && i < PATHS_MAX; i++)
		if (path_pages[i].path == p)
			close_path_page(&path_pages[i]);
	__real_path_destroy(p);
}

static void close_node_page(struct node_page *page)
{
	const struct node *n = page->node;
	const struct node_counters *k = &n->counters;
	bool loops = n->type->flags & NODE_LOOPS;
	uint64_t inside = 0;

	if (page->read != k->received)
		world_fail("node %s: %" PRIu64 " samples read, %" PRIu64 " counted",
			   n->name, page->read, k->received);
	if (page->offered != page->hooked + k->sent + k->not_sent)
		world_fail("node %s: of %" PRIu64 " samples that paths forwarded to it %" PRIu64 " were sent, %" PRIu64 " counted as not sent, %" PRIu64 " dropped by hooks",
			   n->name, page->offered, k->sent, k->not_sent,
			   page->hooked);
	if (n->type == &parts_sink && parts_noted(n) != k->sent)
		world_fail("node %s: %" PRIu64 " samples sent, %" PRIu64 " came",
			   n->name, k->sent, parts_noted(n));
	if (n->type == &parts_wire) {
		inside = parts_inside(n) + parts_lost(n);
		ledger.peer += inside;
	}
	/* The samples in a loopback when it is stopped. */
	if (n->type != &parts_wire && loops && k->sent >= k->received) {
		inside = k->sent - k->received;
		ledger.stopped += inside;
	}
	if (loops && k->sent != k->received + inside)
		world_fail("node %s: %" PRIu64 " samples went in, %" PRIu64 " came out, %" PRIu64 " are counted as lost",
			   n->name, k->sent, k->received, inside);
	ledger.hooks += page->hooked;
	ledger.delivered += k->sent;
	ledger.not_sent += k->not_sent;
	page->node = NULL;
}

void __wrap_node_destroy(struct node *n)
{
	for (unsigned i = 0; n && i < NODES_MAX; i++)
		if (node_pages[i].node == n)
			close_node_page(&node_pages[i]);
	__real_node_destroy(n);
}

void ledger_end(void)
{
	for (unsigned i = 0; i < PATHS_MAX; i++)
		if (path_pages[i].path)
			world_fail("a path was not destroyed");
	for (unsigned i = 0; i < NODES_MAX; i++)
		if (node_pages[i].node)
			world_fail("a node was not destroyed");
}

void ledger_print(void)
{
	const struct ledger *l = &ledger;

	printf("samples: %" PRIu64 " handed out by nodes, %" PRIu64 " delivered; dropped and counted: %" PRIu64 " queue full, %" PRIu64 " path resting, %" PRIu64 " node resting or refusing, %" PRIu64 " no free sample, %" PRIu64 " hooks, %" PRIu64 " register, %" PRIu64 " path without out, %" PRIu64 " with their peer, %" PRIu64 " in a node that stopped\n",
	       l->handed, l->delivered, l->queue_full, l->rested, l->not_sent,
	       l->unmade, l->hooks, l->absorbed, l->no_destination, l->peer, l->stopped);
}
