/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection manager and an adapter without a network, for tests of the
 * infiniband node-type's management thread. It stands in for the functions of
 * librdmacm and libibverbs that the node calls; what the peer does is set by
 * the test. It counts every object, so that a test can see that none is left.
 */
#ifndef TESTS_UNIT_INFINIBAND_FAKE_CM_H
#define TESTS_UNIT_INFINIBAND_FAKE_CM_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

enum fake_peer {
	FAKE_PEER_ACCEPTS,
	FAKE_PEER_REJECTS,     /* there is no listener */
	FAKE_PEER_UNREACHABLE,
	FAKE_PEER_NO_ADDRESS,
	FAKE_PEER_NO_ROUTE,
	FAKE_PEER_SILENT,      /* no answer to the request, yet */
};

struct fake_objects {
	int channels, ids, listeners, qps, cqs, pds, mrs, ahs, comp_channels;
};

void fake_reset(void);
void fake_set_peer(enum fake_peer p);
/* Only this IPv4 address is resolved; NULL: all are. */
void fake_set_only_address(const char *host);
/* The adapter that connections go over is another one than that of binds. */
void fake_set_other_adapter(bool other);

/* The peer's queue pair, as a datagram lookup finds it. */
void fake_set_remote_qpn(uint32_t qpn);

/* A request of a peer; on the listener that must be there. */
void fake_request(void);
/* On the identifier that has the connection. */
void fake_event(enum rdma_cm_event_type type, int status);
/* All open requests complete with an error. */
void fake_break(void);

struct fake_objects fake_objects(void);
unsigned fake_resolves(void);  /* of addresses */
unsigned fake_connects(void), fake_accepts(void), fake_rejects(void),
	fake_disconnects(void);
unsigned fake_arms(void);      /* requests for a completion event */
unsigned fake_receives(void);  /* open receive requests */
unsigned fake_sent(void);      /* requests posted, without the last flush */

#endif
