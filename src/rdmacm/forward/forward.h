/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers on real devices are forwarded to the system's librdmacm.so.1.
 *
 * The program's identifier is always a struct cma_id. If its address belongs to a
 * real device, it has a shadow, an identifier of the system's library that does the
 * work. If it is bound to a wildcard address, it may be bound itself and have a
 * shadow as well (shadow_beside), until the destination decides which of the two
 * is used.
 */
#ifndef RDMACM_FORWARD_FORWARD_H
#define RDMACM_FORWARD_FORWARD_H

#include <rdma/rdma_cma.h>

#include "rdmacm/base/base.h"
#include "rdmacm/event/event.h"
#include "rdmacm/object/id.h"
#include "rdmacm/system/system.h"

/* Result: the call is not for the system's library; the caller carries it out. */
#define FORWARD_OURS 1

/* FORWARD_INSIDE(); for an identifier with nothing but a shadow returns `function`'s result. */
#define FORWARD(id, function, name, ...)                                \
	do {                                                            \
		FORWARD_WAITING(name, __VA_ARGS__);                     \
		if (unlikely(forward_owns(cma_id_of(id))))              \
			return cma_result(function(__VA_ARGS__));       \
	} while (0);                                                    \
	CANCEL_OFF

/* Is the identifier used through its shadow alone? */
static inline bool forward_owns(const struct cma_id *id)
{
	return id->shadow && !id->shadow_beside;
}

/* ---- addresses (addr.c) ---- */

/* As the public functions, but 0 or a negative errno. FORWARD_OURS: the address is
 * soft0's, and the caller binds or resolves it. */
int forward_bind(struct cma_id *id, const struct sockaddr *addr);
int forward_resolve(struct cma_id *id, struct sockaddr *src, struct sockaddr *dst,
		    int timeout_ms);
/* FORWARD_OURS: the caller listens as well, and calls forward_drop() if it fails. */
int forward_listen(struct cma_id *id, int backlog);
/* Destroys the shadow, after its events are acknowledged. 0, or a negative errno:
 * the shadow still exists. */
int forward_drop(struct cma_id *id);
/* Before a call: copies to the shadow what the program may have changed (QP, SRQ,
 * PD). After it: copies what the call has changed from the shadow. */
void forward_push(struct cma_id *id);
void forward_pull(struct cma_id *id);

/* ---- events (event.c) ---- */

/* Takes and translates the next event of the system's channel and counts it as
 * reported. 0 and NULL: an event was dropped; -EAGAIN: there is none. */
int forward_event_take(struct cma_channel *ch, struct cma_event **out);
/* Moves the shadow to `ch`; 0 or a negative errno. */
int forward_migrate(struct cma_id *id, struct cma_channel *ch);

/* ---- other calls, as the public ones but 0 or a negative errno
 * (call.c) ---- */

int forward_resolve_route(struct rdma_cm_id *id, int timeout_ms);
int forward_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int forward_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int forward_reject(struct rdma_cm_id *id, const void *private_data, uint8_t len);
int forward_reject_ece(struct rdma_cm_id *id, const void *private_data,
		       uint8_t len);
int forward_establish(struct rdma_cm_id *id);
int forward_notify(struct rdma_cm_id *id, enum ibv_event_type event);
int forward_disconnect(struct rdma_cm_id *id);
int forward_join(struct rdma_cm_id *id, struct sockaddr *addr, void *context);
int forward_join_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
		    void *context);
int forward_leave(struct rdma_cm_id *id, struct sockaddr *addr);
int forward_set_option(struct rdma_cm_id *id, int level, int name, void *value,
		       size_t len);
int forward_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);
int forward_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/* ---- queue pairs (qp.c) ---- */

int forward_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr,
			 int *mask);
int forward_create_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
void forward_destroy_qp(struct rdma_cm_id *id);
/* For XRC; a basic SRQ needs only the device. */
int forward_create_srq(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);

#endif
