/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts in virtual time (clock.h), whose queue pairs send RoCE v2 packets through
 * transport/packet over a simulated network (carrier/sim.h), all in one process and on one
 * thread.
 *
 * The queue pairs are those of the public verbs functions. `qp_context` and `cq_context` name
 * the host of a queue pair, which knows no other host's packets.
 */
#ifndef VIRTUAL_NET_H
#define VIRTUAL_NET_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/carrier/sim.h"
#include "transport/packet/packet.h"
#include "wire/ib/header.h"

#define VIRTUAL_HOSTS 6

/* A packet that leaves; the packets of a train one by one. */
struct packet_seen {
	uint64_t at_ns;
	unsigned from, to;
	uint8_t opcode; /* enum ib_operation; of RC */
	bool unreliable;
	bool lost;      /* the adapter has it lost, by its profile of memory on demand */
	uint32_t qpn;   /* to which it goes */
	uint32_t psn;
	uint8_t syndrome; /* of answers with an AETH */
};

/* Of packets that are merged. */
#define MERGED_BYTES 65536

struct virtual_host {
	unsigned number;
	struct packet_port port;
	struct carrier link; /* between the port and the network: addresses */
	struct carrier *end;
	/* Packets that came together; 0: none. */
	unsigned merged;
	struct carrier_unit unit;
	uint8_t bytes[MERGED_BYTES];
	size_t filled;
};
extern struct virtual_host virtual_hosts[VIRTUAL_HOSTS];
extern struct carrier_sim *virtual_sim;

/* A new network without packets; no queue pair is left from an earlier one. The times
 * of a run depend on its seed alone. */
void virtual_open(const struct carrier_sim_params *params);
void virtual_close(void);
/* Moves the clock to the next packet or timer, `until_ns` at most; the host that a packet came to
 * takes it when the progress thread runs. */
void virtual_advance(uint64_t until_ns);
/* Called for each packet: true loses it. NULL: no packet is lost. */
extern bool (*virtual_judge)(const struct packet_seen *p);
/* Called for each packet with its bytes from the BTH to the ICRC: when it leaves, and when it has
 * come. Who loses packets does not hinder the first. NULL: it is not. */
struct virtual_watcher {
	void (*saw)(void *arg, const struct virtual_host *host, enum carrier_direction direction,
		    const struct carrier_unit *unit, const uint8_t *bytes, size_t length);
	void *arg;
};
extern const struct virtual_watcher *virtual_watcher;
/* The largest number of packets in a train; 1 at first. Packets that arrive together are merged
 * to so many as well, as network cards do (GRO). */
extern unsigned virtual_train;
/* packet_port.buffer_bytes; 0 at first. */
extern uint32_t virtual_buffer_bytes;
void virtual_gid(unsigned host, union ibv_gid *gid);
/* Opens the only device of the process, and its protection domain. */
void virtual_device(void);
extern struct ibv_context *virtual_ctx;
extern struct ibv_pd *virtual_pd;

#endif
