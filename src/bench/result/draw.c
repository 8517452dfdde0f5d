/* SPDX-License-Identifier: BSD-2-Clause */
/* See draw.h. */
#include "bench/result/draw.h"

#include <math.h>

/* In (0, 1): both ends are left out, for logarithms. */
static double uniform(struct prng *p)
{
	return ((double)(prng_next(p) >> 11) + 0.5) * 0x1p-53;
}

double draw_normal(struct prng *p)
{
	double x, y, square;

	do {
		x = 2 * uniform(p) - 1;
		y = 2 * uniform(p) - 1;
		square = x * x + y * y;
	} while (square >= 1 || square == 0);
	return x * sqrt(-2 * log(square) / square);
}

double draw_gamma(struct prng *p, double shape)
{
	double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);

	for (;;) {
		double x = draw_normal(p), v = 1 + c * x;

		if (v <= 0)
			continue;
		v = v * v * v;
		if (log(uniform(p)) < x * x / 2 + d - d * v + d * log(v))
			return d * v;
	}
}

double draw_beta(struct prng *p, double a, double b)
{
	double x = draw_gamma(p, a), y = draw_gamma(p, b);

	return x / (x + y);
}
