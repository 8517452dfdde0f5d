/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples that have come, from any connection, until the path reads them: a ring for each
 * thread that brings some, so that nobody waits for anybody.
 */
#ifndef GATEWAY_PART_INBOX_H
#define GATEWAY_PART_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/base/waker.h"
#include "gateway/part/fault.h"
#include "gateway/sample/sample.h"
#include "util/ring.h"

/* Samples of the pool beyond those that may wait: for who fills them before inbox_push(). */
#define INBOX_SPARE 64

struct inbox {
	struct pool pool;
	bool has_pool;
	struct ring *rings;
	unsigned count, next;     /* rings; where reading goes on */
	struct waker waker;
	int event_fd;
	atomic_bool polled;       /* a path waits for event_fd */
	atomic_bool signalled;    /* event_fd is readable, or will be at once */
	atomic_bool interrupted;
	unsigned queuelen;
	_Atomic uint64_t lost;    /* found no room */
	uint64_t lost_noted;      /* of them; of the reader */
	struct fault_counters *faults; /* of the owner, for the callbacks below */
};

/* `rings` threads bring samples of up to `values` values; `queuelen` of each may wait. 0 or a
 * negative errno. */
int inbox_init(struct inbox *b, unsigned rings, unsigned queuelen, unsigned values);
void inbox_destroy(struct inbox *b);

/* The thread of ring `ring`. */
void inbox_put(struct inbox *b, unsigned ring, struct sample *const smps[],
		  unsigned count);
/* The same for one sample of b->pool, whose reference is used up. */
void inbox_push(struct inbox *b, unsigned ring, struct sample *s);
/* Wakes who reads, after inbox_put(), unless somebody else reads in his place. */
void inbox_wake(struct inbox *b);

/* The reader. Copies up to `cnt` samples to smps[]; does not wait. */
unsigned inbox_take(struct inbox *b, struct sample *smps[], unsigned cnt);
bool inbox_is_empty(struct inbox *b);
/* Sleeps until something is there, an interruption, or `timeout_ns`. */
void inbox_sleep(struct inbox *b, uint64_t timeout_ns);

/* read() and sleep() (node.h) of a node all of whose samples come through the inbox. What found
 * no room is noted in `f`. */
int inbox_read(struct inbox *b, const struct node *n, struct fault_counters *f,
	       struct sample *smps[], unsigned cnt);
void inbox_sleep_until(struct inbox *b, uint64_t until_ns);
/* Any thread: ends the sleep. */
void inbox_interrupt(struct inbox *b, bool on);
/* Callbacks of a node-type whose private data begin with its inbox. */
int inbox_node_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
void inbox_node_sleep(struct node *n, uint64_t until_ns);
void inbox_node_interrupt(struct node *n);
void inbox_node_rearm(struct node *n);
int inbox_node_poll_fds(struct node *n, int fds[], int max);
/* For a path with several sources, as node_type.poll_fds. */
int inbox_poll_fds(struct inbox *b, int fds[], int max);
/* inbox_take() of a path that polls, when there was nothing. */
unsigned inbox_take_polled(struct inbox *b, struct sample *smps[], unsigned cnt);
/* Notes the samples that found no room since the last call. */
void inbox_note_lost(struct inbox *b, struct fault_counters *f);
/* The node stops: notes those, and the samples that nobody will read. For node-types that tell a peer
 * that they have taken what it sent. */
void inbox_note_unread(struct inbox *b, struct fault_counters *f);

#endif
