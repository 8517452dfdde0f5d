/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between hosts (network.c), and machines whose identifier is gone (orphan.c). */
#ifndef RDMACM_NETWORK_H
#define RDMACM_NETWORK_H

#include "rdmacm/link.h"

struct cma_service;

/* Sends an encoded message. */
void network_send(struct cma_link *link, const uint8_t *bytes);
/* Makes a link for the way, held once for the caller, or NULL. */
struct cma_link *network_link(const struct hca_gsi_address *way);
/* A local identifier that leads messages to this process. */
uint32_t network_comm_id(uint32_t number);
/* Gives back a service that the identifier need not serve any more; its lock is held. */
void network_update(struct cma_id *id);

/* At the end of the process: has the peer not confirmed a DREQ? With `repeats` it is sent
 * again. */
bool network_remind(struct cma_link *link, const struct cm_machine *m, bool repeats);

/* ---- orphan.c ---- */

/*
 * The identifier, whose lock is held, is destroyed. If the peer may still need answers, a
 * copy of its machine stays and gives them until it is CM_DONE; the identifier's own is
 * CM_DONE afterwards. Only for links of the network.
 */
void orphan_adopt(struct cma_id *id);
/* Hands a message to the orphan it belongs to; false: it has none. On the progress thread. */
bool orphan_message(struct cma_link *link, const struct cm_mad *mad);
/* network_remind() for all orphans: how many wait. 0 if another thread is in the way. */
unsigned orphans_remind(bool repeats);
/* In a forked child. */
void orphans_forked(void);

#endif
