/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state that a reader of datagrams keeps for each sender.
 *
 * A format may keep something between messages: a description of signals, the columns
 * that a header named, whether the first line has been passed over. That is the
 * sender's, so each one has a reader of its own; else one datagram of another sender
 * would change how all others are read. The table is made at the start and bounded:
 * when it is full, the sender that has been silent for longest is forgotten, and
 * before all others one of whom no sample has come.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/datagram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

int sources_open(struct socket_node *s)
{
	struct datagram_sources *t = &s->datagram->sources;
	int ret = 0;

	t->at = calloc(SOURCES_MAX, sizeof(*t->at));
	if (!t->at)
		return -ENOMEM;
	for (; t->size < SOURCES_MAX && !ret; t->size++)
		ret = socket_ends_new_reader(&s->ends, &t->at[t->size].reader);
	return ret;
}

void sources_close(struct socket_node *s)
{
	struct datagram_sources *t = &s->datagram->sources;

	for (unsigned i = 0; i < t->size; i++)
		format_destroy(t->at[i].reader);
	free(t->at);
	*t = (struct datagram_sources){ 0 };
}

/* Faster than socket_address_equal(), for addresses that one socket has received. */
static bool same_source(const struct socket_address *a,
			const struct socket_address *b)
{
	if (a->len != b->len)
		return false;
	if (a->len >= sizeof(a->ll) && a->sa.sa_family == AF_PACKET)
		return !memcmp(a->ll.sll_addr, b->ll.sll_addr, 6);
	return !memcmp(&a->storage, &b->storage, a->len);
}

/* The sender that is forgotten first. */
static bool is_less_worth(const struct datagram_source *a,
			  const struct datagram_source *b)
{
	return a->proven != b->proven ? b->proven : a->used < b->used;
}

static void tell_full(struct socket_node *s, const struct datagram_source *gone)
{
	struct datagram_sources *t = &s->datagram->sources;
	char text[SOCKET_ADDRESS_MAX];

	if (t->said_full)
		return;
	t->said_full = true;
	log_warn("%s: more than %u senders: what the format kept of %s is forgotten, and so on; verify_source takes only what comes from out.address",
		 s->ends.node->name, t->size, socket_address_print(&gone->address, text));
}

static struct datagram_source *find(struct socket_node *s,
				    const struct socket_address *from)
{
	struct datagram_sources *t = &s->datagram->sources;
	struct datagram_source *victim;

	for (unsigned i = 0; i < t->count; i++)
		if (same_source(&t->at[i].address, from))
			return &t->at[i];
	if (t->count < t->size) {
		victim = &t->at[t->count++];
	} else {
		victim = &t->at[0];
		for (unsigned i = 1; i < t->size; i++)
			if (is_less_worth(&t->at[i], victim))
				victim = &t->at[i];
		tell_full(s, victim);
		victim->reader->type->reset(victim->reader);
	}
	victim->address = *from;
	/* A sender that the configuration names is always accepted. */
	victim->proven = s->ends.has_remote &&
			 socket_address_equal(from, &s->ends.remote, true);
	return victim;
}

unsigned sources_scan(struct socket_ends *e, struct datagram *d, struct sample *smps[],
		      unsigned cnt)
{
	struct socket_node *s = container_of(e, struct socket_node, ends);
	struct datagram_sources *t = &s->datagram->sources;
	unsigned n;

	if (unlikely(!t->last || !same_source(&t->last->address, d->from)))
		t->last = find(s, d->from);
	t->last->used = ++t->clock;
	n = message_scan(&d->message, t->last->reader, smps, cnt, &e->faults);
	t->last->proven |= n > 0;
	return n;
}
