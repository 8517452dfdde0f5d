/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up of the single-producer ring; its data path is inline in ring.h. */
#include "util/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ring_init(struct ring *r, uint64_t capacity)
{
	uint64_t size = 2;

	while (size < capacity)
		size <<= 1;
	memset(r, 0, sizeof(*r));
	r->slots = calloc(size, sizeof(*r->slots));
	if (!r->slots)
		return -ENOMEM;
	r->mask = size - 1;
	return 0;
}

void ring_destroy(struct ring *r)
{
	free(r->slots);
	r->slots = NULL;
}
