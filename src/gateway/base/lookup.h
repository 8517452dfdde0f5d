/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of names, in a limited time: a server of names that does not answer holds
 * up whoever asks for half a minute otherwise, and nobody can call him back. */
#ifndef GATEWAY_BASE_LOOKUP_H
#define GATEWAY_BASE_LOOKUP_H

#include <netdb.h>

/*
 * As getaddrinfo(), which does the work; a name that is none of numbers in a thread of
 * its own. EAI_AGAIN after ten seconds, or when the process is to end: the thread is
 * left behind then. The caller frees *out by freeaddrinfo().
 */
int lookup_address(const char *host, const char *service,
		   const struct addrinfo *hints, struct addrinfo **out);

/* For tests: what the thread calls. */
extern int (*lookup_resolver)(const char *host, const char *service,
			      const struct addrinfo *hints,
			      struct addrinfo **out);

#endif
