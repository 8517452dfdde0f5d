/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set of existing objects. If a program destroys an object twice, or uses one that it
 * has destroyed, it gets EINVAL, as with the kernel's handles, and the object is not
 * dereferenced. Checked by functions that make, change and destroy objects, not by posting
 * and polling. A new object of the same kind at the same address counts as the old one.
 */
#ifndef HCA_LIVE_H
#define HCA_LIVE_H

#include <stdbool.h>

/* Stored in the lower bits of the address. */
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

/* `object`: the public structure. Enter it, remove it, and look it up. */
void hca_live_begin(const void *object, enum hca_kind kind);
void hca_live_end(const void *object, enum hca_kind kind);
bool hca_live(const void *object, enum hca_kind kind);

/* In a forked child. */
void hca_live_forked(void);

#endif
