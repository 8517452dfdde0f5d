/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small electric network, whole and in two halves, solved at a fixed step by the
 * trapezoidal rule.
 *
 *	        +---Rp---+            i ->
 *	 e(t)---+        +---R1----o---------o---R2---L2---+-------+------ /--+
 *	  |     +---L1---+         |         |             |       |          |
 *	  |                       v|         |v            C2    Rload     Rswitch
 *	  +------------------------o---------o-------------+-------+----------+
 *
 *	          source half        interface       load half
 *
 * Rp stands for what damps every real reactor at high frequency; without it the
 * voltage of L1 at a prescribed current would be a pure derivative, which the
 * trapezoidal rule lets ring for ever. The switch closes at a given time.
 *
 * Each element that stores energy becomes a conductance and a source that depends on
 * the step before, so that a half is seen from the interface as
 *
 *	source half	v = history - impedance * i
 *	load half	i = history + admittance * v
 *
 * Solving both equations at once is the undivided network. Solving each half with
 * what the other one sent is the coupled one (ideal-transformer method): the source
 * half sees the load as a current source, the load half sees the source as a
 * voltage source.
 */
#ifndef COSIM_NETWORK_H
#define COSIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

struct network {
	double step_s;
	double e_v, frequency_hz;      /* amplitude; e(t) = e_v cos(2 pi f t) */
	double r1_ohm, l1_h, rp_ohm;
	double r2_ohm, l2_h, c2_f, rload_ohm;
	double rswitch_ohm, switch_s;  /* closes at this time; below 0: never */
};

/* A network whose halves may be coupled with any delay: |Z1/Z2| < 1. */
extern const struct network network_default;

static inline double network_time(const struct network *n, uint64_t step)
{
	return (double)step * n->step_s;
}

/* Whether the switch is closed in a step. */
bool network_switched(const struct network *n, uint64_t step);

struct source_half {
	struct network net;
	double g_l;          /* conductance of L1 */
	double i_l, v_l;     /* of the step before */
};

struct load_half {
	struct network net;
	double g_l, g_c;     /* conductances of L2 and C2 */
	double i, v_l, v_c, i_c;
	bool closed;
};

/* All currents and voltages are zero before step 0. */
void source_init(struct source_half *s, const struct network *net);
void load_init(struct load_half *l, const struct network *net);

/* What the half looks like from the interface in this step. */
void source_port(const struct source_half *s, uint64_t step, double *history_v,
		 double *impedance_ohm);
void load_port(struct load_half *l, uint64_t step, double *history_a,
	       double *admittance_s);

/* One step with the other half's quantity given; returns its own. Steps follow
 * each other without a gap. */
double source_step(struct source_half *s, uint64_t step, double i_a);
double load_step(struct load_half *l, uint64_t step, double v_v);

/* One step of both together. */
void undivided_step(struct source_half *s, struct load_half *l, uint64_t step,
		    double *v_v, double *i_a);

#endif
