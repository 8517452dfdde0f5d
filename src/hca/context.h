/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices, opened contexts, and their channels and asynchronous events. */
#ifndef HCA_CONTEXT_H
#define HCA_CONTEXT_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

struct hca_device {
	struct ibv_device ibv;
	int index;
	__be64 guid;
};

/* A completion or asynchronous event waiting behind a pollable descriptor. */
struct hca_channel {
	struct ibv_comp_channel ibv;
	struct spin lock;
	struct list ready; /* hca_cq.event_entry, one per event */
};

struct hca_async_event {
	struct list entry;
	struct ibv_async_event event;
};

struct hca_context {
	struct hca_device *device;
	struct list entry;    /* of hca_process.contexts */
	_Atomic bool failed;  /* its device did (fail.h), for good */
	bool failure_told;    /* under process.lock */
	/* Itself, until closed, and its PDs, CQs and channels: programs close
	 * the device first and leave the rest to the end of the process. */
	atomic_int references;
	unsigned forks; /* of hca_process when opened: a child's close of its
			 * parent's device must not end one of its own */
	struct spin async_lock;
	struct list async_events;
	struct verbs_context verbs; /* last: it grows upwards */
};

static inline struct hca_context *hca_context(struct ibv_context *ctx)
{
	return container_of(ctx, struct hca_context, verbs.context);
}

static inline struct hca_device *hca_device(struct ibv_device *dev)
{
	return container_of(dev, struct hca_device, ibv);
}

static inline struct hca_channel *hca_channel(struct ibv_comp_channel *ch)
{
	return container_of(ch, struct hca_channel, ibv);
}

static inline void hca_context_get(struct hca_context *ctx)
{
	atomic_fetch_add(&ctx->references, 1);
}

/* The last reference ends the context. */
void hca_context_put(struct hca_context *ctx);

/* "softN" of N; NULL: there is no such device. */
const char *hca_device_name(uint32_t index);

/* What a context whose device failed does not do any more: 0 or -EIO. */
static inline int hca_context_check(struct ibv_context *ctx)
{
	return unlikely(atomic_load(&hca_context(ctx)->failed)) ? -EIO : 0;
}

#endif
