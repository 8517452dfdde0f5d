/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One point of an experiment with memory on demand, as the micro-benchmark of T. Fukuoka ("ODP
 * performance pitfalls of InfiniBand", University of Tokyo 2021, 5.1) has it: a client posts
 * `num_ops` operations to the buffer of a server, operation i at offset stride * i on queue pair i
 * modulo `num_qps`, and sleeps for `interval` behind each.
 */
#ifndef VIRTUAL_ODP_POINT_H
#define VIRTUAL_ODP_POINT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ODP_PAGE 4096u
/* Of a queue pair, and of all of them. */
#define ODP_DEPTH_MAX 8192u
#define ODP_OPS_MAX 131072u
#define ODP_QPS_MAX 512u
#define ODP_BYTES_MAX (UINT64_C(1) << 30)

enum odp_operation { ODP_SAME, ODP_READ, ODP_WRITE, ODP_SEND };
/* Sides; bits of `paged`. */
enum odp_side { ODP_SERVER = 1, ODP_CLIENT = 2 };
enum odp_touch { ODP_TOUCH_NONE, ODP_TOUCH_LATER, ODP_TOUCH_ALL };
/* See mitigation.h. */
enum odp_mitigation { ODP_UNHELPED, ODP_DUMMIES, ODP_WINDOW, ODP_GATE, ODP_REISSUE };

struct odp_point {
	int operation, second;     /* enum odp_operation; of the first of each queue pair, and of
				    * the others */
	uint64_t size, stride;     /* bytes; a stride of 0 is the size */
	uint64_t num_ops, num_qps;
	uint64_t interval_ns;
	uint64_t jitter_ns;        /* a sleep ends up to so much later */
	int paged;                 /* the others' memory is pinned */
	int pre_touch;             /* pages that the adapters have before: none, those that no
				    * queue pair's first operation uses, or all */
	uint64_t rnr_code, ack_code, retry, rnr_retry, max_rd_atomic;
	const char *profile;       /* as BUSBAR_PAGING has it */
	uint64_t fault_ns;         /* of a fault, in place of the profile's; 0: that */
	uint64_t trials, seed;
	int mitigation;            /* what the program does against it */
	uint64_t patience_ns, window;
	bool answers;              /* else the server gets nothing */
	bool list;                 /* print the times of each operation */
	const char *capture;       /* a file for the client's packets; "": none */
};

/* Reads "name=value" words; changes `line`, which the point keeps pointers into. 0, or -EINVAL and
 * what is wrong. */
int odp_point_parse(char *line, struct odp_point *out, char *why, size_t why_bytes);

enum ibv_wr_opcode odp_opcode(const struct odp_point *p, uint64_t i);
/* Queue pairs of each end: those of the operations, and a spare one where the mitigation needs it. */
unsigned odp_qps(const struct odp_point *p);
/* Where operation `i` begins in each of the two buffers, and how long they are. */
uint64_t odp_offset(const struct odp_point *p, uint64_t i);
uint64_t odp_bytes(const struct odp_point *p);

#endif
