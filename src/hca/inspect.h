/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking at the processes of this network namespace that use the adapter, from
 * outside: their queue pairs, links and counters.
 *
 * An inspector finds them by the names of their control sockets in
 * /proc/net/unix, asks each once for its segment and then reads that without
 * the owner's help, until the name is gone. Nothing that is read is trusted. A
 * process appears with its first queue pair.
 *
 * The command reaches these functions as busbar_* (verbs/private.h); the
 * structures are plain, so that it needs nothing else of this room.
 */
#ifndef HCA_INSPECT_H
#define HCA_INSPECT_H

#include <stddef.h>
#include <stdint.h>

#include "hca/counters.h"

/* Of what follows; command and library may come from different builds. */
#define HCA_VIEW_VERSION 1

struct hca_inspector;

struct hca_qp_view {
	uint32_t qpn;
	uint32_t type;      /* enum ibv_qp_type, or anything */
	uint32_t state;     /* enum ibv_qp_state, or anything */
	uint32_t device;    /* N of softN */
	uint32_t peer_qpn;  /* 0: not connected */
	uint32_t peer_pid;  /* 0: unknown */
	char transport[16]; /* printable */
	uint64_t counters[HCA_QP_COUNTERS];
};

struct hca_link_view {
	uint32_t pid;
	uint32_t pulls;    /* it reads large messages out of our memory */
	uint32_t accesses; /* we read and write its memory */
	uint32_t procmem;  /* by the descriptor that it passed */
};

struct hca_process_view {
	uint32_t pid; /* 0: in a PID namespace that we do not see */
	uint32_t uid;
	uint8_t uuid[16];    /* of this run of the process */
	char command[160];   /* printable; "" unknown */
	char transports[64]; /* printable, joined by ", " */
	char problem[112];   /* why nothing below is known; "" when it is */
	uint64_t counters[HCA_PROCESS_COUNTERS];
	uint64_t totals[HCA_QP_COUNTERS]; /* of living and former QPs */
	struct hca_qp_view *qps;
	size_t qp_count;
	struct hca_link_view *links;
	size_t link_count;
};

struct hca_view {
	struct hca_process_view *processes; /* by pid */
	size_t process_count;
	/* By place; NULL where nothing is counted. */
	const char *const *qp_counter_names;
	const char *const *process_counter_names;
};

/*
 * Lets the device of that name (NULL: all) of a process fail, as seen by the
 * process: fail.h. 0 when it is done, or a negative errno: -ESRCH: no process
 * with that pid has a queue pair, -ENODEV: it has no such device, -EPERM: it
 * belongs to another user, -EPROTONOSUPPORT: it does not know the request,
 * -ETIMEDOUT: it does not answer.
 */
int hca_fail_ask(uint32_t pid, const char *device);

/* 0 or a negative errno; -EPROTONOSUPPORT: another version of this file. */
int hca_inspector_open(unsigned version, struct hca_inspector **out);
/* What is there now; takes at most about a second. 0 or a negative errno. */
int hca_inspector_look(struct hca_inspector *in, struct hca_view **out);
void hca_view_free(struct hca_view *view);
void hca_inspector_close(struct hca_inspector *in);

#endif
