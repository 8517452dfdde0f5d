/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated network in virtual time: ends that are carriers, each with a link of a
 * rate and a delay, and the faults of impair.h; all from one seed. The same calls in the
 * same order give the same packets at the same times. Nothing here reads the time of the
 * host, and nothing is thread safe: one thread plays all ends.
 *
 *     while ((end = carrier_sim_next(sim, next timer)) ...)
 *             end >= 0: carrier_poll(end's carrier or the filters over it)
 *             else: the timer's time has come
 *
 * Ends are numbered from 0 and have the address carrier_addr_of(number). A unit that is
 * delivered has its sender's address in `from`, its time in `when_ns`, and CARRIER_WHEN
 * and CARRIER_FROM in `known` besides what was known when it was emitted. Trains are
 * split.
 */
#ifndef TRANSPORT_CARRIER_SIM_H
#define TRANSPORT_CARRIER_SIM_H

#include "transport/carrier/carrier.h"
#include "transport/carrier/impair.h"
#include "util/clock_source.h"

#define CARRIER_SIM_ENDS_MAX 65536
#define CARRIER_SIM_PACKET_MAX 65536

struct carrier_sim;

/* The way out of a switch to one end, where packets of all ends queue. All zero: there is
 * no queue. A packet that finds less room than it needs is lost. One that leaves a queue
 * behind it which is longer than `mark_from` bytes is marked (ECN: CE in unit.tos) with a
 * probability that grows to `mark_most` at `mark_all` bytes, and is 1 beyond; only those
 * whose sender set CARRIER_TOS and one of the bits of ECN (ECT) are. */
struct carrier_sim_port {
	uint64_t rate_bps;
	size_t queue_bytes;
	size_t mark_from, mark_all; /* both 0: none is marked */
	double mark_most;
};

struct carrier_sim_params {
	unsigned ends;
	uint64_t seed;
	uint64_t start_ns;  /* of the clock */
	struct impair_params link; /* of each end, from it into the network */
	struct carrier_sim_port port; /* of each end, from the network to it */
	/* Longer packets get -EMSGSIZE; 0: CARRIER_SIM_PACKET_MAX. */
	size_t packet_max;
	/* What an end has emitted and the rate has not let out yet; more gets -EAGAIN.
	 * Without a rate nothing waits. 0: 256 KiB. */
	size_t send_bytes;
	/* What has come to an end and was not polled; more is lost. 0: 1 MiB. */
	size_t receive_bytes;
	/* All that is on its way; more is lost. 0: 256 MiB. */
	size_t flight_bytes;
	/* As in carrier_fault_params. */
	unsigned (*classify)(void *arg, const struct carrier_unit *packet);
	void *classify_arg;
};

struct carrier_sim_counters {
	struct impair_counters sent; /* of all classes, on the way from this end */
	uint64_t delivered;
	uint64_t overrun;     /* lost because the end did not poll */
	uint64_t parted;      /* lost by carrier_sim_part() */
	uint64_t unreachable; /* lost because the other end was closed */
	uint64_t refused;     /* lost because the port to this end was full */
	uint64_t marked;      /* by that port */
	uint64_t queued_most; /* bytes that have waited there */
};

/* 0, -EINVAL (no ends, or too many), -ENOMEM. */
int carrier_sim_open(const struct carrier_sim_params *params, struct carrier_sim **out);
/* Closes the ends that are still open: filters over them were closed before. */
void carrier_sim_close(struct carrier_sim *sim);

/* An end. To close it loses what is in it; packets to it are lost then. */
struct carrier *carrier_sim_end(struct carrier_sim *sim, unsigned end);

/* The virtual clock; usable as long as the network. */
struct clock_source carrier_sim_clock(struct carrier_sim *sim);

/* Moves the clock to the next arrival and returns the end that it came to; without one
 * until `until_ns` moves the clock to that and returns -1. The clock never goes back. */
int carrier_sim_next(struct carrier_sim *sim, uint64_t until_ns);
/* When the next arrival is; UINT64_MAX: nothing is on its way. */
uint64_t carrier_sim_next_ns(const struct carrier_sim *sim);

/* Changes the link of one end, from now on. */
void carrier_sim_impair(struct carrier_sim *sim, unsigned end, unsigned classes,
			const struct impair_params *link);
/* Nothing gets from `a` to `b` or back, also what is on its way; or does again. */
void carrier_sim_part(struct carrier_sim *sim, unsigned a, unsigned b, bool parted);

void carrier_sim_count(const struct carrier_sim *sim, unsigned end,
		       struct carrier_sim_counters *out);

#endif
