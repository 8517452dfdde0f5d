/* SPDX-License-Identifier: BSD-2-Clause */
/* The network in time; see network.h. */
#include "network.h"

#include <math.h>

const struct network network_default = {
	.step_s = 100e-6,
	.e_v = 325.0,
	.frequency_hz = 50.0,
	.r1_ohm = 0.1,
	.l1_h = 3e-3,
	.rp_ohm = 500.0,
	.r2_ohm = 0.5,
	.l2_h = 10e-3,
	.c2_f = 20e-6,
	.rload_ohm = 20.0,
	.rswitch_ohm = 10.0,
	.switch_s = 0.2,
};

bool network_switched(const struct network *n, uint64_t step)
{
	/* Step k is the interval from time k - 1 to k, and the switch closes at
	 * its beginning. The half step is room for rounding. */
	return n->switch_s >= 0 &&
	       network_time(n, step) > n->switch_s + 0.5 * n->step_s;
}

/* ---- source half ---- */

void source_init(struct source_half *s, const struct network *net)
{
	*s = (struct source_half){ .net = *net,
				   .g_l = net->step_s / (2 * net->l1_h) };
}

/* Trapezoidal rule: i_l = g_l v_l + this. */
static double source_history(const struct source_half *s)
{
	return s->i_l + s->g_l * s->v_l;
}

void source_port(const struct source_half *s, uint64_t step, double *history_v,
		 double *impedance_ohm)
{
	const struct network *n = &s->net;
	double e = n->e_v * cos(2 * M_PI * n->frequency_hz *
				network_time(n, step));
	/* L1 and Rp in parallel, at the interface current. */
	double z = n->rp_ohm / (1 + n->rp_ohm * s->g_l);

	*impedance_ohm = n->r1_ohm + z;
	*history_v = e + z * source_history(s);
}

double source_step(struct source_half *s, uint64_t step, double i_a)
{
	double history, impedance, v, from = source_history(s);

	source_port(s, step, &history, &impedance);
	v = history - impedance * i_a;
	s->v_l = (impedance - s->net.r1_ohm) * (i_a - from);
	s->i_l = s->g_l * s->v_l + from;
	return v;
}

/* ---- load half ---- */

void load_init(struct load_half *l, const struct network *net)
{
	*l = (struct load_half){ .net = *net,
				 .g_l = net->step_s / (2 * net->l2_h),
				 .g_c = 2 * net->c2_f / net->step_s };
}

static double load_conductance(const struct load_half *l)
{
	return 1 / l->net.rload_ohm +
	       (l->closed ? 1 / l->net.rswitch_ohm : 0.0);
}

/* i = this + g_l v_l, and i_c = g_c v_c - the other. */
static void load_histories(const struct load_half *l, double *of_l, double *of_c)
{
	*of_l = l->i + l->g_l * l->v_l;
	*of_c = l->g_c * l->v_c + l->i_c;
}

void load_port(struct load_half *l, uint64_t step, double *history_a,
	       double *admittance_s)
{
	double of_l, of_c, node, scale;

	if (!l->closed && network_switched(&l->net, step)) {
		/* The current of the capacitor jumps with the switch, and the
		 * rule averages what is behind the jump. */
		l->closed = true;
		l->i_c = l->i - l->v_c * load_conductance(l);
	}
	load_histories(l, &of_l, &of_c);
	node = load_conductance(l) + l->g_c;
	scale = 1 + l->g_l * (l->net.r2_ohm + 1 / node);
	*admittance_s = l->g_l / scale;
	*history_a = (of_l - l->g_l * of_c / node) / scale;
}

double load_step(struct load_half *l, uint64_t step, double v_v)
{
	double history, admittance, of_l, of_c, i;

	load_port(l, step, &history, &admittance);
	load_histories(l, &of_l, &of_c);
	i = history + admittance * v_v;
	l->v_c = (i + of_c) / (load_conductance(l) + l->g_c);
	l->i_c = l->g_c * l->v_c - of_c;
	l->v_l = v_v - l->net.r2_ohm * i - l->v_c;
	l->i = i;
	return i;
}

void undivided_step(struct source_half *s, struct load_half *l, uint64_t step,
		    double *v_v, double *i_a)
{
	double from_s, from_l, impedance, admittance;

	source_port(s, step, &from_s, &impedance);
	load_port(l, step, &from_l, &admittance);
	*v_v = (from_s - impedance * from_l) / (1 + impedance * admittance);
	*i_a = load_step(l, step, *v_v);
	source_step(s, step, *i_a);
}
