/* SPDX-License-Identifier: BSD-2-Clause */
/* The interval of reports; see rtcp_interval.h. */
#include "gateway/node/rtp/rtcp_interval.h"

#define SENDERS_SHARE 0.25
/* e - 3/2: makes up for a mean that timer reconsideration makes too short. */
#define COMPENSATION 1.21828182845904523

double rtcp_interval_mean(const struct rtcp_interval *i)
{
	double bandwidth = i->bandwidth, n = i->members;
	double min_s = i->initial ? i->min_s / 2 : i->min_s, s;

	if (i->senders <= i->members * SENDERS_SHARE) {
		bandwidth *= i->we_sent ? SENDERS_SHARE : 1 - SENDERS_SHARE;
		n = i->we_sent ? i->senders : i->members - i->senders;
	}
	s = i->average_size * n / bandwidth;
	return s < min_s ? min_s : s;
}

double rtcp_interval_next(const struct rtcp_interval *i, double random)
{
	return rtcp_interval_mean(i) * (random + 0.5) / COMPENSATION;
}

void rtcp_interval_size(struct rtcp_interval *i, double size)
{
	i->average_size += (size - i->average_size) / 16;
}
