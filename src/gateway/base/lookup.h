/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the addresses of host names in a limited time. getaddrinfo() alone blocks its
 * caller for half a minute when a name server does not answer, and cannot be
 * cancelled. */
#ifndef GATEWAY_BASE_LOOKUP_H
#define GATEWAY_BASE_LOOKUP_H

#include <netdb.h>
#include <stdatomic.h>
#include <stdint.h>

/*
 * Like getaddrinfo(), which it calls: directly for a numeric address, in a thread of
 * its own for a name. Returns 0 or an EAI_ error; EAI_AGAIN after ten seconds or when
 * the process is about to end, and that thread continues until getaddrinfo() returns.
 * The caller frees *out by freeaddrinfo().
 */
int lookup_address(const char *host, const char *service,
		   const struct addrinfo *hints, struct addrinfo **out);

/* The same, but EAI_AGAIN after `limit_ns`, or when another thread has set *cancelled (NULL:
 * nobody does), which is looked at every 20 ms. */
int lookup_address_within(const char *host, const char *service, const struct addrinfo *hints,
			  struct addrinfo **out, uint64_t limit_ns, const atomic_bool *cancelled);

/* The function that the thread calls; tests replace it. */
extern int (*lookup_resolver)(const char *host, const char *service,
			      const struct addrinfo *hints,
			      struct addrinfo **out);

#endif
