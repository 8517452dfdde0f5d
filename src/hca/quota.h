/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many objects of a kind a process may have: what the device says
 * (ibv_query_device(3)) of those that no table limits. It is for programs that
 * rely on the refusal, or lose objects; the memory of one lasts for these.
 */
#ifndef HCA_QUOTA_H
#define HCA_QUOTA_H

#define HCA_MAX_PD (1 << 16)
#define HCA_MAX_CQ (1 << 16)
#define HCA_MAX_SRQ (1 << 16)
#define HCA_MAX_AH (1 << 16)

enum hca_quota { HCA_QUOTA_PD, HCA_QUOTA_CQ, HCA_QUOTA_SRQ, HCA_QUOTA_AH, HCA_QUOTAS };

/* 0 or -ENOMEM. */
int hca_quota_take(enum hca_quota kind);
void hca_quota_give(enum hca_quota kind);

#endif
