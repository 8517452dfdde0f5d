/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels: the CQs that have unread events. The descriptor is an eventfd in
 * semaphore mode, so it is readable exactly while there are unread events, and applications
 * may poll it and set O_NONBLOCK.
 */
#ifndef HCA_CHANNEL_H
#define HCA_CHANNEL_H

#include <stdint.h>
#include <infiniband/verbs.h>

#include "hca/object/cq.h"

/* A CQ uses the channel, until hca_channel_forget(). */
void hca_channel_ref(struct ibv_comp_channel *ch);
/* Adds an event of `cq` to its channel and wakes a reader. */
void hca_channel_notify(struct hca_cq *cq);
/* Removes the unread events of `cq` from its channel and drops its reference. Returns the number
 * of events that were read. */
uint32_t hca_channel_forget(struct hca_cq *cq);

/* Increments the eventfd of a channel or context; logs an error. */
void hca_event_count(int fd);

#endif
