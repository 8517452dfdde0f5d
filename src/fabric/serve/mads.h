/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs of clients: which agent of which client a MAD is for (by the transaction id of an answer, by
 * class, version and method of a request, as umad_register(3) says it), and requests that are
 * repeated until their answer comes. RMPP is the client's.
 */
#ifndef FABRIC_SERVE_MADS_H
#define FABRIC_SERVE_MADS_H

#include "fabric/serve/state.h"

struct agent_address;
struct mad_header;

/* May the client send it? Of a user who may not cut cables only Gets of the classes by which nodes are
 * set: he would do the same with them. */
bool serve_mads_permitted(const struct serve_client *c, const struct mad_header *m);
/* PLUG_AGENT_OPEN and its answer. 0, or -EINVAL: no number or class of an agent, -EEXIST: the number
 * is in use. */
int serve_mads_open(struct serve_client *c, uint32_t agent, const struct plug_agent *what);
int serve_mads_close(struct serve_client *c, uint32_t agent); /* -ENOENT */
/* All agents and requests of the client end. */
void serve_mads_end(struct serve_client *c);

/* PLUG_MAD from a client: 0, or a negative errno: it was not sent. */
int serve_mads_send(struct serve_client *c, const struct plug_mad *to,
		    const uint8_t mad[PLUG_MAD_BYTES]);
/* A MAD has come to the host, and no agent of the node is for it. */
void serve_mads_deliver(struct serve_host *h, struct serve *s, const uint8_t mad[PLUG_MAD_BYTES],
			const struct agent_address *from);
/* The timer of a request has expired. */
void serve_mads_expire(struct serve_pending *p);

#endif
