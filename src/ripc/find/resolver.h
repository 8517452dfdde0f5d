/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the instance that has a service, over UDP: asks all instances of the network by
 * multicast or broadcast, a list of hosts in a file, or a rendezvous; and answers such
 * questions. One thread of its own, which sleeps in poll().
 *
 * Several instances of one host share the port (SO_REUSEADDR; a multicast or broadcast
 * reaches each of them); answers come to a port of each instance's own. What is learned
 * from questions and answers is remembered, an answer is believed only if it has the nonce
 * of a question that waits, and comes from where one was sent to (multicast: from anywhere).
 */
#ifndef RIPC_RESOLVER_H
#define RIPC_RESOLVER_H

#include <stdatomic.h>
#include <stdint.h>

#include "ripc/wire/packet.h"

struct resolver;

struct resolver_config {
	const char *how;      /* as ripc_config.resolver; never NULL */
	uint16_t port;        /* host byte order */
	struct packet_key key;
	struct packet_where self; /* address as it is told to others */
	/* Is this service here? `id` 0: by name. Sets *id. Any thread; no lock of the
	 * resolver is held. */
	bool (*has)(void *arg, uint32_t *id, const char *name);
	/* A service that was known elsewhere is at another instance now. No lock is held. */
	void (*moved)(void *arg, uint32_t id, uint64_t old_instance);
	/* Somebody else has or wants a service that is here. May be NULL. */
	void (*conflict)(void *arg, uint32_t id, const struct packet_where *other);
	void *arg;
};

struct resolver_counters {
	atomic_uint_fast64_t asked, failed, answered, bad_packets, unasked_replies, unauthentic,
		limited; /* questions that got no answer, being too many from one source */
};

/* 0 or a negative errno, *why a sentence for it (static or in a buffer of the thread). */
int resolver_open(struct resolver **out, const struct resolver_config *config,
		  const char **why);
void resolver_close(struct resolver *r);

/* Where `id` is; from memory, unless resolver_forget(). Waits at most timeout_ms, while other
 * threads may ask for the same and others. -EHOSTUNREACH: nobody answered; -ESHUTDOWN: it is
 * being closed. */
int resolver_find(struct resolver *r, uint32_t from, uint32_t id, unsigned timeout_ms,
		  struct packet_where *out);
/* The ID of a name. */
int resolver_find_name(struct resolver *r, const char *name, unsigned timeout_ms,
		       uint32_t *id);
/* What was told of `instance` is not true any more: a connection to it failed or broke. */
void resolver_forget(struct resolver *r, uint64_t instance);
/* Looks for claim_ms whether another instance has the number or the name: -EADDRINUSE. */
int resolver_claim(struct resolver *r, uint32_t id, const char *name, unsigned claim_ms);
/* From here on it is answered for; enters it at a rendezvous, again before its lifetime is
 * over, and takes it out with resolver_leave(). */
void resolver_enter(struct resolver *r, uint32_t id, const char *name);
void resolver_leave(struct resolver *r, uint32_t id, const char *name);

const struct resolver_counters *resolver_counters(const struct resolver *r);

/* The key that follows from the secret in a file, which only those have who shall find each
 * other. 0, or a negative errno: `why` says why. */
int resolver_key_read(struct packet_key *key, const char *path, char *why, size_t size);

/* The rendezvous itself, for `busbar ripc rendezvous`: serves until *stop. `address` NULL:
 * all. `ready` (may be NULL) is called once with the port. At most entries_max services. */
int rendezvous_serve(const char *address, uint16_t port, const struct packet_key *key,
		     unsigned entries_max, const atomic_bool *stop,
		     void (*ready)(void *arg, uint16_t port), void *arg, const char **why);

#endif
