/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-types for tests, a registry that holds only them, and a log that tests
 * can look at.
 *
 * `source` gives samples with sequence numbers 0 .. limit-1, origin and values;
 * `sink` notes what it gets, `both` does both. They can behave like an adapter that keeps samples
 * beyond the call (mode "hold"), with their choices drawn from a seed. A sink of
 * mode "wait" takes nothing until all sources together have given `limit`.
 * `polled` is a source without data that can be waited for. A source of mode "paced"
 * gives a sample every 50 us without end, of mode "slow" until its limit.
 */
#ifndef TEST_GATEWAY_FAKE_H
#define TEST_GATEWAY_FAKE_H

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/config/config.h"
#include "gateway/plugin/node.h"
#include "gateway/super_node/super_node.h"
#include "util/spin.h"

#define FAKE_HELD_MAX 64
#define FAKE_SEEN_MAX 100000

#define FAKE_VALUES_MAX 8

enum fake_mode { FAKE_PLAIN, FAKE_HOLD, FAKE_FEW, FAKE_IDLE, FAKE_KEEP,
		 FAKE_WAIT, FAKE_PACED, FAKE_SLOW };

/* Samples that all sources have given since fake_super_node(). */
extern _Atomic uint64_t fake_given;
/* The thread that read a source last. */
extern _Atomic pthread_t fake_reader;
/* prepare fails from now on. */
extern atomic_bool fake_refuse_prepare;

struct fake {
	int64_t limit, seed, base, values, pace_us;
	int mode;
	bool fail_start, fail_prepare, own_memory, hoard;

	uint64_t random;
	uint64_t next;              /* sequence number to give */
	struct sample *held[FAKE_HELD_MAX];
	unsigned held_count;
	atomic_bool interrupted;
	struct memory_type memory, *parent;
	unsigned blocks;            /* of own memory, now */

	struct spin lock;
	uint64_t *seen;             /* sequence numbers */
	double *first, *second;     /* values 0 and 1 */
	union signal_data (*data)[FAKE_VALUES_MAX];
	unsigned *lengths;
	unsigned seen_count;
	unsigned foreign;           /* samples not in own memory */
	unsigned carried;           /* samples that fake_reader wrote */
	atomic_bool refuse;         /* start fails from now on */
	atomic_bool inside;         /* in read */
	atomic_bool writing;        /* in write, perhaps beside a read */
	atomic_uint resumed;        /* times that it was read again */
	atomic_bool polled;         /* a thread waits for its descriptor */
	int event_fd;               /* of a type `polled` */
};

static inline struct fake *fake_of(struct super_node *sn, const char *name)
{
	return super_node_find(sn, name)->private_data;
}

unsigned fake_seen(struct fake *f);

/* Life cycle calls of all fakes in order: "prepare:sink start:sink ...". */
extern char fake_events[4096];

/* Log lines since fake_log_start(), and the number of errors among them. */
void fake_log_start(void);
const char *fake_log(void);
unsigned fake_log_errors(void);

/* Configuration from text; must succeed. */
struct config *fake_config(const char *text);
/* A super-node; NULL when the configuration has errors. */
struct super_node *fake_super_node(const char *text, struct config **c);
/* Runs to the end of all paths (at most 20 s), stops, and leaves it there. */
void fake_run(struct super_node *sn);
/* Destroys both and asserts that no sample was left behind. */
void fake_end(struct super_node *sn, struct config *c);

#endif
