/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples to and from a gateway on the same host, through shared memory: what a
 * simulator written in C or C++ links (libbusbar-shmem, pkg-config busbar-shmem)
 * to be coupled by a node of the type `shmem`. It needs libc and pthreads only.
 *
 * There is one POSIX shared memory object for each direction, a ring with one
 * writer and one reader. Who comes first creates it and decides its dimensions.
 * Either side may start first, end, be killed and come back; an object goes when
 * nobody uses it any more.
 *
 * A handle may be read by one thread and written by one thread at the same time.
 * Every function that fails returns a negative errno value.
 */
#ifndef BUSBAR_SHMEM_H
#define BUSBAR_SHMEM_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct busbar_shmem;

/* How this side waits for samples. */
enum busbar_shmem_mode {
	BUSBAR_SHMEM_PTHREAD, /* sleeps; the writer wakes it */
	BUSBAR_SHMEM_POLLING, /* spins, which takes a processor */
};

/* Set what differs from zero; zero is a useful default everywhere. */
struct busbar_shmem_options {
	uint32_t mode;      /* enum busbar_shmem_mode */
	uint32_t queuelen;  /* samples in a ring that is created here, rounded up
			     * to a power of two; 0: 512, at most 2^20 */
	uint32_t values;    /* at most in a sample of such a ring; 0: 64, at most
			     * 65536. A ring that is there already keeps its own */
	uint32_t reserved;  /* 0 */
	/* For the peer to come, in ns: 0 returns at once, connected or not; below
	 * zero waits for ever. */
	int64_t timeout_ns;
};

enum busbar_shmem_flags {
	BUSBAR_SHMEM_HAS_SEQUENCE = 1 << 0,
	BUSBAR_SHMEM_HAS_ORIGIN = 1 << 1,
	BUSBAR_SHMEM_HAS_RECEIVED = 1 << 2,
	BUSBAR_SHMEM_HAS_DATA = 1 << 3,
	BUSBAR_SHMEM_NEW_FRAME = 1 << 4,
	BUSBAR_SHMEM_NEW_SIMULATION = 1 << 5, /* first one of a new writer; also
					       * set by writing, where another
					       * wrote the object before */
	BUSBAR_SHMEM_CUT = 1 << 16, /* read: had more values than `capacity` */
};

/* Which member counts is up to both sides; a ring carries 8 bytes as they are. */
union busbar_shmem_value {
	double f;
	int64_t i; /* integers, and booleans as 0 or 1 */
	struct {
		float re, im;
	} z;
};

struct busbar_shmem_sample {
	uint64_t sequence;
	struct timespec origin;   /* CLOCK_REALTIME, when it was made */
	struct timespec received; /* the same, when the writer received it */
	uint32_t flags;           /* enum busbar_shmem_flags: which are valid */
	uint32_t length;          /* values in use */
	uint32_t capacity;        /* read only: values that there is room for */
	union busbar_shmem_value *values; /* the caller's */
};

/*
 * Attaches to the objects `write_name`, which this side writes, and `read_name`,
 * which it reads: the node's `in.name` and `out.name`. Names are those of
 * shm_open(3), with or without the leading slash. One of them may be NULL. NULL
 * `options` mean all defaults. 0 with a handle in *out, for the caller to close,
 * or
 *
 *	-EINVAL       a name or an option cannot be
 *	-EBUSY        another process is attached to this side of an object
 *	-EEXIST       an object of that name is something else; it is left alone
 *	-EPROTO       the object in use has a layout that this version cannot read
 *	-ETIMEDOUT    the peer did not come in time
 *	-EACCES, -ENOSPC, -ENOMEM ... as the system says
 *
 * busbar_shmem_error() then has the cause in words.
 */
int busbar_shmem_open(struct busbar_shmem **out, const char *write_name,
		      const char *read_name,
		      const struct busbar_shmem_options *options);

/*
 * Detaches; objects that nobody else is attached to are removed. What was
 * written stays readable for the peer. No other call may be under way. NULL
 * allowed.
 */
