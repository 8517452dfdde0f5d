/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending rate: additive increase while the reports tell of no loss, multiplicative
 * decrease when they do (AIMD), and the choice of the samples that go. No sockets and no
 * clocks.
 */
#ifndef GATEWAY_NODE_RTP_RATE_H
#define GATEWAY_NODE_RTP_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum rtp_throttle { RTP_THROTTLE_DISABLED, RTP_THROTTLE_DECIMATE, RTP_THROTTLE_LIMIT_RATE };

/* A fraction below it does not count as loss. */
#define RTP_LOSS_MIN 0.01

struct rtp_rate {
	double a, b;             /* samples a second to add, factor */
	double kp, ki, kd;       /* how the rate follows what AIMD asks for */
	double min, source;      /* samples a second: limits; at `source` all go */
	double rate;
	double integral, before; /* of the controller */
};

void rtp_rate_begin(struct rtp_rate *r, double init);

/* After a report: the fraction that was lost, and the seconds since the one before. */
void rtp_rate_report(struct rtp_rate *r, double loss, double since_s);

/*
 * The rate as a number for rtp_gate_admits(): for decimate one of how many samples goes, for
 * limit_rate the nanoseconds between two. 0: all go.
 */
uint64_t rtp_rate_step(const struct rtp_rate *r, int throttle);

/* Of the thread that writes. */
struct rtp_gate {
	uint64_t skipped;        /* decimate: since the last one that went */
	uint64_t next_ns;        /* limit_rate: when the next one may go */
	bool began;
};

bool rtp_gate_admits(struct rtp_gate *g, int throttle, uint64_t step, uint64_t now_ns);

#endif
