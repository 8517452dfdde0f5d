/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From when on requests and completions are heard. A library that listens later (data.h) has a program
 * pay nothing until then: the functions of the data path stay the adapter's.
 *
 * preload_hear() replaces them while the program's threads may use them. That is safe: each is a
 * pointer that the interface's inline functions load anew at each call, either function does the
 * work, and all originals are in the table, for all processors, before the first one is replaced.
 * Requests that are begun or were posted before are not heard, but completions of these are, so a
 * listener may get a completion without a request. A library above this one may have replaced
 * functions when the object was made; it is below this one from then on.
 */
#ifndef PRELOAD_HEAR_H
#define PRELOAD_HEAR_H

#include <infiniband/verbs.h>

/* An object has just been made, and no other thread uses it yet. */
void hear_context(struct ibv_context *context);
void hear_qp(struct ibv_qp_ex *ex);
/* `ex` NULL: it is not extended. */
void hear_cq(struct ibv_cq *cq, struct ibv_cq_ex *ex);
/* The object at that address is about to go; or it stays, as its destruction failed. */
void hear_goes(const void *object);
void hear_stays(const void *object);

#endif
