/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an instance consists of. Its threads: those of the program, which carry the messages
 * while they wait in a call, and one of its own, which looks after connections, and after
 * messages while no other does.
 *
 *	instance   settings, the parts below, the thread       instance.c
 *	device     adapter, completion queue, datagrams        device.c
 *	pump       completions to what they are about          pump.c, wait.c
 *	peer       another instance, and what is on its way    peer.c
 *	conn       a connection to it                          conn.c, connect*.c
 *	offer      return buffers of ours, and their keys      offers.c, revoke.c, window.c
 *	target     return buffers of peers                     targets.c
 *	service    queue of messages for one number            service.c
 *	hold       services that do not receive                hold.c
 *	show       what others of this user see                show.c
 *	short and long messages                                short.c, long.c, fetch.c
 *
 * Order of locks: pump, then peer, then table or service; none of them is held while the
 * resolver, the connection manager or an event is waited for.
 */
#ifndef RIPC_INSTANCE_H
#define RIPC_INSTANCE_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "ripc/instance/event.h"
#include "ripc/wire/packet.h"
#include "ripc/memory/pool.h"
#include "ripc/find/resolver.h"
#include "util/list.h"
#include "util/spin.h"

#define SLOT_BYTES 2048      /* a message on a connection: header and short items */
#define GRH_BYTES 40
#define CONN_CREDITS 32      /* messages that a peer may send before it hears of us */
/* Receives that are posted again together: a post costs more than a receive more in it. */
#define CONN_TOGETHER 4
/* Receives for packets with nothing but credits. Each brings half of all credits, and the
 * next can only be sent when these were used; so three at most are on their way. And for those
 * that wait for others to be posted with. */
#define CONN_SPARE (4 + CONN_TOGETHER)
#define CONN_SEND_SLOTS 16   /* messages too long to be sent inline */
#define CONN_SEND_DEPTH 192
/* Of these, that are not used for fetching, so that there is always room for messages. */
#define FETCH_ROOM 32
/* Completions that a connection may have at the same time, with those that end it. */
#define CONN_CQ_ENTRIES (CONN_CREDITS + CONN_SPARE + CONN_SEND_DEPTH + 2)
#define UD_SLOTS 512
#define UD_SEND_SLOTS 64
#define TABLE_SIZE 4096      /* heads of the hash tables */

struct ripc_config_own {
	struct ripc_config c;
	char *address, *resolver, *secret_file;
};

/* Counters: relaxed, of any thread. */
struct counters {
	atomic_uint_fast64_t short_sent, short_received, short_dropped, long_sent,
		long_received, long_failed, bytes_pushed, bytes_pulled, copies, connects,
		connect_failures, refused, bad_packets, unauthentic;
	atomic_uint_fast64_t short_pumped; /* of short_received; written with pump_lock */
};
#define COUNT(r, what, n) \
	atomic_fetch_add_explicit(&(r)->counters.what, n, memory_order_relaxed)
/* A counter that is written with a lock only, which the caller holds. */
#define COUNT_LOCKED(counter)                                                         \
	atomic_store_explicit(&(counter),                                             \
			      atomic_load_explicit(&(counter), memory_order_relaxed) + 1, \
			      memory_order_relaxed)

/* Which kind of thing a wr_id points to; in its low bits. */
enum work {
	WORK_RECEIVE,     /* struct slot */
	WORK_SEND,        /* struct conn */
	WORK_UD_RECEIVE,  /* struct slot */
	WORK_UD_SEND,     /* struct ripc */
	WORK_FETCH,       /* struct fetch: one of its READs */
	WORK_DRAIN,       /* struct conn: nothing comes behind it */
};
#define WORK_MASK 7u

static inline uint64_t work_id(const void *p, enum work w)
{
	return (uint64_t)(uintptr_t)p | w;
}

struct conn;
struct peer;
struct fetch;
struct window;

