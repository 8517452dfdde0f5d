/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of epoll.h: which locks guard what, and the watches.
 *
 * A watch is one number of one socket in one set. It is in the socket's list of waiters, like a
 * thread that sleeps. A socket's state changes only when a thread takes its completions or events,
 * or by a call of the program; then rs_wake() puts the watch into its set's list of those
 * that may be ready. A thread that waits looks at each of them. It drops a watch that is not
 * ready after it has armed the completion queue, so the next completion makes the channel
 * readable. All descriptors are added edge-triggered: each is reported once per change, and
 * nothing has to be taken out of a channel to silence it.
 *
 * Locks, in this order: the set's, the socket's, the one of the list. The watches of all
 * sets are in one reserved area, which is never freed: in the events of the kernel the
 * program's data cannot be mistaken for the address of a watch.
 */
#ifndef RDMACM_RSOCKET_EPOLL_SET_H
#define RDMACM_RSOCKET_EPOLL_SET_H

#include "rdmacm/rsocket/epoll.h"
#include "rdmacm/rsocket/rs.h"

struct rs_set {
	atomic_uint refs;
	struct list entry;        /* in the list of all sets */
	pthread_mutex_t lock;     /* guards what follows, and the watches' fields */
	struct list watches;
	bool ended;
	int epfd;                 /* a descriptor of our own for the instance; -1: no socket yet */
	int wake_fd;              /* in the instance */
	atomic_bool behind;       /* sockets filled the last array: ordinary descriptors come first */

	pthread_mutex_t ready_lock;
	struct list ready;        /* watches to be looked at */
	unsigned sleepers;
	bool nested;
	bool posted;              /* wake_fd is readable */
};

struct rs_watch {
	struct rs_waiter waiter;
	struct list entry, ready;
	struct rs_set *_Atomic set; /* NULL: free */
	struct rs *rs;
	int fd;                     /* the program's number */
	struct epoll_event asked;
	uint32_t seen[RS_EDGES];    /* rs->edges at the last look */
	bool fresh;                 /* added or modified since the last look */
	bool spent;                 /* EPOLLONESHOT has been reported */
	int channel_fd, comp_fd;    /* added to the instance; -1: not */
	bool comp_fired, channel_fired;
	bool looking;               /* guarded by the socket's lock */
	struct rs_watch *next_free;
};

/* The event's data: a watch, perhaps with this bit, or the first place of the area, which
 * stands for wake_fd. */
#define RS_WATCH_COMP UINT64_C(1)

/* Wakes a thread that sleeps, or makes the instance readable for a program that waits for the
 * instance itself. The lock of the list is held. */
void rs_set_alert(struct rs_set *set);
/* Enters the watch in the list of those that may be ready. */
void rs_ready_push(struct rs_watch *w, bool alert);
/* The watch of the event's data, or NULL: the data are the program's. */
struct rs_watch *rs_watch_of(uint64_t data);
bool rs_watch_is_wake(const struct rs_watch *w);
/* Adds the completion channel, if there is one that is not in the instance. True: the
 * queue has to be armed again. The socket's lock is held. */
bool rs_watch_comp(struct rs_watch *w);
/* Has the process been forked since a set got its sockets? Their events are not this
 * process's. */
bool rs_sets_forked(void);

#endif
