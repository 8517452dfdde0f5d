/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: the reader of villas.human. */
#include <stddef.h>

static const char *const format_cfgs[] = {
	"{ \"type\": \"villas.human\" }",
	"{ \"type\": \"villas.human\", \"skip_first_line\": true }",
	NULL,
};

static const char *const seeds[] = {
	"1637846259.201578969+1.070000e-07(5)F\t1.5\t-2\t1\t1.5-2.25i\n",
	"# seconds.nanoseconds+offset(sequence)\ta\tb\n1.5\t7\n2.5(1)\t8\n",
	"0.0+0.000012345(18446744073709551615)\tnan\t-9223372036854775808\t0\tinf-nani\n",
	"0.000000000-86400.999999999\t-0.0\t0\ttrue\t0i\n",
	"-9223372036854775807.999999999-18446744073709551615.9999999995e-1(1)F\t1\n",
	"-1.25\t5e-324\t1\t0\t1e40+1e-50i\t1\t2\t1\t4i\n",
	NULL,
};

#include "text_format.h"
