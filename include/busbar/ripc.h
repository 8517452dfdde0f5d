/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ripc: messages between services, over any RDMA adapter. A service has a number and
 * perhaps a name; where it runs is found out when something is sent to it, and again when
 * it has moved. The library stands on <infiniband/verbs.h> and <rdma/rdma_cma.h>.
 *
 * Two kinds of message, each an array of items:
 *
 *	short   all items fit into one packet (ripc_short_max()). May be lost: when the
 *	        receiver does not keep up or dies, over datagrams also on the way. Never torn
 *	        and never changed; over connections in order and never twice.
 *	long    of any size. Arrives whole and once, or the sender learns an error; in the
 *	        order of the sends of one service to another. Bytes move without a copy: into
 *	        buffers that the receiver has offered (return buffers), the rest is fetched by
 *	        the receiver's side.
 *
 * Errors are negative errno values; ripc_error() has a sentence for the last one of the
 * calling thread. Nothing here ends the process or prints.
 *
 *	-EINVAL         an argument is not valid
 *	-EADDRINUSE     the service number or name is taken, here or elsewhere
 *	-EADDRNOTAVAIL  no adapter has a usable address
 *	-EHOSTUNREACH   nobody has answered for the service within resolve_timeout_ms
 *	-ECONNREFUSED   its instance refuses: another secret, or connections_max reached
 *	-ETIMEDOUT      connecting took too long
 *	-ECONNRESET     the peer died or left while the message was on its way: whether it
 *	                has arrived is not known
 *	-EMSGSIZE       too long for a short message, or for message_bytes_max of the receiver
 *	-ENOBUFS        no memory, or a limit of the configuration is reached
 *	-EAGAIN         nothing there within the time of the call, or the receiver does not
 *	                keep up
 *	-EBADF          the service was closed meanwhile
 *
 * Threads: any thread may call anything at any time; several may send from and receive for
 * one service, each message goes to one of them. Closing waits until other threads have
 * left calls of the same object, whose receives end with -EBADF. A child of fork() has none
 * of the parent's instances and may open its own; it must not use the parent's pointers.
 * Signals: a call that waits goes on after a handler has returned.
 */
#ifndef BUSBAR_RIPC_H
#define BUSBAR_RIPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define RIPC_NAME_MAX 63     /* bytes of a name, without the NUL */
#define RIPC_ITEMS_MAX 32    /* items of a message */
#define RIPC_RETURNS_MAX 16  /* return buffers of a message */

struct ripc;         /* an instance: adapter, connections, buffers */
struct ripc_service;

/* ---- instances ---- */

enum ripc_short {
	RIPC_SHORT_DEFAULT,    /* connection */
	RIPC_SHORT_CONNECTION, /* SEND on the reliable connection; held up, not lost, when
				* the receiver has no room */
	RIPC_SHORT_DATAGRAM,   /* UD, in any order, lost without room: no connection for short
				* messages that fit into one packet of the adapter and
				* offer no return buffers. Where one side's adapter has
				* no datagrams: connection */
};

/* 0 and NULL everywhere mean the default, which the environment variable in brackets may
 * change. */
struct ripc_config {
	const char *address;     /* [RIPC_ADDRESS] local IP address of the adapter */
	const char *resolver;    /* [RIPC_RESOLVER] how services are found, tried in this
				  * order, with commas between them:
				  *	multicast             UDP, within a network (default)
				  *	broadcast             likewise, IPv4
				  *	hosts:FILE            lines "ID-or-name address port"
				  *	rendezvous:HOST:PORT  asks `busbar ripc rendezvous` */
	uint16_t resolver_port;  /* [RIPC_PORT] 15511; UDP, of multicast and broadcast */
	const char *secret_file; /* [RIPC_SECRET_FILE] 16 to 64 bytes; only instances with the
				  * same one find and connect each other. Default: none,
				  * everyone in the network may */
	enum ripc_short short_by; /* [RIPC_SHORT] "connection" or "datagram" */
	unsigned resolve_timeout_ms; /* 2000 */
	unsigned connect_timeout_ms; /* 3000 */
	unsigned idle_close_ms;      /* connections without a message are closed after; 60000 */
	unsigned claim_ms;       /* how long opening a service looks whether its number or
				  * name is taken elsewhere; 100, UINT_MAX: not at all */
	unsigned poll_us;        /* how long a waiting call looks by itself before it sleeps,
				  * up to eight times that after messages that came soon
				  * behind it; 50, UINT_MAX: always */
	unsigned connections_max;   /* 1024 */
	unsigned queue_max;      /* messages that wait for one service; 1024 */
	size_t pool_bytes_max;   /* registered memory that is kept for reuse; 1 GiB */
	size_t message_bytes_max; /* longest message that is accepted; 4 GiB */
};

/* An instance of its own. `config` NULL: all defaults. Takes some milliseconds. */
int ripc_open(const struct ripc_config *config, struct ripc **out);
/* Closes its services too; their peers get -ECONNRESET for what was on its way. Buffers of
 * the instance are gone. NULL allowed. */
void ripc_close(struct ripc *r);

/* The instance that all calls with `r` NULL use; opened by the first of them with the
 * defaults, closed when the process ends. */
int ripc_default(struct ripc **out);

/* ---- services ---- */

/* Numbers below this are given by people; from here on the library draws them. 0: none. */
#define RIPC_ID_DRAWN UINT32_C(0x80000000)

/* `r` NULL: the default instance. `id` 0: drawn at random, or from the name. `name` NULL:
 * none; else 1 to RIPC_NAME_MAX bytes of UTF-8 without control characters. */
