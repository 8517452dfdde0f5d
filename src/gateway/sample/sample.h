/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples, signals, and pools of samples.
 *
 * A sample holds the data of ONE point in time: values, origin (generation)
 * and receive timestamp, sequence number. It is written once; after that, owners only
 * point at it. Its reference count is the number of owners.
 *
 * `sequence`, `origin` and `data` are together at the end. So the part that travels
 * between hosts (24 bytes + 8 per value, host byte order) is contiguous, and an adapter
 * can read and write it with one scatter/gather entry.
 */
#ifndef GATEWAY_SAMPLE_SAMPLE_H
#define GATEWAY_SAMPLE_SAMPLE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "util/spin.h"

struct memory_block;
struct memory_type;

enum signal_type {
	SIGNAL_FLOAT,   /* double */
	SIGNAL_INTEGER, /* int64_t */
	SIGNAL_BOOLEAN, /* 0 or 1 in `i` */
	SIGNAL_COMPLEX, /* two floats */
};

union signal_data {
	double f;
	int64_t i; /* integers and booleans */
	struct {
		float re, im;
	} z;
	uint64_t bits;
};

struct signal {
	char *name; /* owned; never NULL */
	char *unit; /* owned; NULL: no unit */
	enum signal_type type;
	union signal_data init; /* value before the first sample; zero by default */
};

/* Reference counted, immutable once shared. */
struct signal_list {
	atomic_int refcnt;
	atomic_bool lasting; /* interned: lives as long as the process */
	unsigned count;
	struct signal signals[];
};

/* `count` signals of `type` named signal0, signal1 ...; NULL on no memory. */
struct signal_list *signal_list_new(unsigned count, enum signal_type type);
struct signal_list *signal_list_get(struct signal_list *l);
void signal_list_put(struct signal_list *l); /* NULL allowed */
/* "float", "integer", "boolean", "complex". -EINVAL when unknown. */
int signal_type_parse(const char *name);
const char *signal_type_name(enum signal_type type);
/* Converts a value to an integer: rounds towards zero; a value out of range becomes the
 * nearest integer, NaN becomes 0. */
int64_t signal_type_to_integer(long double v);

enum sample_flags {
	SAMPLE_HAS_SEQUENCE = 1 << 0,
	SAMPLE_HAS_ORIGIN = 1 << 1,
	SAMPLE_HAS_RECEIVED = 1 << 2,
	SAMPLE_HAS_DATA = 1 << 3,
	SAMPLE_NEW_FRAME = 1 << 4,
	SAMPLE_NEW_SIMULATION = 1 << 5,
};

struct pool;

struct sample {
	struct pool *pool;
	union {
		struct sample *next_free;    /* while in the pool */
		/* While outside of the pool: a reference to the list that
		 * `signals` points at (or pointed at before a hook changed it),
		 * if that list is not lasting. NULL for nearly all samples. */
		struct signal_list *owned;
	};
	/* May be NULL. Assign a lasting list (signal_list_intern()) directly; set
	 * any other list by sample_set_signals(), so that the list is not freed
	 * before the sample. */
	struct signal_list *signals;
	atomic_int refcnt;
	uint32_t flags;
	uint32_t length;              /* values in use */
	uint32_t capacity;            /* values allocated */
	struct timespec received;
	/* The part that travels begins here. */
	uint64_t sequence;
	struct timespec origin;
	union signal_data data[];
};

#define SAMPLE_WIRE_HEADER (sizeof(uint64_t) + sizeof(struct timespec))

static_assert(offsetof(struct sample, origin) ==
		      offsetof(struct sample, sequence) + 8 &&
		      offsetof(struct sample, data) ==
			      offsetof(struct sample, sequence) + 24,
	      "the travelling part of a sample is contiguous");

/* The first byte of the part that travels. */
static inline void *sample_wire(struct sample *s)
{
	return &s->sequence;
}

static inline size_t sample_wire_size(unsigned length)
{
	return SAMPLE_WIRE_HEADER + (size_t)length * sizeof(union signal_data);
}

/*
 * Fixed number of equally sized samples in one memory block. Any thread may
 * take and return samples.
 */
struct pool {
	struct memory_block *block;
	struct memory_type *memory;
	unsigned count;
	unsigned capacity;     /* values per sample */
	size_t stride;         /* bytes from sample to sample */
	struct spin lock;
	struct sample *free;
	unsigned available;
};

/*
 * Makes a pool of `count` samples of `capacity` values in memory of `type` (NULL:
 * memory_hugepage). 0 or a negative errno, and then nothing is allocated.
 */
int pool_init(struct pool *p, unsigned count, unsigned capacity,
	      struct memory_type *type);
/* Frees the pool. All samples should have been returned; returns the number of samples
 * that were not. */
unsigned pool_destroy(struct pool *p);

/* A sample with refcnt 1, length 0, flags 0; NULL when the pool is empty. */
struct sample *sample_alloc(struct pool *p);
/* The same for up to `cnt` samples; returns their number. */
unsigned sample_alloc_many(struct pool *p, struct sample *smps[], unsigned cnt);

static inline struct sample *sample_get(struct sample *s)
{
	atomic_fetch_add_explicit(&s->refcnt, 1, memory_order_relaxed);
	return s;
}

/* Releases one reference; the last one returns the sample to its pool. */
void sample_put(struct sample *s);
void sample_put_many(struct sample *smps[], unsigned cnt);

/* For sample_set_signals(): the sample takes a reference to `l` (NULL: none) and releases
 * the one that it held. */
void sample_own_list(struct sample *s, struct signal_list *l);

/*
 * Makes the sample point at `l`, which may be NULL. Counts a reference if the list is not
 * lasting, which is so for lists of peers beyond those that the process keeps.
 */
static inline void sample_set_signals(struct sample *s, struct signal_list *l)
{
	s->signals = l;
	if (unlikely(l && !atomic_load_explicit(&l->lasting,
						memory_order_relaxed)))
		sample_own_list(s, l);
}

/* Copies header and as many values as fit; keeps pool, refcnt and capacity. `dst`
 * is a sample of a pool, or its `owned` is NULL. */
void sample_copy(struct sample *dst, const struct sample *src);

#endif
