/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifiers: making, device, change of channel, destruction. */
#ifndef RDMACM_ID_ID_H
#define RDMACM_ID_ID_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "rdmacm/event/event.h"

/* May identifiers of this port space have queue pairs of this type? */
bool cma_service_exists(enum rdma_port_space ps, enum ibv_qp_type type);
int cma_id_create(struct rdma_event_channel *channel, void *context,
		  enum rdma_port_space ps, enum ibv_qp_type qp_type,
		  struct cma_id **out);
/* Frees the memory; no list and no other thread knows the identifier. */
void cma_id_free(struct cma_id *id);
/* Ends the connection, stops callbacks, drops queued events. No lock is held. */
void cma_id_shut(struct cma_id *id);
/* 0 or -ENODEV: the device has failed. The identifier's lock is held. */
int cma_id_bind_device(struct cma_id *id, const struct cma_gid_place *place);
/* Moves the identifier and its queued events to `ch`; `sync`: the channel belongs to
 * the identifier. The lock is held. */
void cma_id_move(struct cma_id *id, struct cma_channel *ch, bool sync);
/* The program takes a CONNECT_REQUEST: the child leaves the listener. */
bool cma_request_deliver(struct cma_event *ev);

#endif
