/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out a scenario on the virtual clock, on one thread and without a program: the engine
 * (engine/fabric) moves the packets, senders of this folder make and take them, and what happened is the
 * result. The same scenario gives the same result, bit for bit.
 *
 * A rate counts packets with their headers. Latency is that of packets, from when the adapter took one
 * until its last byte has come; up to FABRIC_FLOW_PACKETS of a sender wait in its adapter.
 */
#ifndef FABRIC_SIMULATE_RUN_H
#define FABRIC_SIMULATE_RUN_H

#include <signal.h>
#include <stdio.h>

#include "fabric/simulate/scenario.h"
#include "util/hist.h"

struct simulate_flow { /* packets from one port to another one */
	struct topology_end source, target;
	uint32_t traffic;
	uint32_t sender;     /* for the run itself */
	uint16_t slid, dlid;
	uint8_t sl, back_sl;
	uint64_t sent, delivered, lost, reordered; /* packets */
	uint64_t bytes;      /* that came while it was measured */
	uint64_t messages;   /* that came completely */
	uint64_t number;     /* of the packet that came last */
	uint64_t begun_ps;   /* when the message that is coming was begun */
	uint64_t last_ps;    /* when the last packet came */
	double rate_bps;
	double fair_bps;     /* max-min fair share of the links on its path; 0: not known */
	struct hist *latency; /* ns; NULL: there are more than SIMULATE_HISTS flows */
};
#define SIMULATE_HISTS 128

struct simulate_group { /* a line of traffic */
	uint32_t first_flow, flow_count, sender_count;
	uint64_t sent, delivered, lost, reordered, messages;
	uint64_t from_ps, to_ps; /* measured */
	double rate_bps, fair_bps;
	double share, least_share, most_share; /* by the fair share; negative: not known */
	struct hist packets, whole; /* ns, of packets and of messages */
};

struct simulate_link { /* one direction */
	struct topology_end from, to;
	double bps, load;    /* share of the time that packets took */
	double wait;         /* share of the time in which data lacked credits */
	uint64_t packets, marked, discards, errors;
};

struct simulate_congested { /* a lane of a switch whose queue was half a buffer or more */
	struct topology_end at;
	uint8_t lane;
	bool root;           /* it had credits in most samples: the congestion begins here */
	uint64_t from_ps, to_ps;
	uint32_t peak_bytes;
	uint32_t samples, with_credits;
};
#define SIMULATE_CONGESTED_MAX 65536u

struct simulate_lane { /* an output lane */
	struct topology_end at;
	uint8_t lane;
};

struct simulate_deadlock {
	uint64_t at_ps;
	uint32_t count;
	struct simulate_lane *lanes;
};
#define SIMULATE_DEADLOCKS_MAX 64u

struct simulate_verdict { /* of an expectation */
	double value;
	bool known, holds;
};

struct simulate_result {
	uint64_t end_ps;
	bool interrupted, stuck;  /* by `stop`; packets are left that nothing moves */
	uint64_t events, hops, inside;
	uint64_t sent, delivered, lost, reordered, marked, notifications;
	uint64_t lost_why[16];    /* by enum fabric_drop */
	double carried;           /* rate of all traffic by that of the senders' links */
	unsigned layers;          /* of lash and dfsssp; 0 otherwise */
	struct simulate_lane *circle; /* in the paths, which may deadlock */
	uint32_t circle_count;
	struct simulate_flow *flows;
	struct simulate_group *groups; /* one for each line of traffic */
	struct simulate_link *links;
	struct simulate_congested *congested;
	struct simulate_deadlock *deadlocks;
	struct simulate_verdict *verdicts;
	uint32_t flow_count, group_count, link_count, congested_count, deadlock_count;
	uint64_t congested_left_out;
};

struct simulate_options {
	const volatile sig_atomic_t *stop; /* set: end soon, with what there is; or NULL */
	/* Share of the virtual time that has passed (or of the messages); NULL: not called. */
	void (*progress)(void *arg, double share, uint64_t now_ps);
	void *arg;
	FILE *trace;                       /* each event as a line; or NULL */
};

/* On success the caller frees *r. Negative: logged why. */
int simulate_run(const struct simulate_scenario *s, const struct simulate_options *options,
		 struct simulate_result **r);
void simulate_result_free(struct simulate_result *r);

/* "no route", ... of lost_why; NULL: there is no further one. */
const char *simulate_loss_name(unsigned why);

#endif
