/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a point once, in virtual time, and counts what goes over the network. */
#ifndef VIRTUAL_ODP_RUN_H
#define VIRTUAL_ODP_RUN_H

#include "virtual/odp/point.h"

struct odp_counts {
	uint64_t requests, responses; /* packets of the client, and of the server */
	uint64_t repeated;            /* requests whose sequence number was sent before */
	uint64_t rnr_naks, sequence_naks;
	uint64_t lost;                /* requests that the client's adapter loses (damming) */
	uint64_t timeouts;            /* of the client's queue pairs */
};

struct odp_result {
	struct odp_counts count;
	uint64_t took_ns;       /* from the first post until the last completion */
	uint64_t failed;        /* operations */
	enum ibv_wc_status status; /* of the first that failed */
	uint64_t wrong;         /* operations that have brought other bytes */
	uint64_t timeout_ns, rnr_ns; /* as the adapter has them */
	/* When each operation was posted and completed, since the first post. */
	uint64_t posted_ns[ODP_OPS_MAX], done_ns[ODP_OPS_MAX];
};

/* False: the profile or the file of the capture is not usable, which is logged. */
bool odp_run(const struct odp_point *point, uint64_t seed, struct odp_result *out);

#endif
