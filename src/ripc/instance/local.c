/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between services of one instance: a copy in memory of the pool. */
#include <stdlib.h>
#include <string.h>

#include "ripc/instance/instance.h"

#include <errno.h>

static uint64_t bytes_of(const struct ripc_item *items, unsigned count)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += items[i].bytes;
	return bytes;
}

static struct fetch *copy_of(struct ripc *r, const struct ripc_item *items, unsigned count)
{
	struct fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->r = r;
	f->message.fetch = f;
	list_init(&f->offers);
	for (; f->message.count < count; f->message.count++) {
		struct ripc_item *to = &f->message.items[f->message.count];
		const struct ripc_item *from = &items[f->message.count];

		if (!from->bytes)
			continue;
		to->bytes = from->bytes;
		to->data = pool_alloc(r->pool, from->bytes);
		if (!to->data) {
			fetch_free(f);
			return NULL;
		}
		memcpy(to->data, from->data, from->bytes);
	}
	return f;
}

int local_send(struct ripc_service *from, struct ripc_service *to, bool is_long,
	       const struct ripc_item *items, unsigned count,
	       const struct ripc_item *returns, unsigned returns_count)
{
	struct packet_memory made[RIPC_RETURNS_MAX];
	uint64_t offer;
	struct fetch *f;
	int ret = 0;

	if (service_is_full(to, is_long ? bytes_of(items, count) : 0)) {
		ret = ripc_fail(-EAGAIN, "%u messages wait for service %#x", to->queued, to->id);
		goto out;
	}
	f = copy_of(to->r, items, count);
	if (!f) {
		ret = ripc_fail(-ENOBUFS, "no memory for a copy of the message");
		goto out;
	}
	/* Nobody writes into them, but they can be asked back as others. */
	if (returns_count)
		ret = offers_make(from, NULL, to->id, returns, returns_count, made, &offer);
	if (ret) {
		fetch_free(f);
		goto out;
	}
	f->message.from = from->id;
	f->message.is_long = is_long;
	if (is_long)
		COUNT(to->r, long_received, 1);
	else
		COUNT(to->r, short_received, 1);
	service_push(to, &f->message);
out:
	service_put(to);
	return ret;
}
