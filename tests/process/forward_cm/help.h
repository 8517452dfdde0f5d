/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of forwarded connections share, on top of cm_help.h. */
#ifndef FORWARD_CM_HELP_H
#define FORWARD_CM_HELP_H

#include "cm_help.h"
#include "standin_cm.h"

#define REAL_HOST "127.0.0.9" /* stand0's, unless the case says otherwise */
#define SOFT_HOST "127.0.0.1"

/* Of the stand-in that the library under test has opened; NULL when none is. */
struct standin_cm_state *standin(void);

struct sockaddr *address_of(const char *host, uint16_t port);
bool is_on(const struct rdma_cm_id *id, const char *device);

/* An identifier on `ch` that is bound to the address. */
struct rdma_cm_id *bound(struct rdma_event_channel *ch, const char *host,
			 uint16_t port);
/* One with its route to `host` resolved, from `host`. */
struct rdma_cm_id *routed(struct rdma_event_channel *ch, const char *host,
			  uint16_t port);
/* A queue pair with completion queues of the library's. */
int qp_make(struct rdma_cm_id *id, enum ibv_qp_type type);

#endif
