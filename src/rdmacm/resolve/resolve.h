/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding, and resolution of addresses and routes. The identifier's lock is held. */
#ifndef RDMACM_RESOLVE_RESOLVE_H
#define RDMACM_RESOLVE_RESOLVE_H

#include <rdma/rdma_cma.h>
#include <stddef.h>

#include "rdmacm/object/id.h"

/* 0; -ENODEV: no device has the address; or another error. */
int cma_bind(struct cma_id *id, const struct sockaddr *addr);
/* Reports ADDR_RESOLVED or ADDR_ERROR. */
int cma_addr_resolve(struct cma_id *id, const struct sockaddr *src, const struct sockaddr *dst);
/* Makes the path record of the identifier's addresses; 0 or -ENOMEM. */
int cma_route_fill(struct cma_id *id);
/* Takes the caller's path instead (RDMA_OPTION_IB_PATH). 0, or
 * -EINVAL: wrong phase, or none of `paths` has the identifier's GIDs. */
int cma_route_set(struct cma_id *id, const struct ibv_path_data *paths,
		  size_t count);
/* Reports ROUTE_RESOLVED. */
int cma_route_resolve(struct cma_id *id);

#endif
