/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Applications (6), as far as the source gives their packets: a READ and then a SEND, as ArgoDSM
 * takes its global lock by MPI over UCX. UCX's settings are RNR code 13 and ACK timeout code 18.
 */
#include "bench/odp/lab.h"

#define COMMON "paged=server second=send rnr_code=13 ack_code=18 "
#define CODE_18_MS 1073.7

int lab_applications(struct lab *l)
{
	size_t lost = lab_point(l, COMMON "interval=3000000");
	size_t later = lab_point(l, COMMON "interval=8000000");
	size_t x6 = lab_point(l, COMMON "interval=3000000 profile=connectx6");
	int ret = lab_run(l);
	double ms;

	if (ret)
		return ret;
	ms = lab_value(l, lost, "time_ns") / 1e6;
	lab_row(l, &(struct lab_row){ "6.2",
				      lab_if(lab_value(l, lost, "timeouts") == 1 &&
					     lab_within(ms, CODE_18_MS, 4 * CODE_18_MS)),
				      "1661 ms, one timeout; 1074 to 4295 by the rule", ms, "ms" },
		"SEND posted in the wait of the READ", "%.0f ms, %.0f timeout", ms,
		lab_value(l, lost, "timeouts"));
	ms = lab_value(l, later, "time_ns") / 1e6;
	lab_row(l, &(struct lab_row){ "6.1", lab_if(lab_value(l, later, "timeouts") == 0),
				      "runs are of two kinds, fast and slow", ms, "ms" },
		"SEND posted behind it", "%.1f ms, %.0f timeouts", ms,
		lab_value(l, later, "timeouts"));
	ms = lab_value(l, x6, "time_ns") / 1e6;
	lab_row(l, &(struct lab_row){ "-", LAB_NOT_IN_SOURCE, "", ms, "ms" },
		"SEND posted in the wait, on connectx6", "%.1f ms, %.0f timeouts", ms,
		lab_value(l, x6, "timeouts"));
	return 0;
}
