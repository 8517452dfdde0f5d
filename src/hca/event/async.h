/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events (async.c). */
#ifndef HCA_ASYNC_H
#define HCA_ASYNC_H

#include <infiniband/verbs.h>

#include "hca/object/context.h"
#include "hca/object/cq.h"
#include "hca/object/qp.h"
#include "hca/object/srq.h"

/* ---- async.c ---- */
void hca_async_qp_event(struct hca_qp *qp, enum ibv_event_type type);
/* A message arrived in RTR: raises IBV_EVENT_COMM_EST, once per connection. */
void hca_qp_established(struct hca_qp *qp);
void hca_async_cq_event(struct hca_cq *cq, enum ibv_event_type type);
void hca_async_srq_event(struct hca_srq *srq, enum ibv_event_type type);
void hca_async_device_event(struct hca_context *ctx, enum ibv_event_type type);
/* An event of the port of the context. It replaces an unread event of the same type, because the
 * events of a context may never be read. */
void hca_async_port_event(struct hca_context *ctx, enum ibv_event_type type);
void hca_async_init(struct hca_context *ctx);
void hca_async_fini(struct hca_context *ctx);
/* Remove the unread events of an object, and wait until the others are acknowledged. */
void hca_async_qp_forget(struct hca_qp *qp);
void hca_async_cq_forget(struct hca_cq *cq);
void hca_async_srq_forget(struct hca_srq *srq);

#endif
