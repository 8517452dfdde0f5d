/* SPDX-License-Identifier: BSD-2-Clause */
/* Yields the processor in a thread that polls without finding anything. */
#ifndef HCA_YIELD_H
#define HCA_YIELD_H

/* Called now and then by a thread that has found nothing since the last call. Does nothing where
 * BUSBAR_POLL_YIELD is off. */
void hca_yield(void);

#endif
