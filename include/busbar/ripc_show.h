/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an instance shows to programs of the same user on the same host (busbar ripc top and
 * list): each has a socket of AF_UNIX, SOCK_SEQPACKET, with an abstract name, and sends who
 * connects to it one packet: a head and its services. Peers elsewhere do not reach it.
 */
#ifndef BUSBAR_RIPC_SHOW_H
#define BUSBAR_RIPC_SHOW_H

#include <busbar/ripc.h>

/* Behind the NUL: then the user, the process, and the instance, in hexadecimal. */
#define RIPC_SHOW_NAME "busbar-ripc/"
#define RIPC_SHOW_MAGIC UINT32_C(0x72697031) /* another one when the structures change */
#define RIPC_SHOW_SERVICES_MAX 256
#define RIPC_SHOW_ADDRESS_BYTES 64

struct ripc_show_head {
	uint32_t magic;
	uint32_t pid;
	uint64_t instance;
	uint32_t services;      /* that follow */
	uint32_t services_left_out;
	char command[16];
	char address[RIPC_SHOW_ADDRESS_BYTES]; /* of its listener, with the port */
	struct ripc_counters counters;
};

struct ripc_show_service {
	uint32_t id;
	uint32_t queued;        /* messages that wait for it */
	uint64_t queued_bytes;  /* of the long ones */
	uint32_t held;          /* peers that were asked to hold */
	uint32_t offers;        /* return buffers that are with peers */
	char name[RIPC_NAME_MAX + 1];
};

#define RIPC_SHOW_BYTES_MAX (sizeof(struct ripc_show_head) + \
			RIPC_SHOW_SERVICES_MAX * sizeof(struct ripc_show_service))

#endif
