/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples that have come, from any connection, until the path reads them: a ring for each
 * thread that brings some, so that nobody waits for anybody.
 */
#ifndef GATEWAY_NODE_WEBSOCKET_INBOX_H
#define GATEWAY_NODE_WEBSOCKET_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/base/waker.h"
#include "gateway/sample/sample.h"
#include "util/ring.h"

struct ws_inbox {
	struct pool pool;
	bool has_pool;
	struct ring *rings;
	unsigned count, next;     /* rings; where reading goes on */
	struct waker waker;
	int event_fd;
	atomic_bool polled;       /* a path waits for event_fd */
	atomic_bool interrupted;
	_Atomic uint64_t lost;    /* found no room */
};

/* `rings` threads bring samples of up to `values` values; `queuelen` of each may wait. 0 or a
 * negative errno. */
int ws_inbox_init(struct ws_inbox *b, unsigned rings, unsigned queuelen, unsigned values);
void ws_inbox_destroy(struct ws_inbox *b);

/* The thread of ring `ring`. */
void ws_inbox_put(struct ws_inbox *b, unsigned ring, struct sample *const smps[],
		  unsigned count);
/* Wakes who reads, after ws_inbox_put(), unless somebody else reads in his place. */
void ws_inbox_wake(struct ws_inbox *b);

/* The reader. Copies up to `cnt` samples to smps[]; does not wait. */
unsigned ws_inbox_take(struct ws_inbox *b, struct sample *smps[], unsigned cnt);
/* Sleeps until something is there, an interruption, or `timeout_ns`. */
void ws_inbox_sleep(struct ws_inbox *b, uint64_t timeout_ns);
/* Any thread: ends the sleep. */
void ws_inbox_interrupt(struct ws_inbox *b, bool on);
/* For a path with several sources, as node_type.poll_fds. */
int ws_inbox_poll_fds(struct ws_inbox *b, int fds[], int max);
/* Of a path that polls: the descriptor is made empty, before a take. */
void ws_inbox_drain(struct ws_inbox *b);
void ws_inbox_signal(struct ws_inbox *b);

#endif
