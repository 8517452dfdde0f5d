/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting the objects of a process against the limits of the device. */
#include "hca/object/quota.h"

#include <errno.h>
#include <stdatomic.h>

static const int limits[HCA_QUOTAS] = {
	[HCA_QUOTA_PD] = HCA_MAX_PD,
	[HCA_QUOTA_CQ] = HCA_MAX_CQ,
	[HCA_QUOTA_SRQ] = HCA_MAX_SRQ,
	[HCA_QUOTA_AH] = HCA_MAX_AH,
};

static atomic_int taken[HCA_QUOTAS];

int hca_quota_take(enum hca_quota kind)
{
	if (atomic_fetch_add(&taken[kind], 1) < limits[kind])
		return 0;
	atomic_fetch_sub(&taken[kind], 1);
	return -ENOMEM;
}

void hca_quota_give(enum hca_quota kind)
{
	atomic_fetch_sub(&taken[kind], 1);
}