/* A message that waits for, or is with, the program. */
struct received {
	struct list entry;      /* in the queue of its service */
	struct slot *slot;      /* of a short one, else NULL */
	struct fetch *fetch;    /* of a long one, or of one from this instance, else NULL;
				 * both NULL: a short one that was copied */
	uint32_t from;
	uint32_t returned;
	bool is_long;
	uint8_t count;
	struct ripc_item items[RIPC_ITEMS_MAX];
};

/* A long message of a peer, from its announcement to the program's release. */
struct fetch {
	struct received message;
	struct list entry;      /* peer->fetching until all bytes are here */
	struct ripc *r;
	struct conn *conn;      /* that its READs are posted to, with a reference; NULL then */
	uint32_t to;
	uint64_t number;
	struct packet_memory source[RIPC_ITEMS_MAX];
	struct pool_ref refs[RIPC_ITEMS_MAX]; /* region NULL: none */
	struct list offers;     /* return buffers that it lies in, until it is delivered */
	bool closed;            /* nothing is written into these any more */
	unsigned reads;         /* posted and not completed */
	unsigned next_item;     /* first one not posted entirely, at byte */
	uint64_t next_at;
	bool failed;
};

/* A posted receive and the message in it. */
struct slot {
	struct conn *conn;      /* NULL: of datagrams */
	struct ripc *r;
	uint8_t *bytes;
	struct slot *next;      /* conn->back */
	struct received message;
};

