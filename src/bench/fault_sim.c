/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulated short circuit; see fault_sim.h. */
#include "bench/fault_sim.h"

#include <complex.h>
#include <errno.h>
#include <math.h>
#include <string.h>

/* Integration steps per sample: currents are interrupted to a tenth of a sample. */
#define SUBSTEPS 10

const struct fault_sim_parameters fault_sim_default = {
	.voltage_v = 110e3,
	.frequency_hz = 50,
	.source_power_va = 2e9,
	.source_xr = 10,
	.line_km = 50,
	.line_r_ohm_per_km = 0.12,
	.line_x_ohm_per_km = 0.39,
	.load_power_w = 40e6,
	.load_power_factor = 0.95,
	.location = 0.5,
	.fault_resistance_ohm = 0.5,
	.fault_phases = 1,
	.fault_at_s = 0.2,
	.clear_at_s = 0.3,
	.rate_hz = 10000,
};

static double omega(const struct fault_sim *s)
{
	return 2 * M_PI * s->p.frequency_hz;
}

static double source_voltage(const struct fault_sim *s,
			     const struct fault_phase *ph, double t)
{
	return s->amplitude_v * sin(omega(s) * t + ph->source_angle_rad);
}

static double complex impedance_bus_side(const struct fault_sim *s)
{
	return s->r1 + I * omega(s) * s->l1;
}

static double complex impedance_load_side(const struct fault_sim *s)
{
	return s->r2 + I * omega(s) * s->l2;
}

static double complex prefault_phasor(const struct fault_sim *s)
{
	return s->amplitude_v /
	       (impedance_bus_side(s) + impedance_load_side(s));
}

double fault_sim_prefault_current(const struct fault_sim *s)
{
	return cabs(prefault_phasor(s));
}

double fault_sim_prefault_voltage(const struct fault_sim *s)
{
	return cabs(s->amplitude_v - prefault_phasor(s) *
					     (s->rs + I * omega(s) * s->ls));
}

double fault_sim_fault_current(const struct fault_sim *s)
{
	double complex load = impedance_load_side(s);
	double rf = s->p.fault_resistance_ohm;

	return cabs(s->amplitude_v /
		    (impedance_bus_side(s) + rf * load / (rf + load)));
}

static const char *refusal(const struct fault_sim_parameters *p)
{
	if (!(p->voltage_v > 0) || !(p->frequency_hz > 0))
		return "voltage and frequency must be above 0";
	if (!(p->source_power_va > 0) || !(p->source_xr > 0))
		return "the source needs a short-circuit power and an X/R above 0";
	if (!(p->line_km > 0) || !(p->line_r_ohm_per_km >= 0) ||
	    !(p->line_x_ohm_per_km > 0))
		return "the line needs a length and a reactance above 0";
	if (!(p->load_power_w > 0) || !(p->load_power_factor > 0) ||
	    p->load_power_factor > 1)
		return "the load needs a power above 0 and a power factor up to 1";
	if (!(p->location >= 0) || p->location > 1)
		return "the location of the fault is between 0 and 1";
	if (!(p->fault_resistance_ohm > 0))
		return "the resistance of the fault must be above 0";
	if (!p->fault_phases || p->fault_phases >> FAULT_PHASES)
		return "the fault needs a phase: a, b, c or several of them";
	if (!(p->rate_hz >= 20 * p->frequency_hz))
		return "the rate must be at least 20 samples in a period";
	return NULL;
}

static void set_steady_state(struct fault_sim *s)
{
	double complex current = prefault_phasor(s);
	double complex bus = s->amplitude_v -
			     current * (s->rs + I * omega(s) * s->ls);

	for (int k = 0; k < FAULT_PHASES; k++) {
		struct fault_phase *ph = &s->phases[k];
		double complex turn;

		ph->source_angle_rad = -2 * M_PI / 3 * k;
		turn = cexp(I * ph->source_angle_rad);
		/* The source is a sine: take imaginary parts. */
		ph->i1 = ph->i2 = cimag(current * turn);
		ph->v_bus = cimag(bus * turn);
	}
}

