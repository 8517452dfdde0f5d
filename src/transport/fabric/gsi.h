/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pair 1 through a fabric: between its packets and hca/path/gsi.h.
 *
 * The fabric gives packets for queue pair 1 of a host to all of the host's processes. Each takes those for
 * its own connections and listeners: answers by the slot in their communication identifier, requests
 * by their service. Slots and services are names of the abstract namespace, so two processes of a
 * host do not have the same one.
 *
 * A request for a service that nobody serves waits half a second for it, as programs close a listener
 * and open it again while their peer calls (transport/roce/dispatch.h); then the process with the lowest
 * slot refuses it. For a host without processes the fabric refuses (fabric/serve/mads.c); where there are
 * some and none uses connection management, callers find out by their timeout.
 */
#ifndef TRANSPORT_FABRIC_GSI_H
#define TRANSPORT_FABRIC_GSI_H

#include "hca/path/gsi.h"

struct carrier_unit;

extern const struct hca_gsi_ops fabric_gsi_ops;

/* A packet for queue pair 1. Any thread, with any locks; the progress thread handles it. */
void fabric_gsi_arrived(const struct carrier_unit *unit);

#endif