int ripc_service_open(struct ripc *r, uint32_t id, const char *name,
		      struct ripc_service **out);
void ripc_service_close(struct ripc_service *s);
uint32_t ripc_service_id(const struct ripc_service *s);

/* The number of a service with this name. Asks the network, at most timeout_ms (-1: as
 * configured). */
int ripc_find(struct ripc *r, const char *name, int timeout_ms, uint32_t *id);

/* Of an instance, for people: programs do not need it. */
struct ripc_where {
	uint64_t instance;   /* another one after each start */
	char address[64];    /* of its adapter, with the port where it is connected */
	bool datagrams;      /* it takes some */
};
/* Where a service is. Asks the network if it is not known, at most timeout_ms (-1: as
 * configured). */
int ripc_where(struct ripc *r, uint32_t id, int timeout_ms, struct ripc_where *out);

/* ---- buffers ---- */

/* Memory that the adapter knows; freed buffers are kept and used again. Not zeroed. NULL
 * with errno ENOMEM. Aligned to 64 bytes, from 4 KiB on to a page. */
void *ripc_alloc(struct ripc *r, size_t bytes);
/* Any pointer into the buffer. 0, or -EINVAL: not one of ripc_alloc(), or freed already. */
int ripc_free(struct ripc *r, void *p);
/* Memory of the program's own, which is sent and filled in place; without it items that are
 * not of ripc_alloc() are copied once. Must not overlap one that is registered. */
int ripc_memory_register(struct ripc *r, void *p, size_t bytes);
/* -EBUSY: a message that uses it is on its way. */
int ripc_memory_unregister(struct ripc *r, void *p);
/* Gives kept memory back to the system until at most keep_bytes are left. */
void ripc_trim(struct ripc *r, size_t keep_bytes);

/* ---- messages ---- */

struct ripc_item {
	void *data;   /* sending: not written to, but for return buffers */
	size_t bytes; /* 0 allowed */
};

/* Longest short message between services, in bytes of all `count` items together. */
size_t ripc_short_max(struct ripc *r, unsigned count);

/*
 * Sends items from `s` to the service `to`, and offers `returns`: buffers of this side into
 * which the next long messages of `to` may be written. A return buffer belongs to the library
 * until a message has come in it, or ripc_returns_revoke().
 *
 * May wait for the resolver and a connection on first use. The items may be changed when the
 * call has returned. After an error the return buffers are the program's, but for one: a long
 * message that ends with -ECONNRESET may have arrived, and been answered in one of them; they
 * come with a message or by ripc_returns_revoke().
 */
int ripc_send_short(struct ripc_service *s, uint32_t to, const struct ripc_item *items,
		    unsigned count, const struct ripc_item *returns, unsigned returns_count);

/* Of a long message that is on its way. */
struct ripc_token {
	uint64_t number;
};

/*
 * Likewise, of any size. `token` NULL: waits until the receiver's side has all bytes, then
 * the items may be changed. Else returns at once, and the items must stay as they are until
 * ripc_sent().
 */
int ripc_send_long(struct ripc_service *s, uint32_t to, const struct ripc_item *items,
		   unsigned count, const struct ripc_item *returns, unsigned returns_count,
		   struct ripc_token *token);
/* 0: the receiver's side has all bytes. -EAGAIN: not yet, after timeout_ms (-1: for ever).
 * -ENOBUFS: so many messages wait for the receiver that it takes no more. Another error: it
 * will not arrive or that is not known; the token is used up, as with 0. */
int ripc_sent(struct ripc_service *s, struct ripc_token token, int timeout_ms);

/* Takes return buffers back that `s` has offered to `to`, `max` at most: how many (those of
 * messages that have come, received or not, are not among them); or an error. Afterwards
 * `to` cannot write into any. */
int ripc_returns_revoke(struct ripc_service *s, uint32_t to, struct ripc_item *back,
			unsigned max);

struct ripc_message {
	uint32_t from;       /* service that sent it */
	bool is_long;
	unsigned count;
	struct ripc_item items[RIPC_ITEMS_MAX];
	/* Bit i: item i lies in a return buffer of the program, which is the program's again;
	 * the others belong to the library until ripc_release(). */
	uint32_t returned;
	void *private_data;  /* of the library */
};

/* The next message for `s`. timeout_ms 0: does not wait; -1: for ever. -EAGAIN: none. */
int ripc_receive(struct ripc_service *s, struct ripc_message *m, int timeout_ms);
/* Gives the memory of its items back; of long messages the buffers to the pool. */
void ripc_release(struct ripc_message *m);

/* A descriptor that is readable when ripc_receive() has something; for poll() and epoll.
 * Call ripc_receive() with time 0 until -EAGAIN before waiting. Not to be read or closed. */
int ripc_service_fd(struct ripc_service *s);

/* ---- facts ---- */

struct ripc_counters {
	uint64_t short_sent, short_received;
	uint64_t short_dropped;      /* a full queue or an unknown service here */
	uint64_t long_sent, long_received, long_failed;
	uint64_t bytes_pushed, bytes_pulled; /* of long messages, by WRITE and by READ */
	uint64_t registrations, registered_bytes, pool_bytes;
	uint64_t copies;             /* items that were not in registered memory */
	uint64_t connects, connections, connect_failures, refused;
	uint64_t resolves, resolve_failures;
	uint64_t bad_packets;        /* of peers: wrong magic, length, key or offset */
	uint64_t unasked_replies;    /* of the resolver */
	uint64_t unauthentic;        /* a wrong or missing authentication code */
};
void ripc_counters(struct ripc *r, struct ripc_counters *out);

/* What the last error of this thread was; never NULL. Valid until its next call. */
const char *ripc_error(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
