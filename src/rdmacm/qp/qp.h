/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of identifiers: changes of their state, completion queues, multicast groups. */
#ifndef RDMACM_QP_QP_H
#define RDMACM_QP_QP_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "rdmacm/event/event.h"

/* ---- states (qp.c); without the identifier's lock ---- */

/* Between these the QP, if there is one, is not destroyed. */
void cma_qp_enter(struct cma_id *id);
void cma_qp_leave(struct cma_id *id);
/* Attach or detach the identifier's QP, if there is one. */
int cma_qp_attach(struct cma_id *id, const union ibv_gid *gid, uint16_t lid);
void cma_qp_detach(struct cma_id *id, const union ibv_gid *gid, uint16_t lid);
/* The attributes with which the QP goes to attr->qp_state. */
int cma_qp_attr(struct cma_id *id, struct ibv_qp_attr *attr, int *mask);
/* Moves a QP of the identifier to a state with them. */
int cma_qp_step(struct cma_id *id, struct ibv_qp *qp, enum ibv_qp_state state);
int cma_qp_connect(struct cma_id *id); /* INIT, RTR, RTS */
void cma_qp_fail(struct cma_id *id);   /* to the error state */
/* The same on the progress thread, with the lock: at once, or by the thread that
 * holds qp_lock when it releases it. */
void cma_qp_fail_soon(struct cma_id *id);
/* A datagram's destination of that GID, as programs are told it; `id` has its source. */
void cma_ud_fill(struct rdma_ud_param *ud, const struct cma_id *id,
		 const union ibv_gid *to, uint32_t qpn, uint32_t qkey);

/* ---- completion queues (qp.c) ---- */

/* Makes the completion queues, with channels, that the caller did not give. XRC: the
 * initiator has no receives, and the target receives through its SRQ's queue. */
int cma_cqs_create(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
void cma_cqs_destroy(struct rdma_cm_id *id);
int cma_cq_create(struct rdma_cm_id *id, uint32_t size, struct ibv_cq **cq,
		  struct ibv_comp_channel **channel);

/* ---- multicast groups (group.c) ---- */

/* The lock is held for this and the next. Joins a group and reports MULTICAST_JOIN. */
int cma_group_join(struct cma_id *id, const struct sockaddr *addr, bool sends_only,
		   void *context);
/* Takes the group out of the list and drops its event; NULL: the identifier is in none. */
struct cma_group *cma_group_leave(struct cma_id *id, const struct sockaddr *addr);
/* Detaches the QP from the group that was left, and frees it; without the lock. */
void cma_group_free(struct cma_id *id, struct cma_group *g);
/* Detaches the QP from all groups; without the lock. */
void cma_groups_detach(struct cma_id *id);
/* Frees all groups of an identifier that is destroyed. */
void cma_groups_free(struct cma_id *id);

#endif
