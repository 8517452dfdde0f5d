/* SPDX-License-Identifier: BSD-2-Clause */
/* What every file of the library uses: results, settings, random numbers. */
#ifndef RDMACM_BASE_BASE_H
#define RDMACM_BASE_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#define CMA_EXPORT __attribute__((visibility("default")))
#define CMA_HOP_LIMIT 64
/* 4.096 us * 2^16 = 0.27 s, as in Linux; the ACK timeout is twice that. Inside of a host, where
 * nothing is lost, the timeout covers the time in which a peer gets no processor. */
#define CMA_PACKET_LIFETIME 16

/* Converts 0 or a negative errno to the public convention: -1 and errno. */
static inline int cma_result(int ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* The first message by which an initiator of iWARP lets the responder begin. */
enum cma_rtr {
	CMA_RTR_AUTO, /* what the responder prefers */
	CMA_RTR_WRITE,
	CMA_RTR_READ,
	CMA_RTR_NONE, /* the program sends first */
};

struct cma_settings {
	uint64_t timeout_ms; /* after which an unanswered request has failed */
	/* What this end asks for when it sets up connections of iWARP. */
	uint64_t mpa_revision;
	bool mpa_crc, mpa_markers;
	int mpa_rtr; /* enum cma_rtr */
};

extern struct cma_settings cma_settings;

uint32_t cma_random(uint32_t mask);

#endif
