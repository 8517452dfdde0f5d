/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices, contexts, completion channels and asynchronous events. */
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
	unsigned without; /* enum hca_without */
};

/* A completion channel: the CQs whose events nobody has read yet (channel.h). */
struct hca_channel {
	struct ibv_comp_channel ibv;
	struct spin lock;
	struct list ready; /* of hca_cq.event_entry; under `lock` */
	/* Events of `ready` that the descriptor does not count, because a thread raised them
	 * that waits for one itself; under `lock`. */
	unsigned uncounted;
	/* Where its threads sleep: the number of hca_sleeper_open() plus one; 0: none yet, -1:
	 * there is none. */
	_Atomic int sleeper;
};

struct hca_async_event {
	struct list entry;
	struct ibv_async_event event;
};

struct hca_context {
	struct hca_device *device;
	struct list entry;    /* of hca_process.contexts */
	_Atomic bool failed;  /* the device has failed (fail.h); never cleared */
	bool failure_told;    /* the fatal event was raised; under process.lock */
	/* One for the open context, and one for each PD, CQ and channel of it: some
	 * programs close the device while these objects still exist. */
	atomic_int references;
	void (*end)(struct hca_context *ctx); /* frees it, after the last reference */
	/* hca_process.forks when the context was opened: tells a context inherited from
	 * the parent process from one that this process opened. */
	unsigned forks;
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

/* Drops a reference; with the last one the context is freed. */
static inline void hca_context_put(struct hca_context *ctx)
{
	if (atomic_fetch_sub(&ctx->references, 1) == 1)
		ctx->end(ctx);
}

/* What the device does not have: bits of enum hca_without. */
static inline unsigned hca_without(struct ibv_context *ctx)
{
	return hca_context(ctx)->device->without;
}

/* Is it an iWARP device? Its queue pairs are connected over streams (path/stream.h). */
static inline bool hca_is_rnic(struct ibv_context *ctx)
{
	return ctx->device->node_type == IBV_NODE_RNIC;
}

/* 0, or -EIO: the device of the context has failed. */
static inline int hca_context_check(struct ibv_context *ctx)
{
	return unlikely(atomic_load(&hca_context(ctx)->failed)) ? -EIO : 0;
}

#endif
