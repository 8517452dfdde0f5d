/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a resolver:
 *
 *	resolver.c          opening and closing, the thread, what else is asked of it
 *	resolver_methods.c  the ways to ask, and to whom each has led
 *	resolver_ask.c      questions that wait for an answer
 *	resolver_claim.c    whether a number or name is free
 *	resolver_take.c     what comes from the network
 *	resolver_enter.c    services of this instance, which a rendezvous shall know
 *
 * One lock, which nobody holds while waiting, sending to groups, reading files or calling
 * what the program has handed over.
 */
#ifndef RIPC_RESOLVER_PRIVATE_H
#define RIPC_RESOLVER_PRIVATE_H

#include <pthread.h>

#include "ripc/find/hosts.h"
#include "ripc/find/known.h"
#include "ripc/find/limit.h"
#include "ripc/find/net.h"
#include "ripc/find/resolver.h"

#define METHODS_MAX 8
#define FINISHED_MAX 64
#define RESOLVER_MS UINT64_C(1000000)

enum method_kind { METHOD_MULTICAST, METHOD_BROADCAST, METHOD_HOSTS, METHOD_RENDEZVOUS };

struct method {
	enum method_kind kind;
	struct hosts *hosts;
	union address rendezvous;
};

/* What is asked, by one or several threads. */
struct question {
	struct list link;      /* in resolver.questions until it is answered */
	uint64_t nonce;
	uint32_t from, id;     /* id 0: by name */
	char name[RIPC_NAME_MAX + 1];
	unsigned waiters;
	bool answered;
	uint32_t found;
	struct packet_where where;
	uint64_t began_ns, next_ns, interval_ns, step_ns;
	pthread_cond_t wake;
};

/* A number or name that is about to be opened here. */
struct claim {
	struct list link;
	uint64_t nonce;
	uint32_t id;
	char name[RIPC_NAME_MAX + 1];
	bool held;             /* nobody had it; kept until entered, at most until_ns */
	bool taken;
	uint64_t until_ns;
	pthread_cond_t wake;
};

/* A service of this instance. */
struct own_service {
	struct list link;
	uint32_t id;
	char name[RIPC_NAME_MAX + 1];
	bool listening;        /* at the places that a file of hosts says */
	struct {
		uint64_t nonce, due_ns, interval_ns;
	} at[METHODS_MAX];     /* of the methods that are a rendezvous */
};

struct resolver {
	struct resolver_config config;
	struct method methods[METHODS_MAX];
	unsigned method_count;
	struct net net;
	struct resolver_counters counters;
	pthread_t thread;
	int wake;              /* eventfd: the thread shall look around */
	uint8_t random_key[16];
	atomic_uint_fast64_t drawn;

	pthread_mutex_t lock;
	/* Under the lock. */
	bool closing;
	unsigned users;        /* threads in calls that wait */
	pthread_cond_t left;
	struct known known;
	struct list questions, claims, own;
	/* Questions that are answered: their other answers are no surprise. */
	struct { uint64_t nonce, instance; } finished[FINISHED_MAX];
	unsigned finished_next;

	struct limit limit;    /* of the thread */
};

static inline void count(atomic_uint_fast64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

uint64_t resolver_now_ns(void);
/* Not to be guessed, and never 0. */
uint64_t resolver_draw(struct resolver *r);
void resolver_wake_thread(struct resolver *r);
/* Until then, as resolver_now_ns() counts; the lock is held. */
void resolver_wait(struct resolver *r, pthread_cond_t *cond, uint64_t until_ns);
/* Enters a call that may wait; false: it is closing. The lock is held. */
bool resolver_begin(struct resolver *r);
void resolver_end(struct resolver *r);

/* ---- resolver_methods.c ---- */

/* -EINVAL and others with a sentence in *why. */
int methods_parse(struct resolver *r, const char *how, const char **why);
void methods_free(struct resolver *r);
bool methods_have(const struct resolver *r, enum method_kind kind);
/* Sends `p` by the first `methods`, without the lock. */
void methods_send(struct resolver *r, unsigned methods, const struct packet_resolve *p);
/* Whether a question for this has, or may have, gone to `from`. */
bool methods_sent_to(struct resolver *r, uint32_t id, const char *name,
		     const union address *from);
/* Listens where a file of hosts says that the service is. 0; -EADDRINUSE: somebody else
 * does. */
int methods_listen(struct resolver *r, uint32_t id, const char *name);

/* ---- resolver_claim.c ---- */

/* Somebody answers for something that is claimed here. The lock is held; false: no claim
 * has this nonce. */
bool claim_answered(struct resolver *r, const struct packet_resolve *p,
		    const union address *from);
/* Another instance claims. Whether it is to be told that it is ours; sets *id. No lock. */
bool claim_disputed(struct resolver *r, const struct packet_resolve *p, uint32_t *id);
/* The service is open: its claim is not needed any more. The lock is held. */
void claim_entered(struct resolver *r, uint32_t id);

/* ---- resolver_ask.c ---- */

/* An answer. The lock is held; false: nobody has asked that there. *first: it is the
 * one that counts. */
bool question_answered(struct resolver *r, const struct packet_resolve *p,
		       const union address *from, bool *first);
/* The service itself, not asked, has said where it is. The lock is held; whether somebody
 * waited for that. */
bool question_learned(struct resolver *r, uint32_t id, const char *name,
		      const struct packet_where *where);

/* ---- resolver_take.c ---- */

/* What has come by the socket `fd`. Of the thread. */
void resolver_take(struct resolver *r, int fd, const union address *from,
		   const uint8_t *bytes, size_t length);

/* ---- resolver_enter.c ---- */

/* Tells the rendezvous what is due; when to call again, UINT64_MAX: nothing to do. */
uint64_t own_tick(struct resolver *r, uint64_t now_ns);
/* An answer of a rendezvous. */
void own_entered(struct resolver *r, const struct packet_resolve *p,
		 const union address *from);
/* Takes all out. */
void own_leave_all(struct resolver *r);

#endif
