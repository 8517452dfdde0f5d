/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small subnet manager and administrator, for subnets on which no opensm is installed (IBA volume
 * 1, chapters 14 and 15): it finds the nodes by directed route, assigns LIDs, computes and loads
 * forwarding tables (fabric/routing), sets lanes and arbitration, brings the ports to ACTIVE, looks for
 * changes (light sweeps, trap 128), and answers queries about nodes, ports, links, paths and
 * multicast groups.
 *
 * Pure: datagrams and the time in, datagrams out by send(). No socket, clock, thread or lock. Long
 * answers leave by RMPP.
 *
 * Not here: hand-over between managers (where another one is master, this one stays silent and looks
 * again), partitions beside the default one, quality of service, subscriptions, LMC, virtual
 * ports. Queries that it does not know get the documented status.
 */
#ifndef FABRIC_MANAGER_MANAGER_H
#define FABRIC_MANAGER_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad/mad.h"

struct manager;

/* The upper half of the transaction identifiers of its requests. */
#define MANAGER_TID UINT32_C(0xffffffff)

enum manager_routing {
	MANAGER_MIN_HOP,
	MANAGER_UP_DOWN,
};

struct manager_config {
	uint64_t subnet_prefix; /* 0: the default, fe80:: */
	uint64_t port_guid;     /* of the port that it runs at */
	enum manager_routing routing;
	const char *root;       /* node description of the root of up/down; NULL: one is chosen */
	uint8_t priority;       /* 0 to 15 */
	uint8_t lanes;          /* data lanes to use, 1 to 15; a service level has its own while there are
				 * enough */
	uint64_t sweep_ns;      /* between light sweeps; 0: none by itself */
	uint64_t timeout_ns;    /* of a request; 0: 200 ms */
	unsigned retries;       /* of a request */
	unsigned window;        /* requests on their way at a time; 0: 32 */
};

/* The other end of a message. */
struct manager_address {
	uint16_t lid;  /* 0xffff: directed route */
	uint8_t qpn;   /* 0: subnet management, 1: administration */
	uint8_t sl;
	uint32_t remote_qpn, qkey;
};

/* What a sweep came to. */
struct manager_report {
	unsigned switches, hosts, links; /* that were found */
	unsigned requests, unanswered;   /* of the sweep; those without an answer after all retries */
	uint64_t took_ns;
	bool up;          /* all ports with a link are ACTIVE, all tables are loaded */
	bool other_master; /* another manager is master: nothing was changed */
};

struct manager_ops {
	void (*send)(void *arg, const struct manager_address *to, const uint8_t mad[MAD_BYTES]);
	/* A sweep ended. NULL: not called. */
	void (*swept)(void *arg, const struct manager_report *report);
	void *arg;
};

/* 0 or -ENOMEM. The first sweep begins with the first manager_turn(). */
int manager_open(const struct manager_config *config, const struct manager_ops *ops,
		 struct manager **out);
void manager_close(struct manager *m);

/* A MAD has come: an answer, a trap, a query, or SMInfo. */
void manager_receive(struct manager *m, const struct manager_address *from,
		     const uint8_t mad[MAD_BYTES], uint64_t now_ns);
/* Does what is due. */
void manager_turn(struct manager *m, uint64_t now_ns);
/* When manager_turn() is due; UINT64_MAX: never by itself. */
uint64_t manager_due_ns(const struct manager *m);
/* A full sweep begins when the one that runs has ended. */
void manager_sweep(struct manager *m);

#endif
