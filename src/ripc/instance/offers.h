/* SPDX-License-Identifier: BSD-2-Clause */
/* A return buffer that was offered: for offers.c and revoke.c. */
#ifndef RIPC_OFFERS_H
#define RIPC_OFFERS_H

#include "ripc/instance/instance.h"

struct offer {
	struct list entry;      /* service->offers, or fetch->offers */
	uint64_t instance;
	uint64_t epoch;
	uint32_t to;
	uint64_t number;        /* of the message it went with, by service, going up */
	void *data;
	size_t bytes;
	struct pool_ref ref;
	uint32_t key;
	bool closing;           /* the key was invalidated, or is being */
	struct window *window;  /* NULL: nobody has a key, or its connection has ended */
};

/* Nobody has a key any more: offer_void(), or its connection has ended. */
void offer_free(struct ripc *r, struct offer *o);
/* p->lock; NULL: the instance is not known (any more). Nobody can write there any more. */
void offer_void(struct offer *o, struct peer *p);

#endif
