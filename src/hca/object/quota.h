/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits the number of objects of a kind to what ibv_query_device(3) reports, for kinds
 * that no table limits. For programs that rely on the limit, or that leak objects; memory
 * would suffice for more.
 */
#ifndef HCA_QUOTA_H
#define HCA_QUOTA_H

#define HCA_MAX_PD (1 << 16)
#define HCA_MAX_CQ (1 << 16)
#define HCA_MAX_SRQ (1 << 16)
#define HCA_MAX_AH (1 << 16)

enum hca_quota { HCA_QUOTA_PD, HCA_QUOTA_CQ, HCA_QUOTA_SRQ, HCA_QUOTA_AH, HCA_QUOTAS };

/* 0; or -ENOMEM: the limit is reached. */
int hca_quota_take(enum hca_quota kind);
void hca_quota_give(enum hca_quota kind);

#endif
