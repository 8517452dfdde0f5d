/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels, and the events in them. */
#ifndef RDMACM_EVENT_EVENT_H
#define RDMACM_EVENT_EVENT_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rdmacm/object/id.h"
#include "util/container_of.h"
#include "util/list.h"
#include "wire/cm.h"

struct cma_channel {
	struct rdma_event_channel pub;
	pthread_mutex_t lock;
	struct list events;
	int count_fd; /* one count per event; is pub.fd, or watched by it */
	/* The channel of the system's library, made on first use (merge.c). */
	_Atomic(struct rdma_event_channel *) system;
	atomic_uint turn;
};

struct cma_event {
	struct rdma_cm_event pub;
	struct list entry;
	struct cma_id *owner; /* its destruction waits until the event is acknowledged */
	/* Does what the event implies when the program takes it (QP states, groups), and may change
	 * its type. False: it is not reported. NULL: nothing is to be done. */
	bool (*deliver)(struct cma_event *ev);
	uint32_t group_serial; /* of the group, for MULTICAST_JOIN */
	struct rdma_cm_event *system; /* the system library's event, if it is of a shadow */
	uint8_t private_data[CMA_PRIVATE_MAX];
};

static inline struct cma_channel *cma_channel_of(struct rdma_event_channel *c)
{
	return container_of(c, struct cma_channel, pub);
}

static inline struct cma_event *cma_event_of(struct rdma_cm_event *e)
{
	return container_of(e, struct cma_event, pub);
}

int cma_channel_create(struct cma_channel **out);
void cma_channel_destroy(struct cma_channel *ch);
/* NULL: out of memory (logged). */
struct cma_event *cma_event_new(struct cma_id *owner, struct rdma_cm_id *id,
				enum rdma_cm_event_type type, int status);
/* Queues on the owner's channel; the owner's lock is held. */
void cma_event_post(struct cma_event *ev);
int cma_event_report(struct cma_id *id, enum rdma_cm_event_type type, int status);
/* Moves the queued events of `owner` from `ch` to `out`, in order. */
void cma_channel_take(struct cma_channel *ch, struct cma_id *owner,
		      struct list *out);
void cma_channel_put(struct cma_channel *ch, struct list *events);
bool cma_channel_has_event(struct cma_channel *ch, struct cma_id *owner);
/* The next event, after one count was read. NULL: it was removed, or is not reported. */
struct cma_event *cma_channel_next(struct cma_channel *ch);
/* Counts an event as acknowledged: by the program, or because it was not reported. */
void cma_event_complete(struct cma_id *owner);
/* Synchronous identifiers: waits for the event that follows the call. 0, or the
 * event's failure as a negative errno. Asynchronous ones: 0 at once. */
int cma_id_complete(struct cma_id *id);

/* ---- channels with events of the system's library (merge.c) ---- */

/* Makes pub.fd of a new channel: 0 or a negative errno. */
int cma_channel_fd_make(struct cma_channel *ch);
/* Can the channel have events of the system's library as well? */
static inline bool cma_channel_is_merged(const struct cma_channel *ch)
{
	return ch->pub.fd != ch->count_fd;
}
/* The system's channel for `ch`, made on first use; 0 or a negative errno. */
int cma_channel_system(struct cma_channel *ch, struct rdma_event_channel **out);
void cma_channel_system_close(struct cma_channel *ch);

#endif
