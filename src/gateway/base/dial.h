/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects sockets to servers: finds the addresses of a name and tries one after the other,
 * until a time is over or another thread cancels it. Of the caller, no call blocks for longer.
 */
#ifndef GATEWAY_BASE_DIAL_H
#define GATEWAY_BASE_DIAL_H

#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dial_limit {
	uint64_t until_ns;            /* of clock_now_ns() */
	const atomic_bool *cancelled; /* set by any thread; NULL: nobody cancels */
	/* A signal of util/wakeup.h that is posted after *cancelled is set; it is drained. -1:
	 * without it, *cancelled is looked at every 20 ms. */
	int wake_fd;
};

/* Waits for `events` of poll() at `fd`, or for a post of wake_fd. 0: look again; -ECANCELED, or
 * -ETIMEDOUT. */
int dial_wait(int fd, short events, const struct dial_limit *l);

/* Waits for the end of a connect() that is in progress. 0, its negative errno, or as above. */
int dial_await(int fd, const struct dial_limit *l);

/* A port for outgoing connections may be the one that is called: then a socket reaches itself. */
bool dial_is_own(int fd);

/* Connects a socket that does not block. 0 or a negative errno; -ECANCELED and -ETIMEDOUT as
 * above; -ECONNREFUSED, too, if it has reached itself. */
int dial_connect(int fd, const struct sockaddr *to, socklen_t len, const struct dial_limit *l);

/* Connects a stream socket to one address. The descriptor, which does not block, closes on exec()
 * and has TCP_NODELAY if it is of TCP, or a negative errno; -ECANCELED and -ETIMEDOUT as above. */
int dial_address(const struct addrinfo *to, const struct dial_limit *l);

/*
 * Connects to the first address of `host` (a name or an address) that answers at `port` (a
 * number or a service). Of the time that is left each gets its share, so that one that is silent
 * leaves time for the others. As dial_address(), with the reason in `why`; -EHOSTUNREACH: there
 * is no address.
 */
int dial_host(const char *host, const char *port, const struct dial_limit *l, char *why,
	      size_t size);

#endif