void busbar_shmem_close(struct busbar_shmem *s);

/*
 * Takes up to `count` samples in the order they were written. Waits up to
 * `timeout_ns` for the first one (0: does not, below zero: for ever). The caller
 * has set `values` and `capacity` of each; all else is filled in. Returns how
 * many were taken, 0 when the time was over, or
 *
 *	-ENOTCONN     the peer has closed or died and everything it wrote has been
 *	              taken. Said once: the next call waits for it to come back.
 *	              One that is back before this could be said is known by
 *	              BUSBAR_SHMEM_NEW_SIMULATION at its first sample.
 *	-EINTR        busbar_shmem_interrupt() was called
 *	-ENOTSUP      there is no name to read
 */
int busbar_shmem_read(struct busbar_shmem *s,
		      struct busbar_shmem_sample samples[], unsigned count,
		      int64_t timeout_ns);

/*
 * Writes up to `count` samples; never waits. Returns how many, fewer when the
 * ring is full (what becomes of the rest is the caller's business), or when none
 * could be written
 *
 *	-ENOTCONN     nobody is there to read; a peer that was killed is noticed
 *	              once the ring is full, or by busbar_shmem_connected()
 *	-EMSGSIZE     the sample has more values than the ring takes
 *	-ENOTSUP      there is no name to write
 */
int busbar_shmem_write(struct busbar_shmem *s,
		       const struct busbar_shmem_sample samples[],
		       unsigned count);

/*
 * Sleeps until a read would not come back empty, at most `timeout_ns` (below zero:
 * no limit). For who looks by busbar_shmem_read() with a time of 0 and wants to
 * sleep in between, whatever the mode. Returns 0 when the time was over, 1 when it
 * is time to read, which may find nothing: also after busbar_shmem_interrupt(), and
 * now and then to notice that the writer has gone. -ENOTSUP: no name to read.
 */
int busbar_shmem_wait(struct busbar_shmem *s, int64_t timeout_ns);

/*
 * One sample of reals, numbered by the handle from 0 on and stamped now; 1, 0 or
 * an error as busbar_shmem_write(). Counts on when the ring was full, so that
 * the reader sees the gap.
 */
int busbar_shmem_write_values(struct busbar_shmem *s, const double *values,
			      unsigned count);

/*
 * The values of one sample as reals, at most `count` (1 or more) of them. Returns
 * how many were stored, 0 when the time was over, or an error as
 * busbar_shmem_read(). A sample without values is passed over.
 */
int busbar_shmem_read_values(struct busbar_shmem *s, double *values,
			     unsigned count, int64_t timeout_ns);

/* Values that a sample may have at most: written, and read. 0 without a name. */
unsigned busbar_shmem_write_max(const struct busbar_shmem *s);
unsigned busbar_shmem_read_max(const struct busbar_shmem *s);

/*
 * 1 when the peer is attached to every object of the handle and its process
 * lives, else 0. Asks the system; from any thread.
 */
int busbar_shmem_connected(struct busbar_shmem *s);

/* Makes a read that waits, or the next one that would, return -EINTR. From any
 * thread or signal handler. */
void busbar_shmem_interrupt(struct busbar_shmem *s);

/*
 * A program that makes an object smaller which others use lets them end with
 * SIGBUS. After this call the process survives it: a handler for SIGBUS, which
 * passes on what is not about such an object, puts empty memory in its place.
 * Reading and writing then find nobody there, and busbar_shmem_broken() is true
 * until the object is closed and opened again. Signal handlers are the program's,
 * so this is not done without being asked for.
 */
void busbar_shmem_guard(void);
int busbar_shmem_broken(const struct busbar_shmem *s);

/* 1 when somebody has removed an object of the handle: who is attached may go on,
 * but a peer that comes anew does not find it. Asks the system. */
int busbar_shmem_removed(const struct busbar_shmem *s);

/* Why the last busbar_shmem_open() of this thread failed; never NULL. */
const char *busbar_shmem_error(void);

#ifdef __cplusplus
}
#endif

#endif
