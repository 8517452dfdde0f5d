/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One case of the adapter benchmark, and the memory that its processes share.
 *
 * The measuring ends are child processes (or the threads of one), which load the part that
 * needs verbs from a module; their parent needs none. Parent and ends share one mapping:
 * struct hca_shared, then the columns of the result, each on pages of its own, so that the
 * two ends do not write to the same cache line.
 */
#ifndef BENCH_HCA_CASE_H
#define BENCH_HCA_CASE_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "bench/kind/kind.h"
#include "util/container_of.h"

#define HCA_NAME_MAX 64
#define HCA_WHY_MAX 300
/* Each side keeps at most this much memory for messages, unless it is told a number. */
#define HCA_BUFFERS_BYTES (UINT64_C(64) << 20)
#define HCA_ROWS_MAX (UINT64_C(1) << 24)

enum hca_service { HCA_RC, HCA_UC, HCA_UD };
enum hca_polling { HCA_BUSY, HCA_EVENT, HCA_MIXED };
enum hca_operation { HCA_SEND, HCA_WRITE };
enum hca_mode { HCA_ONEWAY, HCA_ROUNDTRIP, HCA_THROUGHPUT };
enum hca_clock { HCA_CLOCK_MONOTONIC, HCA_CLOCK_TICKS };
enum hca_side { HCA_SENDER, HCA_RECEIVER };

struct hca_case {
	enum hca_service type;
	enum hca_polling poll_recv, poll_send;
	enum hca_operation op;
	enum hca_mode mode;
	enum hca_clock clock;
	bool send_inline, unsignaled, stamp_send, plain, threads;
	bool remote;           /* the other end is on another host: clocks differ */
	uint32_t size;         /* bytes of a message */
	uint32_t burst, repetitions;
	uint32_t warmup;       /* messages before the first burst */
	uint32_t batch, sges;
	uint32_t buffers;      /* 0: as many as a burst has messages, if that is not too much */
	uint32_t mtu;          /* bytes; 0: the adapter's */
	int gid_index;         /* -1: the adapter's first that fits */
	uint64_t pause_ns, spin_ns, lost_after_ns;
	char device[2][HCA_NAME_MAX];  /* by enum hca_side */
	char address[2][HCA_NAME_MAX]; /* of connection management; "": the device's */
	int cpu[3];            /* of the sender, receiver, the thread of `stamp`; -1: none */
};

/* What an end reports; written by it alone. Counts are without the warm-up. */
struct hca_report {
	int error;             /* negative errno, logged */
	atomic_int tid;        /* 0: no thread is to be woken */
	uint64_t cpu_ns, wall_ns;
	uint64_t sent, received, duplicates, reordered, events;
	uint64_t busy_ns;      /* throughput: the sum of all bursts' times */
	uint64_t own_ns;       /* of a time stamp and its storage: median */
	uint32_t depth;        /* of the queue */
	uint32_t buffers;
	bool locked, huge;     /* memory */
	char device[HCA_NAME_MAX];
};

enum hca_column {
	HCA_T_SUBM, /* ns of the sender's clock: before posting; throughput: of the first message */
	HCA_T_COMP, /* its completion was polled */
	HCA_T_BACK, /* round trip: the reply was polled */
	HCA_T_RECV, /* the receiver polled its completion; throughput: of the last message */
	HCA_T_SENT, /* the time that the message carried */
	HCA_COLUMNS,
};

struct hca_shared {
	atomic_bool stop;      /* all ends leave soon */
	atomic_bool nudge;     /* the parent wakes who sleeps in wait for events, again and again */
	atomic_bool has_why;
	char why[HCA_WHY_MAX];  /* the first error of an end, for the parent's log */
	cache_aligned atomic_uint bursts_sent; /* the warm-up counts */
	cache_aligned _Atomic uint64_t messages; /* done, for the progress */
	struct hca_report end[2];
	/* Constant from here on. */
	size_t bytes, rows;
	bool huge;
	uint64_t *column[HCA_COLUMNS]; /* `rows` each; 0: there is no value */
	/* The message that all requests point at, whose first word `stamp` is overwritten. */
	char *stamped;
};

extern const struct bench_parameter hca_parameters[];

#define HCA_HUGE_BYTES (UINT64_C(2) << 20)
static inline uint64_t hca_round_up(uint64_t value, uint64_t step)
{
	return (value + step - 1) / step * step;
}

/* Memory whose pages are there, huge ones where the host has some; NULL: there is none, see errno.
 * `flags`: MAP_PRIVATE or MAP_SHARED. */
static inline void *hca_map(size_t bytes, int flags, bool *huge)
{
	int all = flags | MAP_ANONYMOUS | MAP_POPULATE;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, all | MAP_HUGETLB, -1, 0);

	*huge = p != MAP_FAILED;
	if (!*huge)
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, all, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* A case from the parameters of bench_kind_hca, with all defaults. `scale` is of the
 * number of messages; what is not above 0 changes nothing. 0; or -EINVAL, logged: parameters
 * that do not go together, or too many messages. */
int hca_case_read(const json_t *parameters, double scale, struct hca_case *c);
double hca_case_seconds(const struct hca_case *c);
static inline uint64_t hca_case_rows(const struct hca_case *c)
{
	return c->mode == HCA_THROUGHPUT ? c->repetitions :
					   (uint64_t)c->repetitions * c->burst;
}

/*
 * Of the module bench_hca.so: the life of an end. It runs in the calling thread until all
 * messages were exchanged; `fd` is a stream socket to the other end, which stays open.
 * 0 or a negative errno, logged, also in its report.
 */
typedef int hca_end_fn(const struct hca_case *c, struct hca_shared *s, enum hca_side side,
		       int fd);

/* ---- measuring (measure.c) ---- */

/* 0, or a negative errno, logged. */
int hca_shared_create(const struct hca_case *c, struct hca_shared **s);
void hca_shared_destroy(struct hca_shared *s);

/* Both ends in this host. 0; -EINTR; or another negative errno, logged. */
int hca_measure_local(const struct hca_case *c, struct hca_shared *s,
		      const struct bench_context *context);
/* One end; the other is behind `fd`, a connected socket. */
int hca_measure_end(const struct hca_case *c, struct hca_shared *s, enum hca_side side, int fd,
		    const struct bench_context *context);

/* ---- what was measured (kind.c) ---- */

#define HCA_OUTCOME_COLUMNS 8
#define HCA_OUTCOME_LATENCIES 4
#define HCA_OUTCOME_FIGURES 32

struct hca_outcome {
	struct result_column columns[HCA_OUTCOME_COLUMNS];
	struct result_latency latencies[HCA_OUTCOME_LATENCIES];
	struct result_figure figures[HCA_OUTCOME_FIGURES];
	size_t column_count, latency_count, figure_count, rows;
	int64_t *values; /* of all columns */
};

/* 0; -EIO: messages of RC were lost; or another negative errno; logged. */
int hca_outcome_make(const struct hca_case *c, const struct hca_shared *s,
		     struct hca_outcome *o);
void hca_outcome_free(struct hca_outcome *o);

#endif
