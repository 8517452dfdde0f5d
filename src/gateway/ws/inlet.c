/* SPDX-License-Identifier: BSD-2-Clause */
/* See inlet.h. */
#include "gateway/ws/inlet.h"

#include <stdio.h>

#include "gateway/base/memory.h"
#include "util/clock.h"

int ws_inlet_init(struct ws_inlet *in, unsigned values,
		  void (*received)(void *arg, struct sample *const smps[], unsigned count),
		  void *arg)
{
	in->received = received;
	in->arg = arg;
	return pool_init(&in->pool, WS_INLET_BATCH, values, &memory_heap);
}

void ws_inlet_destroy(struct ws_inlet *in)
{
	pool_destroy(&in->pool);
}

static void hand_over(struct ws_inlet *in, unsigned n)
{
	struct timespec now = clock_realtime();

	for (unsigned i = 0; i < n; i++) {
		/* A time in the message is that of the sender. */
		in->smps[i]->received = now;
		in->smps[i]->flags |= SAMPLE_HAS_RECEIVED;
	}
	in->received(in->arg, in->smps, n);
}

unsigned ws_inlet_take(struct ws_inlet *in, struct format *f, const void *data, size_t len,
		       unsigned *count)
{
	const char *text = data;
	unsigned wrong = 0;
	size_t at = 0;

	*count = 0;
	while (at < len) {
		unsigned cnt = sample_alloc_many(&in->pool, in->smps, WS_INLET_BATCH);
		size_t used = 0;
		int n = f->type->scan(f, text + at, len - at, &used, in->smps, cnt);

		at += used;
		if (n > 0) {
			*count += (unsigned)n;
			hand_over(in, (unsigned)n);
		}
		sample_put_many(in->smps, cnt);
		if (n > 0 && used)
			continue;
		if (n < 0)
			wrong++;
		/* A line can be wrong alone; of others the rest is. */
		if (n < 0 && f->type->lines && used)
			continue;
		if (n >= 0 && at < len) {
			snprintf(f->error, sizeof(f->error),
				 "the message ends inside a sample, %zu bytes are left", len - at);
			wrong++;
		}
		break;
	}
	return wrong;
}