int fault_sim_init(struct fault_sim *s, const struct fault_sim_parameters *p,
		   const char **why)
{
	double z, w, load;

	*why = refusal(p);
	if (*why)
		return -EINVAL;
	memset(s, 0, sizeof(*s));
	s->p = *p;
	w = omega(s);
	s->amplitude_v = p->voltage_v * sqrt(2.0 / 3.0);
	z = p->voltage_v * p->voltage_v / p->source_power_va;
	s->rs = z / sqrt(1 + p->source_xr * p->source_xr);
	s->ls = s->rs * p->source_xr / w;
	s->r1 = s->rs + p->location * p->line_km * p->line_r_ohm_per_km;
	s->l1 = s->ls + p->location * p->line_km * p->line_x_ohm_per_km / w;
	load = p->voltage_v * p->voltage_v * p->load_power_factor /
	       p->load_power_w;
	s->r2 = load * p->load_power_factor +
		(1 - p->location) * p->line_km * p->line_r_ohm_per_km;
	s->l2 = (load * sqrt(1 - p->load_power_factor * p->load_power_factor) +
		 (1 - p->location) * p->line_km * p->line_x_ohm_per_km) / w;
	s->step_s = 1 / (p->rate_hz * SUBSTEPS);
	set_steady_state(s);
	return 0;
}

/* One step without a fault: the same current flows through all elements. */
static void step_healthy(const struct fault_sim *s, struct fault_phase *ph,
			 double e0, double e1)
{
	double h = s->step_s, l = s->l1 + s->l2, r = s->r1 + s->r2;

	ph->i1 = ((2 * l / h - r) * ph->i1 + e0 + e1) / (2 * l / h + r);
	ph->i2 = ph->i1;
}

/*
 * One step with a fault: L1 i1' = e - (R1 + Rf) i1 + Rf i2 and
 * L2 i2' = Rf i1 - (R2 + Rf) i2, by the trapezoidal rule:
 * (2 L / h + R) new = (2 L / h - R) old + e0 + e1, a system of two equations.
 */
static void step_faulted(const struct fault_sim *s, struct fault_phase *ph,
			 double e0, double e1)
{
	double rf = s->p.fault_resistance_ohm, h = s->step_s;
	double a = 2 * s->l1 / h, b = 2 * s->l2 / h;
	double m11 = a + s->r1 + rf, m22 = b + s->r2 + rf;
	double y1 = (a - s->r1 - rf) * ph->i1 + rf * ph->i2 + e0 + e1;
	double y2 = (b - s->r2 - rf) * ph->i2 + rf * ph->i1;
	double det = m11 * m22 - rf * rf;

	ph->i1 = (m22 * y1 + rf * y2) / det;
	ph->i2 = (m11 * y2 + rf * y1) / det;
}

static double bus_voltage(const struct fault_sim *s,
			  const struct fault_phase *ph, double e)
{
	double slope;

	if (ph->open)
		return e;
	slope = ph->faulted ? (e - s->r1 * ph->i1 -
			       s->p.fault_resistance_ohm * (ph->i1 - ph->i2)) /
				      s->l1 :
			      (e - (s->r1 + s->r2) * ph->i1) / (s->l1 + s->l2);
	return e - s->rs * ph->i1 - s->ls * slope;
}

static void step_phase(struct fault_sim *s, unsigned k, double t)
{
	struct fault_phase *ph = &s->phases[k];
	double e0 = source_voltage(s, ph, t);
	double e1 = source_voltage(s, ph, t + s->step_s);
	double before = ph->i1;

	if (s->p.fault_at_s >= 0 && t >= s->p.fault_at_s &&
	    s->p.fault_phases >> k & 1)
		ph->faulted = true;
	if (!ph->open) {
		if (ph->faulted)
			step_faulted(s, ph, e0, e1);
		else
			step_healthy(s, ph, e0, e1);
		if (s->p.clear_at_s >= 0 && t >= s->p.clear_at_s &&
		    before * ph->i1 <= 0) {
			ph->open = true;
			ph->i1 = 0;
		}
	}
	ph->v_bus = bus_voltage(s, ph, e1);
}

void fault_sim_next(struct fault_sim *s, double values[FAULT_VALUES_MAX])
{
	values[6] = values[7] = 0;
	for (unsigned k = 0; k < FAULT_PHASES; k++) {
		values[k] = s->phases[k].v_bus;
		values[FAULT_PHASES + k] = s->phases[k].i1;
		values[6] += s->phases[k].v_bus;
		values[7] += s->phases[k].i1;
	}
	for (unsigned i = 0; i < SUBSTEPS; i++, s->step++)
		for (unsigned k = 0; k < FAULT_PHASES; k++)
			step_phase(s, k, (double)s->step * s->step_s);
}
