/* SPDX-License-Identifier: BSD-2-Clause */
/* See inlet.h. */
#include "gateway/ws/inlet.h"

#include "gateway/base/memory.h"
#include "gateway/part/message.h"
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

unsigned ws_inlet_take(struct ws_inlet *in, struct format *f, const void *data, size_t len,
		       unsigned *count)
{
	struct message m = { .at = (char *)data, .len = len, .received = clock_realtime() };

	*count = 0;
	while (m.pos < m.len) {
		unsigned cnt = sample_alloc_many(&in->pool, in->smps, WS_INLET_BATCH);
		unsigned n = message_scan(&m, f, in->smps, cnt, NULL);

		*count += n;
		if (n)
			in->received(in->arg, in->smps, n);
		sample_put_many(in->smps, cnt);
	}
	return m.wrong;
}
