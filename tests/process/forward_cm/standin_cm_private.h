/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the stand-in; see standin_cm.h. One lock guards everything. */
#ifndef STANDIN_CM_PRIVATE_H
#define STANDIN_CM_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>

#include "standin_cm.h"

struct stand_id {
	struct rdma_cm_id id;
	struct stand_id *next;
	struct stand_id *peer;
	bool listening, connected;
	unsigned reported, completed;
};

struct stand_event {
	struct rdma_cm_event event;
	struct stand_event *next;
	struct stand_id *owner;
	struct rdma_event_channel *channel;
	char private_data[64];
};

extern struct standin_cm_state standin_cm_state;
extern pthread_mutex_t stand_lock;
extern struct stand_id *stand_ids;
extern struct ibv_context *stand_verbs;
extern struct ibv_pd stand_pd;

/* ---- the lock is held by all of these ---- */

struct stand_id *stand_id_add(struct rdma_event_channel *channel, void *context,
			      enum rdma_port_space ps, enum ibv_qp_type type);
struct stand_event *stand_event_add(struct stand_id *owner, struct stand_id *id,
				    enum rdma_cm_event_type type, int status);
void stand_record(const char *name, long a, long b, long c, long d);
/* A port that is not taken, in network order. */
uint16_t stand_port_next(void);
/* Gives the lock back; 0, or -1 and errno. */
int stand_leave(int error);

/* Without the lock: before anything else in a call that may be the first. */
void stand_init(void);

static inline struct stand_id *stand(struct rdma_cm_id *id)
{
	return (struct stand_id *)(void *)id;
}

/* A call begins: recorded by the name of the function. */
#define ENTER(a, b, c, d)                                               \
	do {                                                            \
		pthread_mutex_lock(&stand_lock);                        \
		stand_record(__func__, (long)(a), (long)(b), (long)(c), \
			     (long)(d));                                \
	} while (0)

#endif
