/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports: names in the abstract namespace. */
#ifndef RDMACM_ID_PORT_H
#define RDMACM_ID_PORT_H

#include <rdma/rdma_cma.h>

#include "rdmacm/object/id.h"
#include "util/abstract.h"

/* Takes the port of src_addr, or a free one if it is 0; 0, -EADDRINUSE or another. */
int cma_port_take(struct cma_id *id);
void cma_port_release(struct cma_id *id);
/* The names under which a listener for `dst` may be found, in order of preference. */
#define CMA_PORT_NAMES 3
int cma_port_names(enum rdma_port_space ps, const struct sockaddr *dst,
		   struct abstract_name names[CMA_PORT_NAMES]);

#endif
