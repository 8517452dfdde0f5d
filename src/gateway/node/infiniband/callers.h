/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which call may take the place of the one call that an infiniband node has accepted and that
 * its caller has not confirmed yet, and which hosts have left such calls unconfirmed lately.
 *
 * Any host can send requests. So no call may hold the place for long, and no newer one may take
 * it before an honest caller could confirm:
 *
 *   - A call keeps the place for CALLERS_CONFIRM_NS. After that, a call of a host of the same
 *     standing may take it, also one of the same host.
 *   - A host that has failed to confirm lately stands below one that has not: its call makes
 *     way for the other's at once, and never takes the other's place.
 *   - A host whose call had its time and was not confirmed is rejected for CALLERS_FIRST_NS,
 *     twice as long each time, up to CALLERS_LONGEST_NS. A call that ended before is
 *     followed by as long a wait as it lasted. That does not grow, because the request may
 *     have had the address of another host, which then rejects the answer.
 *
 * It reads no clock and has no thread: the caller passes the time.
 */
#ifndef GATEWAY_NODE_INFINIBAND_CALLERS_H
#define GATEWAY_NODE_INFINIBAND_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"

/* Hosts that are remembered. One more takes the place of that which failed first. */
#define CALLERS_MAX 16u
#define CALLERS_CONFIRM_NS (NSEC_PER_SEC / 2)
#define CALLERS_FIRST_NS (NSEC_PER_SEC / 2)
#define CALLERS_LONGEST_NS (30 * NSEC_PER_SEC)
/* The shortest wait, which bounds what the calls of a host cost. */
#define CALLERS_SHORTEST_NS (NSEC_PER_SEC / 50)
/* How long a failure counts; longer than the longest wait and a call behind it. */
#define CALLERS_LATELY_NS (60 * NSEC_PER_SEC)

/* An IPv6 address; IPv4 addresses are mapped. */
struct caller_ip {
	uint8_t bytes[16];
};

struct callers {
	struct caller {
		struct caller_ip ip;
		uint64_t failed_ns; /* the last time; 0: no host */
		uint64_t until_ns;  /* it is rejected until then */
		uint64_t wait_ns;   /* the last wait that grows; 0: none yet */
	} hosts[CALLERS_MAX];
};

/* What the rules look at. */
struct callers_case {
	bool caller_waits;    /* its host is rejected for a while */
	bool caller_failed;
	bool place_taken;     /* by a call that is not confirmed */
	bool holder_failed;   /* of that call's host */
	bool holder_had_time;
};

/* The rules: may the call be accepted, in place of the other one if there is one? */
bool callers_rule(const struct callers_case *c);

/* The same for a call of `ip`. `holder`: the host of the call that is not confirmed and was
 * accepted at `since_ns`; NULL: there is none. */
bool callers_may_take(const struct callers *t, const struct caller_ip *ip,
		      const struct caller_ip *holder, uint64_t since_ns, uint64_t now_ns);

/* A call that was accepted at `since_ns` has ended and was not confirmed. */
void callers_note_failure(struct callers *t, const struct caller_ip *ip, uint64_t since_ns,
			  uint64_t now_ns);

/* The host has confirmed a call: it counts as one that never failed. */
void callers_forget(struct callers *t, const struct caller_ip *ip);

#endif
