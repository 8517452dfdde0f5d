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
	/* What the library itself keeps of a queue pair and of a completion queue at this address; it
	 * stays with the entry. */
	void *own_qp, *own_cq;
	/* The object at the address, while it exists (hear.h). */
	struct ibv_context *context;
	struct ibv_qp_ex *ex;
	struct ibv_cq_ex *cq_ex;
	struct ibv_cq *plain_cq;
	bool goes;
	/* A protection domain whose queue pairs may have no lock: the program uses each in one thread. */
	bool one_thread;
};

/* The original functions of an object. Never NULL: zeros if the object is unknown. */
const struct saved *saved_find(const void *key);
/* The entry of a new object. NULL: out of memory. */
struct saved *saved_make(const void *key);
void saved_each(void (*fn)(struct saved *s));
/* Keeps the functions of a context, before they are replaced. It has just been opened: no other
 * thread uses it yet. False: out of memory. */
bool saved_keep_context(struct ibv_context *context);

#endif
