/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a node that reads a socket waits: asks the kernel without end, for a while,
 * or sleeps at once; and how somebody else gets it out of that.
 */
#ifndef GATEWAY_PART_SOCKET_WAIT_H
#define GATEWAY_PART_SOCKET_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* AUTO: the path waits (node.h, sleep); where it does not, as EVENT. */
enum socket_polling {
	POLLING_AUTO,
	POLLING_EVENT,
	POLLING_BUSY,
	POLLING_ADAPTIVE,
};

struct node;
struct sample;

struct socket_wait {
	int polling;
	uint64_t spin_ns;
	int wake_fd;             /* eventfd */
	atomic_bool polled;      /* a path waits for descriptors itself */
	atomic_uint interrupts;  /* how often reading was asked to return */
	unsigned obeyed;         /* of the reader */
};

/* One idle phase of the reader; zeroed when data has come. */
struct socket_idle {
	uint64_t since_ns;
	unsigned spins;
};

int socket_wait_open(struct socket_wait *w); /* 0 or a negative errno */
void socket_wait_close(struct socket_wait *w);

/* Any thread: the reader returns soon, and once. */
void socket_wait_interrupt(struct socket_wait *w);

/* Makes the wake-up descriptor readable: for a path that polls. */
void socket_wait_kick(struct socket_wait *w);
void socket_wait_clear(struct socket_wait *w);

/* poll_fds() of a node (node.h): a path waits for the descriptors from now on, if that is
 * `possible`. False: it does not, because that is not possible or the settings say to spin. */
bool socket_wait_set_polled(struct socket_wait *w, bool possible);

/* Has somebody asked the reader to return since it last did? */
static inline bool socket_wait_interrupted(struct socket_wait *w)
{
	unsigned now = atomic_load_explicit(&w->interrupts, memory_order_acquire);

	if (__builtin_expect(now == w->obeyed, 1))
		return false;
	w->obeyed = now;
	return true;
}

/* True: ask again; false: it is time to sleep. */
bool socket_wait_spin(struct socket_wait *w, struct socket_idle *idle);

/* Sleeps until `fd` is readable, an interruption, or until `until_ns` of clock_now_ns()
 * (UINT64_MAX: for ever); does not look which. */
void socket_wait_sleep(struct socket_wait *w, int fd, uint64_t until_ns);

/*
 * read() of a node-type that has sleep() (node.h), for a path that does not wait for descriptors.
 * `take` takes up to `cnt` samples without waiting and returns their number; 0: it is to be called
 * again; -EAGAIN: nothing is there; or another negative errno.
 */
int socket_wait_read(struct socket_wait *w, struct node *n, struct sample *smps[], unsigned cnt,
		     int (*take)(struct node *n, struct sample *smps[], unsigned cnt));

#endif
