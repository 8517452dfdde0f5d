/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static rates: the codes of a PathRecord (IBA volume 1) as multiples of 2.5 Gbit/s and
 * in Mbit/s. Rates that are no whole multiple have none, except for 28 Gbit/s, for
 * which the interface has always returned 11.
 */
#include <infiniband/verbs.h>

#include <stddef.h>

#include "verbs/abi.h"

static const struct {
	int mult;
	int mbps;
} rates[] = {
	[IBV_RATE_2_5_GBPS] = { 1, 2500 },
	[IBV_RATE_5_GBPS] = { 2, 5000 },
	[IBV_RATE_10_GBPS] = { 4, 10000 },
	[IBV_RATE_20_GBPS] = { 8, 20000 },
	[IBV_RATE_30_GBPS] = { 12, 30000 },
	[IBV_RATE_40_GBPS] = { 16, 40000 },
	[IBV_RATE_60_GBPS] = { 24, 60000 },
	[IBV_RATE_80_GBPS] = { 32, 80000 },
	[IBV_RATE_120_GBPS] = { 48, 120000 },
	[IBV_RATE_14_GBPS] = { -1, 14062 },
	[IBV_RATE_56_GBPS] = { -1, 56250 },
	[IBV_RATE_112_GBPS] = { -1, 112500 },
	[IBV_RATE_168_GBPS] = { -1, 168750 },
	[IBV_RATE_25_GBPS] = { -1, 25781 },
	[IBV_RATE_100_GBPS] = { -1, 103125 },
	[IBV_RATE_200_GBPS] = { -1, 206250 },
	[IBV_RATE_300_GBPS] = { -1, 309375 },
	[IBV_RATE_28_GBPS] = { 11, 28125 },
	[IBV_RATE_50_GBPS] = { 20, 53125 },
	[IBV_RATE_400_GBPS] = { 160, 425000 },
	[IBV_RATE_600_GBPS] = { 240, 637500 },
	[IBV_RATE_800_GBPS] = { 320, 850000 },
	[IBV_RATE_1200_GBPS] = { 480, 1275000 },
};

enum {
	RATE_COUNT = sizeof(rates) / sizeof(rates[0]),
};

EXPORT int ibv_rate_to_mult(enum ibv_rate rate)
{
	size_t i = (size_t)rate;

	return i < RATE_COUNT && rates[i].mult ? rates[i].mult : -1;
}

EXPORT enum ibv_rate mult_to_ibv_rate(int mult)
{
	for (int i = 0; mult > 0 && i < RATE_COUNT; i++)
		if (rates[i].mult == mult)
			return (enum ibv_rate)i;
	return IBV_RATE_MAX;
}

EXPORT int ibv_rate_to_mbps(enum ibv_rate rate)
{
	size_t i = (size_t)rate;

	return i < RATE_COUNT && rates[i].mbps ? rates[i].mbps : -1;
}

EXPORT enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (int i = 0; mbps > 0 && i < RATE_COUNT; i++)
		if (rates[i].mbps == mbps)
			return (enum ibv_rate)i;
	return IBV_RATE_MAX;
}
