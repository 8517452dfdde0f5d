/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Observes, from outside, the processes of this network namespace that use the adapter:
 * their queue pairs, links and counters.
 *
 * An inspector finds processes by the names of their control sockets in /proc/net/unix,
 * asks each once for its segment, and then reads the segment without the process, until
 * the name is gone. All values that are read are checked. A process appears with its
 * first queue pair.
 *
 * The command calls these functions as busbar_* (verbs/private.h); the structures need no
 * other header of this room.
 */
#ifndef HCA_INSPECT_H
#define HCA_INSPECT_H

#include <stddef.h>
#include <stdint.h>

#include "hca/share/counters.h"

/* Version of the structures below; command and library may be of different builds. */
#define HCA_VIEW_VERSION 1

struct hca_inspector;

struct hca_qp_view {
	uint32_t qpn;
	uint32_t type;      /* enum ibv_qp_type, or any number */
	uint32_t state;     /* enum ibv_qp_state, or any number */
	uint32_t device;    /* N of softN */
	uint32_t peer_qpn;  /* 0: not connected */
	uint32_t peer_pid;  /* 0: unknown */
	char transport[16]; /* printable */
	uint64_t counters[HCA_QP_COUNTERS];
};

struct hca_link_view {
	uint32_t pid;
	uint32_t pulls;    /* the peer copies large messages from the process' memory */
	uint32_t accesses; /* the process copies from and to the peer's memory */
	uint32_t procmem;  /* by a descriptor of /proc/self/mem that the peer passed */
};

struct hca_process_view {
	uint32_t pid; /* 0: in a PID namespace that is not visible here */
	uint32_t uid;
	uint8_t uuid[16];    /* different for each start of a process */
	char command[160];   /* printable; "" unknown */
	char transports[64]; /* printable, joined by ", " */
	char problem[112];   /* why the following is unknown; "": it is known */
	uint64_t counters[HCA_PROCESS_COUNTERS];
	uint64_t totals[HCA_QP_COUNTERS]; /* of existing and destroyed QPs */
	struct hca_qp_view *qps;
	size_t qp_count;
	struct hca_link_view *links;
	size_t link_count;
};

struct hca_view {
	struct hca_process_view *processes; /* sorted by pid */
	size_t process_count;
	/* Names by index of the counter; NULL: there is no such counter. */
	const char *const *qp_counter_names;
	const char *const *process_counter_names;
};

/*
 * Makes the device of that name (NULL: all) of a process fail, as described in fail.h. 0
 * when it has failed; -ESRCH: no process with that pid has a queue pair; -ENODEV: it has
 * no such device; -EPERM: it belongs to another user; -EPROTONOSUPPORT: it does not know
 * the request; -ETIMEDOUT: it does not answer; or another negative errno.
 */
int hca_fail_ask(uint32_t pid, const char *device);

struct hca_faults_view {
	char set[512];   /* as BUSBAR_FAULTS; "": none */
	char notes[512]; /* a line, with newline, for each transport that has other faults, or
			  * what is wrong with the text; printable, "": nothing */
};
/*
 * Sets the faults that messages of a process meet, as hca/device/faults.h describes it; `text`
 * is as BUSBAR_FAULTS, "": none, NULL: shows which are set. 0; -EINVAL: it cannot read the
 * text; -EOPNOTSUPP: none of its transports has such faults; or as hca_fail_ask(). *out is
 * filled in with the first three.
 */
int hca_faults_ask(uint32_t pid, const char *text, struct hca_faults_view *out);
/*
 * A line of KEY=VALUE about an event at a packet number (busbar-adapter(7)), from 0 in their order.
 * 0; -ENOENT: there are not so many; or as hca_fail_ask().
 */
int hca_fault_event_ask(uint32_t pid, uint32_t index, char *line, size_t line_bytes);

/* 0 or a negative errno; -EPROTONOSUPPORT: another version of this file. */
int hca_inspector_open(unsigned version, struct hca_inspector **out);
/* A view of all processes; takes at most about a second. 0 or a negative errno. */
int hca_inspector_look(struct hca_inspector *in, struct hca_view **out);
void hca_view_free(struct hca_view *view);
void hca_inspector_close(struct hca_inspector *in);

#endif