union sockaddr_any {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* ---- adapter ---- */

struct device {
	struct ibv_context *verbs;
	uint8_t port;
	uint32_t mtu_bytes;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;      /* of all queue pairs */
	int cq_entries, cq_max;
	atomic_int cq_used;     /* entries that existing queue pairs may need */
	uint8_t reads_max;      /* of one queue pair, at a time */
	bool windows;           /* it has memory windows of type 2 */
	enum pool_access read_into; /* of buffers that READs write into */
	/* Datagrams; qp NULL: there are none. */
	struct ibv_qp *ud;
	uint32_t ud_qkey, ud_inline;
	uint8_t gid_index;
	union ibv_gid gid;
	struct slot *ud_slots;
	uint8_t *ud_bytes, *ud_send_bytes;
	struct pool_ref ud_ref, ud_send_ref;
	uint32_t ud_received;   /* datagrams; pump_lock */
	_Atomic uint32_t ud_reposted;
	struct spin ud_lock;    /* of sending */
	unsigned ud_posted, ud_done, ud_unsignaled;
	struct event ud_event; /* there is room to send */
};

/* ---- services ---- */

struct ripc_service {
	struct list entry;      /* in the table; table_lock */
	struct ripc *r;
	uint32_t id;
	char name[RIPC_NAME_MAX + 1];
	atomic_uint users;      /* threads in calls */
	atomic_bool closing;
	struct spin lock;
	struct list queue;      /* of struct received */
	atomic_uint queued;     /* written with `lock` */
	uint64_t queued_bytes;  /* of long messages; `lock` */
	struct list holds;      /* peers that were asked to hold; `lock` */
	struct event event;
	atomic_int fd;          /* -1: nobody asked for it; set once, with `lock` */
	bool fd_set;
	struct list offers;     /* return buffers given to peers; `lock` */
	struct list sends;      /* long messages whose end was not asked for; `lock` */
	uint64_t next_token, next_offer; /* `lock` */
	/* The peer that service `to` is at, where the last short message went, if table_changes
	 * is still the same; NULL: not known. table_lock */
	struct peer *to_peer;
	uint32_t to;
	unsigned to_changes;
};

/* ---- peers ---- */

enum peer_state {
	PEER_DOWN,
	PEER_CONNECTING, /* our attempt is under way */
	PEER_UP,
};

/* A long message that the peer has not confirmed. */
struct outstanding {
	struct list entry;      /* peer->outstanding, in the order of their numbers */
	struct list sent_entry; /* service->sends until its end was asked for */
	struct ripc_service *s;
	struct peer *peer;      /* with a reference */
	uint64_t token;
	uint64_t number;
	uint32_t from, to;
	uint8_t count, returns_count;
	bool informed;          /* on the present connection */
	bool given_up;          /* its service ends */
	uint8_t breaks;         /* connections that have ended meanwhile */
	bool asked;             /* a thread is in ripc_sent() for it; service->lock */
	atomic_int state;       /* 1: on its way; 0 or a negative errno: its end */
	struct packet_memory items[RIPC_ITEMS_MAX];
	struct pool_ref refs[RIPC_ITEMS_MAX]; /* region NULL: none */
	void *copies[RIPC_ITEMS_MAX];         /* of the pool; NULL: none */
	struct packet_memory returns[RIPC_RETURNS_MAX]; /* of the connection of that epoch */
	uint64_t epoch;
	uint64_t offer;         /* number of these */
	bool returns_void;      /* they were asked back before they were told of */
};

/* A return buffer of the peer's. */
struct target {
	struct list entry;
	uint32_t of, by;        /* the service there, and that here that may fill it */
	uint64_t number;        /* of the long message that it came with; 0: a short one */
	struct packet_memory memory;
};

/* A control message that waits for a credit. */
struct control {
	struct list entry;
	uint8_t type;
	uint32_t from, to, error;
	uint64_t number;
};

/* A long message of a peer's that was not taken. */
struct refusal {
	uint64_t number;
	uint32_t error;         /* errno */
};
#define PEER_REFUSALS 64        /* that are remembered */

struct peer {
	struct list entry;      /* in the table; table_lock */
	struct ripc *r;
	uint64_t instance;
	atomic_uint users;      /* references: routes, calls, connections */
	pthread_mutex_t lock;   /* all below */
	struct packet_where where; /* port 0: only from its own request */
	enum peer_state state;
	struct conn *conn;      /* of PEER_UP */
	struct conn *attempt;   /* of PEER_CONNECTING */
	uint64_t used_ns;       /* when the thread last saw that it was used */
	int failure;            /* of the last attempt */
	unsigned waiting, stuck; /* calls that wait for the connection; for room on it */
	unsigned crossings;     /* attempts, one after the other, that were said to cross */
	struct event event;     /* its state, credits, room to send, an end of `outstanding` */
	uint64_t next_number;   /* of our long messages */
	struct list outstanding;
	bool wished;            /* in r->wishes */
	struct list wish_entry;
	uint64_t taken;         /* number of the peer's newest long message that was taken */
	struct list fetching;   /* long messages of the peer, in order */
	struct refusal *refused; /* PEER_REFUSALS of them; NULL: there was none */
	uint64_t refusals_lost; /* number of the newest one that is not remembered any more */
	unsigned refusals;
	struct list targets, controls;
	unsigned holds;         /* services of ours that have asked it to hold */
	struct list held;       /* services of its that have asked us */
	unsigned held_count;
	atomic_uint_fast64_t short_sent; /* over connections, also those that have ended */
	atomic_bool pending;    /* something waits for credits: `controls`, `outstanding` */
	unsigned targets_count, controls_count, fetching_count;
	uint64_t fetching_bytes;
	uint64_t epoch;         /* of all connections of the instance, other for each */
	uint64_t revokes, revoked; /* revocations, and up to which they were answered */
	struct ibv_ah *ah;      /* datagrams; made when first needed */
};

/* One connection; `peer->lock` unless said otherwise. */
struct conn {
	struct peer *peer;      /* with a reference; NULL until the request was answered */
	struct ripc *r;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct list entry;      /* of all, for the thread alone */
	atomic_uint users;      /* READs of messages, calls; the owner and slots together */
	atomic_bool dead;       /* takes no work any more */
	atomic_bool used;       /* since the thread last looked */
	bool reserved, active, ending;
	bool crossed;           /* rejected, because one that the peer began is to come */
	atomic_bool established;
	atomic_uint drained;    /* of two */
	uint64_t nonce, peer_nonce; /* of the request and the acceptance */
	atomic_uint_fast64_t until_ns; /* of connecting, or of draining; 0: none */
	uint64_t since_ns;      /* of being established */
	/* Sending. */
	/* Messages that the peer has had receives for since the beginning (pump_lock), and that
	 * were sent; modulo 2^32. */
	_Atomic uint32_t granted, spent;
	uint32_t peer_slot_bytes;
	unsigned posted;        /* WRs in the send queue */
	unsigned unsignaled, unsignaled_slots;
	struct {
		uint16_t wrs, slots;
	} signals[CONN_SEND_DEPTH];
	unsigned signals_first, signals_end;
	unsigned slots_used, slot_next;
	uint8_t *send_bytes;
	uint32_t max_inline;
	/* Receiving. */
	struct slot *slots;
	uint8_t *bytes;
	struct pool_ref ref;
	uint32_t received;      /* messages; pump_lock */
	_Atomic uint32_t reposted; /* of these, their receives; written with receive_lock */
	_Atomic uint32_t owing; /* of these, that are credits; written with receive_lock */
	_Atomic uint32_t told;  /* of these, that the peer was told of */
	bool closed;            /* `received` is final: the last slot is the owner; receive_lock */
	struct slot *back;      /* released, and not posted yet; receive_lock, also the two below */
	unsigned back_count, back_credits; /* of them; those that are credits */
	struct spin receive_lock; /* posting, against the end of the queue pair */
	/* The service that the last message was for, if table_changes is still the same;
	 * pump_lock. */
	struct ripc_service *to;
	unsigned to_changes;
	/* Return buffers of ours that the peer was offered. */
	struct list windows, windows_kept; /* with a key that is valid; for the next ones */
	unsigned windows_count; /* kept */
};

/* A service that was resolved. */
struct route {
	struct list entry;
	uint32_t id;
	struct peer *peer;      /* with a reference */
};

struct ripc {
	struct ripc_config_own config;
	struct packet_key key;
	uint64_t number;
	pid_t pid;
	struct device device;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *listener;
	struct pool *pool;
	struct resolver *resolver;
	struct counters counters;

