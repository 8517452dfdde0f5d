/* SPDX-License-Identifier: BSD-2-Clause */
/* Promises: up to which message of the peer receives are certain; see promise.c. */
#ifndef HCA_PROMISE_H
#define HCA_PROMISE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/run/progress.h"
#include "util/container_of.h"

/* Written by the receiver of a QP: a sequence number, whether it is valid, and in the
 * upper bits the length for which each receive has room. */
struct hca_promise {
	cache_aligned _Atomic uint64_t word;
};

/* The receiver's state; under rq.post_lock. */
struct hca_promising {
	struct hca_promise *word;
	uint32_t step;  /* number of new receives after which the promise is extended */
	_Atomic uint32_t upto;  /* receives before this one have been examined */
	_Atomic uint32_t limit;
	_Atomic uint32_t key;   /* the region in which all of them lie; 0: none yet */
	uint32_t room;
	bool stuck;     /* the receive at `upto` cannot be promised */
	bool ended;     /* no promise is made before the next connection */
	_Atomic bool made; /* a promise was made in this connection */
	/* The QP is in error, and its receives are not flushed yet. */
	_Atomic bool closing;
	struct progress_timer close;
};


#endif
