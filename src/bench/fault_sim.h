/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Simulates a short circuit on a power line: physically sensible waveforms for
 * demonstrations and benchmarks, if no recording is available.
 *
 *   source - Zs - bus - line (location) -+- line (rest) - load - ground
 *                  ^                     |
 *       measured: voltage and current    Rf, while there is a fault
 *
 * Three phases without coupling between them, all elements R-L, neutral
 * grounded; solved by the trapezoidal rule. The breaker at the bus opens each
 * phase at a zero of its current. No clock and no random number: the same
 * parameters give the same samples.
 */
#ifndef BENCH_FAULT_SIM_H
#define BENCH_FAULT_SIM_H

#include <stdbool.h>
#include <stdint.h>

#define FAULT_PHASES 3

/* v_a v_b v_c i_a i_b i_c and, with 8 values, 3 v_0 and i_n (the sums). */
#define FAULT_VALUES_MAX 8

struct fault_sim_parameters {
	double voltage_v;        /* line to line, RMS */
	double frequency_hz;
	double source_power_va;  /* short-circuit power of the source */
	double source_xr;        /* X / R of the source */
	double line_km, line_r_ohm_per_km, line_x_ohm_per_km;
	double load_power_w, load_power_factor;
	double location;         /* of the fault: 0 at the bus, 1 at the load */
	double fault_resistance_ohm;
	unsigned fault_phases;   /* bit k: phase k to ground */
	double fault_at_s;       /* below 0: no fault */
	double clear_at_s;       /* the breaker begins to open; below 0: never */
	double rate_hz;          /* of the samples */
};

/* A 110 kV line of 50 km, phase a to ground after 0.2 s, cleared after 0.1 s. */
extern const struct fault_sim_parameters fault_sim_default;

struct fault_phase {
	double source_angle_rad;
	double i1, i2;   /* through the bus, into the load */
	double v_bus;
	bool faulted, open;
};

struct fault_sim {
	struct fault_sim_parameters p;
	double r1, l1;       /* source and line up to the fault */
	double rs, ls;       /* source alone */
	double r2, l2;       /* line after the fault, and load */
	double amplitude_v;  /* of the source, line to ground */
	double step_s;       /* of the integration */
	uint64_t step;
	struct fault_phase phases[FAULT_PHASES];
};

/* Starts in steady state at time 0. -EINVAL and *why: the parameters are not possible. */
int fault_sim_init(struct fault_sim *s, const struct fault_sim_parameters *p,
		   const char **why);

/* Values at the present time; then advances by one sample. */
void fault_sim_next(struct fault_sim *s, double values[FAULT_VALUES_MAX]);

/* For tests: amplitudes by the theory of phasors. */
double fault_sim_prefault_voltage(const struct fault_sim *s);
double fault_sim_prefault_current(const struct fault_sim *s);
double fault_sim_fault_current(const struct fault_sim *s);

#endif