	struct spin table_lock;
	atomic_uint table_changes; /* of `services` and `routes`; table_lock */
	struct list services[TABLE_SIZE], routes[TABLE_SIZE], peers[TABLE_SIZE];
	atomic_uint live_conns;
	atomic_uint_fast64_t epochs;

	struct spin pump_lock;
	/* The thread that has pump_lock receives for this service: one message that finds its
	 * queue empty is handed to it. */
	struct ripc_service *receiver;
	struct received *handed;
	atomic_bool hot;        /* a thread of the program has looked since the last tick */
	pthread_t thread;
	int wake_fd;
	int show_fd;            /* -1: it is not shown to others */
	bool running;           /* there is a thread */
	atomic_bool closing;
	struct list conns;      /* of the thread */
	struct list wishes;     /* peers to be connected; table_lock */
	atomic_bool broken;     /* a connection in `conns` is dead */
};

/* ---- error.c ---- */

/* Keeps the sentence for ripc_error(); returns err. */
int ripc_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- device.c ---- */

/* Binds `id` to an address and opens all that belongs to the adapter, on r->pool too. */
int device_open(struct ripc *r);
void device_close(struct ripc *r);
/* Before and after connections: the completion queue has room for them, -ENOBUFS: not. */
int device_reserve(struct ripc *r, int entries);
void device_unreserve(struct ripc *r, int entries);
/* Its message is not used any more. */
void device_ud_repost(struct slot *slot);

/* ---- show.c ---- */

void show_open(struct ripc *r);
/* On the thread: who has asked is told. */
void show_answer(struct ripc *r);
void show_close(struct ripc *r);
/* An address with its port. */
void address_text(const union sockaddr_any *a, char *out, size_t bytes);

/* ---- pump.c, wait.c ---- */

/* Carries out what has completed. False: nothing had, or another thread is at it. */
bool pump(struct ripc *r);
/* The same by who has taken pump_lock. */
bool pump_locked(struct ripc *r);
/* Takes all completions that have come before the call. */
void pump_past(struct ripc *r);
/* Whoever had pump_lock before has released it when it returns. */
void pump_pass(struct ripc *r);
/* No thread looks by itself any more; from now on the instance's own does. */
void pump_cool(struct ripc *r);

uint64_t now_ns(void);
/* 0: done() was true; -EAGAIN: the time is over. done() is called often, without locks;
 * what makes it true signals the event. until_ns: now_ns() and UINT64_MAX. */
int wait_until(struct ripc *r, struct event *e, bool (*done)(void *), void *arg,
	       uint64_t until_ns);
/* -1: UINT64_MAX. */
uint64_t deadline_of(int timeout_ms);

/* ---- peer.c ---- */

/* A reference, made if it is new (`make`). NULL: it is not known, or no memory. */
struct peer *peer_get(struct ripc *r, uint64_t instance, bool make);
void peer_put(struct peer *p);
/* Short messages that were sent, over connections and otherwise. */
uint64_t peers_short_sent(struct ripc *r);
/* Those nobody uses any more. */
void peers_sweep(struct ripc *r, bool all);
/* The peer that has the service, resolved if necessary, with a reference. */
int peer_of_service(struct ripc *r, uint32_t from, uint32_t to, struct peer **out);
union sockaddr_any sockaddr_of(const struct packet_where *w);
/* The peer that is known to have it, with a reference; or NULL. */
struct peer *route_find(struct ripc *r, uint32_t id);
/* What is remembered of the service, or of all services of the peer, is forgotten. */
void routes_forget(struct ripc *r, uint32_t id, const struct peer *p);
/* At the end: no thread of the program adds one. */
void routes_forget_all(struct ripc *r);
/* The peer that is known to have service `to`, if its connection is up and nobody has it locked:
 * locked, without a reference, which the lock replaces; for `s`, too. NULL: not so, or the service
 * is of this instance; `s` has a reference then. -EBADF: `s` leaves. */
int peer_lock_known(struct ripc_service *s, uint32_t to, struct peer **out);
/* Threads that had a peer locked before have unlocked it when it returns. */
void peers_pass(struct ripc *r);
/* It is connected, or will be tried. Locks p->lock; 0: it is up, and locked; else an error,
 * not locked. */
int peer_lock_connected(struct peer *p);
/* The thread connects it, if it is not. */
void peer_wish(struct peer *p);

/* ---- conn.c ---- */

/* Everything a connection needs, on conn->id. */
int conn_open(struct conn *c);
void conn_get(struct conn *c);
void conn_put(struct conn *c);
/* The owner has no queue pair any more, nothing is received; messages may be with the program. */
void conn_close(struct conn *c);
/* peer->lock. Posts work that `wrs` slots and `slots` send slots; signals now and then, and
 * always where `signal`. -EIO: the connection is dead. */
int conn_post(struct conn *c, struct ibv_send_wr *wr, unsigned slots, bool signal);
bool conn_has_room(const struct conn *c, unsigned wrs);
/* A signaled WR has completed; peer->lock. */
void conn_retire(struct conn *c);
/* Is there a credit, and room for a message? */
bool conn_can_send(const struct conn *c);
/* A message is sent that takes one; peer->lock. */
void conn_spend(struct conn *c);
/* To be told with the message that is sent now; peer->lock. */
uint16_t conn_credits_owed(struct conn *c);
/* Where a message of more than max_inline bytes is made; room was looked for. */
uint8_t *conn_send_slot(struct conn *c);
/* Posts it, from there; a shorter one from anywhere. */
int conn_send(struct conn *c, const uint8_t *from, size_t bytes);
/* The first packet on a connection, which takes no credit, of the side that connects;
 * peer->lock. And the other side: whether it is right. */
void conn_hello(struct conn *c);
bool conn_is_hello(const struct conn *c, const struct packet_message *m);
/* The receive is posted again, and where the message had used a credit (`counted`) that is
 * owed to the peer. No lock of the peer's is held. */
void conn_repost(struct slot *slot, bool counted);
/* peer->lock. Sends a message without items when there is a credit, else keeps it. */
void conn_control(struct peer *p, const struct packet_message *m);
/* peer->lock. What waited for credits. */
void conn_flush(struct peer *p);

/* ---- window.c: peer->lock, and the connection is the peer's ---- */

/* A key for the peer of the connection, with which it writes there; for one work request there
 * has to be room. */
int window_bind(struct conn *c, const struct pool_ref *ref, void *at, size_t bytes,
		struct window **out, uint32_t *key);
/* 0: the key is void; 1: it is when work request `work` has completed; or an error, and the
 * connection breaks. */
int window_invalidate(struct conn *c, struct window *w, uint64_t work);
/* The key is void when it returns; `w` is no more. */
void window_end(struct conn *c, struct window *w);
/* All keys of the connection's. */
void windows_end(struct conn *c);

/* ---- connect*.c: on the instance's thread ---- */

int connect_listen(struct ripc *r);
void connect_events(struct ripc *r);
void connect_wishes(struct ripc *r);
/* What is late or idle; when to be called again. */
uint64_t connect_timers(struct ripc *r, uint64_t now);
void connect_close_all(struct ripc *r);
/* A connection that the peer has accepted, or has sent something on. */
void connect_established(struct conn *c);
/* Any thread: the connection failed. */
void connect_broken(struct conn *c);
void thread_wake(struct ripc *r);

/* ---- service.c ---- */

/* table_lock. NULL: there is none. */
struct ripc_service *service_here(struct ripc *r, uint32_t id);
/* A reference, by who has it otherwise for sure at this moment. */
void service_use(struct ripc_service *s);
/* With a reference; NULL: there is none. */
struct ripc_service *service_get(struct ripc *r, uint32_t id);
void service_put(struct ripc_service *s);
/* Without a reference, as long as pump_lock is held. `c`: whose message is for it, or NULL. */
struct ripc_service *service_pumped(struct ripc *r, struct conn *c, uint32_t id);
/* Puts it into the queue. */
void service_push(struct ripc_service *s, struct received *m);
/* The same with pump_lock. False: the queue is full; what comes over a connection always goes. */
bool service_push_pumped(struct ripc_service *s, struct received *m, bool connected);
/* So many messages, or bytes of long ones with `bytes` more, wait for it that it gets none. */
bool service_is_full(struct ripc_service *s, uint64_t bytes);
/* Of one head of the table, behind `after` (0: the first), by number; NULL: no more. */
struct ripc_service *service_next(struct ripc *r, unsigned head, uint32_t after);
/* Closes it. `withdraw`: its return buffers are the program's again, no peer writes there. */
void service_end(struct ripc_service *s, bool withdraw);
/* Is such a service here? As resolver_config.has. */
bool service_has(void *r, uint32_t *id, const char *name);
/* Not delivered, or released: its memory is free. */
void received_free(struct received *m);

/* ---- hold.c ---- */

/* The service, which has so many messages, does not want more from this peer. */
void hold_ask(struct conn *c, struct ripc_service *s, uint32_t from);
/* Those that were asked may go on, where few messages wait. No lock of a peer is held. */
void hold_end(struct ripc_service *s);
/* From the pump: the peer asks. */
void held_take(struct conn *c, const struct packet_message *m);
/* peer->lock. Whether its service has asked; that is forgotten. */
bool held_has(const struct peer *p, uint32_t id);
void held_clear(struct peer *p);

/* ---- local.c ---- */

/* To a service of this instance, whose reference it takes. */
int local_send(struct ripc_service *from, struct ripc_service *to, bool is_long,
	       const struct ripc_item *items, unsigned count,
	       const struct ripc_item *returns, unsigned returns_count);

/* ---- send.c ---- */

/* What both kinds of sending check first: -EINVAL. */
int send_check(struct ripc_service *s, const struct ripc_item *items, unsigned count,
	       const struct ripc_item *returns, unsigned returns_count);
/* peer->lock, connected. There is room for so many work requests; and of a short message a
 * credit, and service `to` (0: none) has not asked to hold. */
bool send_has_room(const struct peer *p, unsigned wrs, bool credit, uint32_t to);
/* The peer that has the service, connected and locked, found anew once if it is not where it
 * was, with room for so many work requests; and of a short message a credit, and the service
 * has not asked to hold. -EAGAIN: the receiver does not keep up. */
int send_lock_room(struct ripc_service *s, uint32_t to, unsigned wrs, bool is_short,
		   struct peer **out);

/* ---- short.c, long.c, fetch.c: from the pump; pump_lock ---- */

void short_received(struct slot *slot, const struct packet_message *m, size_t header);
void long_informed(struct conn *c, const struct packet_message *m);
void long_ended(struct conn *c, const struct packet_message *m);
void offers_revoke(struct conn *c, const struct packet_message *m);
void offers_revoked(struct conn *c, const struct packet_message *m);
void fetch_free(struct fetch *f);
void fetch_done(struct fetch *f, bool good);
/* peer->lock: READs that found no room, and whole messages to their services. */
void fetch_go_on(struct peer *p);
/* peer->lock: what was not delivered is forgotten, and is sent again. */
void fetch_abort(struct peer *p);

/* long.c; peer->lock. Announces those that are not, as far as there is room; those of a
 * connection that broke are announced again on the next one; or all end. */
bool long_flush(struct peer *p); /* false: some are left */
void long_again(struct peer *p);
void long_fail(struct peer *p, int err);
/* Those that were not announced yet will not tell of return buffers any more. */
void long_offers_void(struct peer *p, const struct ripc_service *s, uint32_t to);

/* targets.c: return buffers of the peer's; peer->lock. Those that came with a message: */
void targets_add(struct peer *p, const struct packet_message *m);
/* The long message has not arrived: its sender takes them back. */
void targets_forget(struct peer *p, uint64_t number);
void targets_clear(struct peer *p);
/* Those that its service `of` has offered to ours. */
void targets_revoke(struct peer *p, uint32_t of, uint32_t by);
/* The first that is long enough. */
bool target_take(struct peer *p, uint32_t of, uint32_t by, uint64_t bytes,
		 struct packet_memory *out);

/* offers.c, revoke.c: return buffers of ours. Of one message, which *number names; `p` NULL: to
 * a service of this instance, else peer->lock. */
int offers_make(struct ripc_service *s, struct peer *p, uint32_t to,
		const struct ripc_item *returns, unsigned count, struct packet_memory *out,
		uint64_t *number);
/* Of a message that failed, whose buffers are the program's again. */
void offers_undo(struct ripc_service *s, struct peer *p, uint64_t number);
/* peer->lock. The offer that has been written to goes over to `f`. False: there was none like
 * that on this connection. */
bool offers_take(struct ripc_service *s, const struct peer *p, uint32_t from,
		 const struct packet_memory *m, struct fetch *f);
/* peer->lock. Nobody writes any more into the buffers that the message lies in, when f->reads
 * have completed. False: no room now, or the connection has ended. */
bool offers_close(struct fetch *f);
/* Of a message that was delivered: its buffers are the program's again; of one that was not:
 * they are as before. `c` has its peer's lock and is that peer's connection; NULL: it was. */
void offers_done(struct fetch *f, struct conn *c);
void offers_restore(struct fetch *f, struct conn *c);
/* Of a service that ends: peers do not write into them any more; and are forgotten. */
void offers_withdraw(struct ripc_service *s);
void offers_forget(struct ripc_service *s);
void sends_forget(struct ripc_service *s);

#endif
