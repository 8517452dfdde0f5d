/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels: which CQs have an event waiting. The descriptor is an
 * eventfd in semaphore mode, so it is readable exactly while events wait and
 * applications may poll it and set O_NONBLOCK.
 */
#ifndef HCA_CHANNEL_H
#define HCA_CHANNEL_H

#include <stdint.h>
#include <infiniband/verbs.h>

#include "hca/cq.h"

void hca_channel_ref(struct ibv_comp_channel *ch);
/* One event for `cq`; wakes a reader. */
void hca_channel_notify(struct hca_cq *cq);
/* Takes back the events of `cq` that nobody has read, and the reference. Returns
 * the number of those that were read. */
uint32_t hca_channel_forget(struct hca_cq *cq);

/* One event more at the descriptor of a channel or context; one that fails is logged. */
void hca_event_count(int fd);

#endif
