/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libbusbar-trace.so shows the calls that a program makes of libibverbs and librdmacm,
 * busbar's or the system's. It is preloaded (busbar exec --trace) and has functions of the
 * same names. Each call is one line of text, written when it returns: time, process and
 * thread, the outer call if it was made within one, arguments, result, duration and, if
 * it failed, the reason.
 *
 * It uses only the public interface. The reason of a failure is found afterwards, by the
 * arguments, the rules of the InfiniBand specification and the manual pages, and by
 * querying the objects and the device.
 */
#ifndef TRACE_CALLS_H
#define TRACE_CALLS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/real.h"
#include "preload/saved.h"
#include "trace/text.h"

#define EXPORT __attribute__((visibility("default")))
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#ifdef TRACE_WRAPPERS
/* verbs.h has macros or inline functions of these names over the exported functions. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#endif
/* Not in the installed headers. */
struct ibv_flow_action_esp_attr;
struct ibv_ops_wr;

/* ---- call.c: one call ---- */
struct call {
	const char *name;
	struct call *outer;   /* the call of the same thread around it, or NULL */
	uint64_t start_ns, spent_ns;
	int error;            /* positive errno; 0: success; -1: failure without errno */
	int saved_errno;      /* is restored for the program */
	bool reasoned, quiet; /* reason begun; quiet: no line unless it fails */
	struct text text;
};

void call_begin(struct call *call, const char *name);
/* The arguments are written; the time of the call begins. */
void call_go(struct call *call);
void call_done(struct call *call, int error);
/* The text to which the reason is appended. */
struct text *call_reason(struct call *call);
void call_end(struct call *call);
void argument(struct text *t);
void output(struct text *t);
void result_is(struct call *call);
void result_null(struct call *call);
void result_void(struct call *call);
void result_number(struct call *call, long number);

/* ---- count.c: counters of the data path ---- */
enum count {
	COUNT_POST_SEND,
	COUNT_POST_RECV,
	COUNT_POST_SRQ_RECV,
	COUNT_POLL,
	COUNT_NOTIFY,
	COUNTS,
};

struct counters {
	struct {
		_Atomic uint64_t calls, items, bytes, empty, failed;
	} of[COUNTS];
	struct call *_Atomic current;
	struct counters *next;
	uint32_t tid;
	_Atomic bool used;
	/* Held to change `current` or to read the call in it. */
	atomic_flag lock;
	const struct call *told;
	uint64_t told_start_ns;
	/* A queue that is full and a queue pair that is flushed fail many times in a
	 * row: a line is written for the first failure only. */
	const void *full;
	uint32_t flushed;
};

extern bool trace_data; /* each call of the data path is a line */
/* The calling thread's counters. NULL: out of memory. */
struct counters *counters_own(void);
/* Starts the thread that writes the sums, once. */
void count_start(void);
uint32_t trace_tid(void);

static inline void count_add(_Atomic uint64_t *counter, uint64_t n)
{
	/* Only the counter's own thread writes it. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* ---- out.c ---- */
/* One line, by a single write. `time` of CLOCK_REALTIME. */
void out_line(uint64_t realtime_ns, uint32_t tid, const char *text);
uint64_t monotonic_ns(void);
uint64_t realtime_ns(void);
/* "ENOMEM" for 12. */
const char *error_name(int error);

/* ---- functions that were replaced ---- */
static inline const struct saved *saved_ops(const struct ibv_context *context)
{
	return saved_find(context);
}
void calls_patch_ops(struct ibv_context *context);
void calls_patch_verbs(struct verbs_context *verbs);
void data_patch_ops(struct ibv_context *context);
void data_patch_qp(struct ibv_qp_ex *qp);
void data_patch_cq(struct ibv_cq_ex *cq);

/* ---- object.c: objects that exist ---- */
enum object {
	OBJECT_PD,
	OBJECT_MR,
	OBJECT_MW,
	OBJECT_DM,
	OBJECT_CHANNEL,
	OBJECT_CQ,
	OBJECT_QP,
	OBJECT_SRQ,
	OBJECT_AH,
};

void object_add(enum object kind, void *handle);
/* The object is about to be destroyed. Returns its serial number; 0: unknown. */
uint64_t object_ending(const void *handle);
/* It was destroyed, or (object_stays()) was not. The serial number tells it from a new
 * object at the same address. */
void object_remove(const void *handle, uint64_t serial);
void object_stays(const void *handle, uint64_t serial);
bool object_lives(enum object kind, const void *handle);
/* Calls fn for each object of a kind until it returns false. The lock is held. */
void object_each(enum object kind, bool (*fn)(void *handle, void *arg), void *arg);
struct ibv_qp *object_qp(uint32_t qp_num, const struct ibv_context *context);

/* ---- names.c ---- */
void text_state(struct text *t, unsigned state);
void text_qp_type(struct text *t, unsigned type);
void text_qp_mask(struct text *t, uint64_t mask);
void text_access(struct text *t, uint64_t access);
void text_send_opcode(struct text *t, unsigned opcode);
void text_wc_status(struct text *t, unsigned status);
void text_wc_opcode(struct text *t, unsigned opcode);
void text_send_flags(struct text *t, uint64_t flags);
void text_gid(struct text *t, const union ibv_gid *gid);
void text_event(struct text *t, unsigned event);

/* ---- show.c, show_cm.c ---- */
#include "trace/show.h"
void show_qp_change(struct text *t, const struct ibv_qp *qp, const struct ibv_qp_attr *attr,
		    int mask);
void show_ah_vector(struct text *t, const struct ibv_ah_attr *a);

/* ---- why_*.c: reasons ---- */
/* The limits of a device; zeros if they cannot be queried. */
struct ibv_device_attr why_device(struct ibv_context *context);
struct ibv_port_attr why_port(struct ibv_context *context, unsigned port);
/* State and capacity of a queue pair. False: they cannot be queried. */
bool why_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
/* Writes what is wrong with an address vector; false: no fault was found. */
bool why_vector(struct text *t, struct ibv_context *context, const struct ibv_ah_attr *a);
/* Writes "name is 17, the device has at most 16" and returns true if it is so. */
bool why_above(struct text *t, const char *name, uint64_t value, uint64_t max,
	       const char *whose);
void why_post_send(struct text *t, int error, struct ibv_qp *qp,
		   const struct ibv_send_wr *wr);
void why_post_recv(struct text *t, int error, struct ibv_qp *qp,
		   const struct ibv_recv_wr *wr);
void why_post_srq_recv(struct text *t, int error, struct ibv_srq *srq,
		       const struct ibv_recv_wr *wr);
void why_wc(struct text *t, struct ibv_context *context, unsigned status, uint32_t qp_num);
/* What a call of that name waits for while it does not return; or NULL. */
const char *why_waits(const char *call);

#endif
