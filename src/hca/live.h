/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which objects there are: programs that destroy one twice, or use one that is
 * destroyed, get EINVAL as from the kernel's handles, and the object is not looked
 * into. Asked where objects are made, changed and destroyed, not where work is posted
 * or polled. A new object of the same kind in the place of an old one is the new one.
 */
#ifndef HCA_LIVE_H
#define HCA_LIVE_H

#include <stdbool.h>

/* In the lower bits of an address. */
enum hca_kind {
	HCA_CONTEXT = 1,
	HCA_PD,
	HCA_TD,
	HCA_MR,
	HCA_MW,
	HCA_DM,
	HCA_CHANNEL,
	HCA_CQ,
	HCA_QP,
	HCA_SRQ,
	HCA_XRCD,
	HCA_AH,
};

/* `object`: the structure that programs have. */
void hca_live_begin(const void *object, enum hca_kind kind);
void hca_live_end(const void *object, enum hca_kind kind);
bool hca_live(const void *object, enum hca_kind kind);

/* In a forked child. */
void hca_live_forked(void);

#endif
