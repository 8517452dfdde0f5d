/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library in the place of the system's librdmacm.so.1: identifiers on stand0
 * that connect to each other inside of the process, and a record of all calls.
 * The test finds `standin_cm_state` in it by the loader.
 *
 *   STANDIN_CM_ADDRESS  the one IPv4 address that stand0 has
 */
#ifndef STANDIN_CM_H
#define STANDIN_CM_H

#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#define STANDIN_CM_ARGS 4

struct standin_cm_state {
	/* How often a function was called, and its last arguments. */
	unsigned (*count)(const char *name);
	long (*arg)(const char *name, int index);
	/* The identifier that was created last. */
	struct rdma_cm_id *(*newest)(void);
	/* Queues an event of a shadow. */
	void (*play)(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status);
	atomic_int wildcard_refusals; /* so many binds of a wildcard fail, */
	atomic_int wildcard_errno;    /* with this */
	atomic_int identifiers, channels, events; /* that there are */
	atomic_int calls_to_itself;
	int last_option;              /* the value of rdma_set_option() */
	char private_data[64];        /* of rdma_connect() */
	int private_len;
};

/*
 * A port that no other process has by chance: below those that the kernel and
 * soft0 give away, and of this process among several that run the same test.
 */
static inline uint16_t standin_cm_port(void)
{
	return (uint16_t)(20000 + getpid() % 10000);
}

#endif
