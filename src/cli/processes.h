/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of `busbar devices` that shows the processes that use the software adapter.
 * The library reads their counters (hca/view/inspect.h); here they are printed.
 */
#ifndef CLI_PROCESSES_H
#define CLI_PROCESSES_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/json_out.h"
#include "hca/view/inspect.h"

/* The library's functions, found at run time: see verbs/private.h. */
struct processes {
	struct hca_inspector *inspector;
	int (*look)(struct hca_inspector *in, struct hca_view **out);
	void (*view_free)(struct hca_view *view);
	void (*close)(struct hca_inspector *in);
};

/* 0, or a negative errno (logged); -ENOSYS: the libibverbs is not busbar's. */
int processes_open(struct processes *p);
void processes_close(struct processes *p);

/* Makes `device` of busbar's adapter (NULL: all) in that process fail, to test what its
 * program does. 0 or a negative errno, logged. */
int processes_fail(uint32_t pid, const char *device);
/* Sets the faults of its messages (NULL: only asks for them), as BUSBAR_FAULTS describes
 * them. 0 or a negative errno, logged; but -EOPNOTSUPP is not, as *out says why. */
int processes_faults(uint32_t pid, const char *faults, struct hca_faults_view *out);
/* An event among its faults, from 0: a line of KEY=VALUE. False: there are not so many, or the
 * process cannot be asked. */
bool processes_fault_event(uint32_t pid, uint32_t index, char *line, size_t line_bytes);

void processes_print(const struct hca_view *v, bool qps, FILE *out);
/* Writes the keys "processes" and "totals" of the open object. With `before` and
 * `seconds` also the differences per second; else `before` is NULL. */
void processes_json(struct cli_json *j, const struct hca_view *v,
		    const struct hca_view *before, double seconds, bool qps);
/* Prints rates every `interval_s` seconds, `count` times (0: until interrupted). 0 or a
 * negative errno. */
int processes_watch(struct processes *p, double interval_s, unsigned count,
		    bool qps, bool json, FILE *out);

/* ---- shared by the above ---- */
const char *qp_type_name(uint32_t type);
const char *qp_state_name(uint32_t state);

/* A class of operations: indices of its message counters; each is followed by the
 * counter of bytes. */
struct traffic_class {
	const char *name;
	unsigned places[3];
	unsigned count;
};
extern const struct traffic_classes {
	const struct traffic_class *list;
	size_t count;
} traffic_sent, traffic_received;

struct traffic {
	uint64_t messages, bytes;
};
struct traffic traffic_of(const struct traffic_class *c,
			  const uint64_t counters[HCA_QP_COUNTERS]);
struct traffic traffic_sum(const struct traffic_classes *c,
			   const uint64_t counters[HCA_QP_COUNTERS]);
/* Sums over all processes that could be read. */
struct traffic_totals {
	uint64_t counters[HCA_QP_COUNTERS];
	uint64_t processes, qps, mrs, mr_bytes;
};
void traffic_total(const struct hca_view *v, struct traffic_totals *t);

/* Numbers of QPs by type and state; the last type and state stand for unknown ones. */
#define QP_TYPES 17
#define QP_STATES 9
void qp_states_count(const struct hca_process_view *p,
		     unsigned counts[QP_TYPES][QP_STATES]);

/* "12.3 kB"; returns buf. */
const char *bytes_text(char *buf, size_t size, double bytes);

/* Has it a queue pair of this device, "soft0"? */
bool process_uses(const struct hca_process_view *p, const char *device);

/* The same process, or QP of it, in another view; NULL: it is not there. */
const struct hca_process_view *process_find(const struct hca_view *v,
					    const struct hca_process_view *p);
const struct hca_qp_view *process_find_qp(const struct hca_process_view *p,
					  uint32_t qpn);

#endif
