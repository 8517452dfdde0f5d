/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What busbar's librdmacm.so.1 offers beyond the public interface of the
 * connection manager: identifiers with a service type of the caller's choice, and
 * with that the unreliable connected service (UC). Not part of any other
 * librdmacm, apart from ones that were changed to export this function; a program
 * that runs with them all asks for it at run time:
 *
 *	extern __typeof__(rdma_create_id2) rdma_create_id2 __attribute__((weak));
 *
 *	if (!rdma_create_id2)
 *		... this library has none
 */
#ifndef BUSBAR_RDMA_CMA_H
#define BUSBAR_RDMA_CMA_H

#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * As rdma_create_id(3), with the type of the queue pairs that connections will
 * have. A listener accepts requests for its own type only; a caller's request
 * names it. 0, or -1 with errno: EINVAL for a type that does not belong to the
 * port space. They go together like this:
 *
 *	RDMA_PS_TCP    RC, UC, XRC_SEND (callers), XRC_RECV (listeners)
 *	RDMA_PS_UDP    UD
 *	RDMA_PS_IPOIB  UD, UC
 *	RDMA_PS_IB     all of these
 */
int rdma_create_id2(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		    void *context, enum rdma_port_space ps,
		    enum ibv_qp_type qp_type);

#ifdef __cplusplus
}
#endif

#endif
