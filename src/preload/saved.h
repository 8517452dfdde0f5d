/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The original functions of contexts, extended queue pairs and completion queues, which a preloaded
 * library replaces by its own. The data path looks them up, therefore without a lock; an entry is
 * never freed, and is used again for the next object at its address.
 *
 * Several preloaded libraries may be stacked. Each has a table of its own and replaces functions
 * when an object is made, so the functions that it finds are those of the library below it.
 */
#ifndef PRELOAD_SAVED_H
#define PRELOAD_SAVED_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct saved {
	const void *key;
	struct saved *next;
	struct ibv_context_ops ops;
	struct verbs_context verbs; /* zeros if a context is not extended */
	struct ibv_qp_ex qp;
	struct ibv_cq_ex cq;
	void *own;                  /* what the library itself keeps; it stays with the entry */
};

/* The original functions of an object. Never NULL: zeros if the object is unknown. */
const struct saved *saved_find(const void *key);
/* The entry of a new object. NULL: out of memory. */
struct saved *saved_make(const void *key);
/* Keeps the functions of a context, before they are replaced. It has just been opened: no other
 * thread uses it yet. False: out of memory. */
bool saved_keep_context(struct ibv_context *context);

#endif
