/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections to other people's servers (brokers, databases), for node-types. A node-type
 * brings its protocol or the calls of its library (struct outside_ops) and a table of keys; this
 * room has all else: connecting in the background and again after a loss, messages in the
 * node's format, samples that wait to be read, messages that wait to be sent, the policy when
 * there is no room, confirmations, the state of the node, and its figures.
 *
 * One thread at a time makes the calls of struct outside_ops, with the connection locked. A
 * thread of the node connects, and does what is due while no other thread does. The thread of a path that reads the
 * node takes its place: then a message needs no other thread on its way. The thread of a path
 * that writes sends by itself while nothing waits. With OUTSIDE_MAY_WAIT all calls are made by
 * the thread of the node.
 *
 * The private data of such a node begin with a struct outside, and its struct node_type has the
 * callbacks below (outside_start() and so on), or callbacks of its own that call them.
 * CONTRIBUTING.md describes how to add one.
 */
#ifndef GATEWAY_OUTSIDE_OUTSIDE_H
#define GATEWAY_OUTSIDE_OUTSIDE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/base/dial.h"
#include "gateway/base/waker.h"
#include "gateway/outside/outbox.h"
#include "gateway/part/backoff.h"
#include "gateway/part/fault.h"
#include "gateway/part/inbox.h"
#include "gateway/plugin/format.h"
#include "gateway/plugin/node.h"

#define OUTSIDE_FDS 8
#define OUTSIDE_WHY 300

struct outside;

enum outside_flags {
	/* Calls may wait for the server: only the thread of the node makes them. */
	OUTSIDE_MAY_WAIT = 1 << 0,
	/* The library itself sends again what was not confirmed before a loss. */
	OUTSIDE_REPEATS = 1 << 1,
	/* Whether and when an attempt has failed is known to turn(): an open() that returned 1 may
	 * take longer than connect_timeout, for instance until a peer connects to us. */
	OUTSIDE_PATIENT = 1 << 2,
};

/* What send() returns beside negative errnos. */
enum {
	OUTSIDE_SENT = 0,        /* nobody will confirm it */
	OUTSIDE_UNCONFIRMED = 1, /* outside_confirm() or outside_reject() with m->tag follows */
};

struct outside_ops {
	unsigned flags;          /* enum outside_flags */

	/*
	 * Connects. 0: connected; 1: on the way, turn() goes on and calls outside_is_up();
	 * a negative errno, after putting the reason into o->why. May wait for
	 * o->connect_timeout_s at most, and less once outside_is_ending(). Not locked, but
	 * nobody else calls anything meanwhile.
	 */
	int (*open)(struct outside *o);
	/* Ends the connection, once for each open() that did not fail. It tells the server, if
	 * that needs no wait. */
	void (*close)(struct outside *o);
	/*
	 * Sends a message or hands it to the library. OUTSIDE_SENT; OUTSIDE_UNCONFIRMED with
	 * m->tag set; -EAGAIN: not now, turn() comes first; -EMSGSIZE, -EBADMSG: this message
	 * cannot be sent, with the reason in o->why; another errno: the connection is broken.
	 */
	int (*send)(struct outside *o, struct outbox_message *m);
	/*
	 * Does what is due without waiting: takes what has come (outside_received()), sends
	 * what waits in the library, keeps the connection alive. Called when a descriptor of
	 * wait() is ready or the time is over, and without reason. 0, or a negative errno with
	 * the reason in o->why: the connection is broken. May be absent with
	 * OUTSIDE_MAY_WAIT.
	 */
	int (*turn)(struct outside *o);
	/* What turn() waits for: fills fds[], returns their number, and sets *until_ns, which is
	 * a time far away, to a nearer one of clock_now_ns(). May be absent. */
	unsigned (*wait)(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);
	/*
	 * Prints up to `cnt` samples as a message, in place of the node's format; as
	 * format_type.print(). By the thread that writes, not locked; it says by
	 * outside_unprintable() why it fails.
	 */
	int (*print)(struct outside *o, char *buf, size_t size, size_t *used,
		     struct sample *const smps[], unsigned cnt);
};

enum outside_full { OUTSIDE_BLOCK, OUTSIDE_DROP_NEWEST, OUTSIDE_DROP_OLDEST };

struct outside {
	const struct outside_ops *ops; /* set by outside_init() */
	struct node *node;

	/* Settings, by the keys below */
	json_t *format_cfg;
	int64_t reconnect_ms, queuelen, backlog, message_max;
	double connect_timeout_s, block_timeout_s;
	int full;                   /* enum outside_full */

	/* Of outside_parse(): the format of both directions; NULL where it is not used. */
	struct format *scan, *print;

	/* Why a call of ops failed, for messages. */
	char why[OUTSIDE_WHY];

	/* For turn(): the descriptors of wait(), in the same order, with what poll() has found; NULL
	 * when turn() is called without a wait. */
	const struct pollfd *polled;

	/* ---- the rest is for this room alone ---- */
	const char *target;         /* "broker.lab:1883", for messages */
	struct fault_counters faults;
	struct inbox inbox;

	pthread_t thread;
	bool has_thread;
	int node_fd, pump_fd;       /* wake the thread, and who waits for the server */
	atomic_bool ending;
	atomic_bool up, broken;
	atomic_bool partial;        /* outside_set_partial() */
	_Atomic uint64_t led_ns;    /* until then the reader waits for the server */
	pthread_mutex_t pump;       /* held by who waits for the server and calls turn() */
	bool reader_leads;          /* that is the thread that reads; with `pump` */

	pthread_mutex_t lock;       /* of the connection; for calls of ops and what follows */
	pthread_mutex_t entry;      /* of those who want it; outside_hold() */
	struct waker room;          /* in the outbox, for the thread that writes */
	bool made_room;             /* since it was told last */
	bool opened;
	bool was_up;                /* when the node stopped */
	struct outbox waiting, unconfirmed;
	uint64_t next_tag;
	struct backoff backoff;
	char said[OUTSIDE_WHY];
	atomic_bool write_interrupted;

	char refusal[OUTSIDE_WHY];  /* why a message is lost; of the thread that writes */
	char *buf;                  /* of the thread that writes */
	size_t buf_size;
	size_t taken;               /* bytes of messages in this turn; locked */
	unsigned taken_samples;     /* and their samples */
	unsigned last_count;        /* samples of the last message, 64 at most; locked */
	struct sample *spare[INBOX_SPARE]; /* empty ones, for the next messages; locked */
	unsigned spare_count;
	char *line;                 /* a message with the end of its line; locked */
	size_t line_size;
};

/* Figures of the node-type; its own follow from OUTSIDE_FIGURES on. */
enum {
	OUTSIDE_CONNECTED = FAULT_KINDS,
	OUTSIDE_CONNECTIONS,
	OUTSIDE_LOST,
	OUTSIDE_UNREACHABLE,
	OUTSIDE_WAITING,
	OUTSIDE_UNCONFIRMED_SAMPLES,
	OUTSIDE_CONFIRMED,
	OUTSIDE_REPEATED,
	OUTSIDE_UNSURE,
	OUTSIDE_FIGURES,
};

#define OUTSIDE_FIGURE_TABLE \
	[FAULT_MALFORMED] = { "malformed", "Messages and samples that cannot be read", NODE_COUNTER }, \
	[FAULT_OVERRUN] = { "overrun", "Samples that found no room to wait in", NODE_COUNTER }, \
	[OUTSIDE_CONNECTED] = { "connected", "1 while the node is connected to its server", NODE_GAUGE }, \
	[OUTSIDE_CONNECTIONS] = { "connections", "Connections that were made", NODE_COUNTER }, \
	[OUTSIDE_LOST] = { "connections_lost", "Connections that ended though the node did not stop", NODE_COUNTER }, \
	[OUTSIDE_UNREACHABLE] = { "unreachable", "Attempts to connect in vain", NODE_COUNTER }, \
	[OUTSIDE_WAITING] = { "waiting", "Samples that wait to be sent", NODE_GAUGE }, \
	[OUTSIDE_UNCONFIRMED_SAMPLES] = { "unconfirmed", "Samples that were sent and not confirmed yet", NODE_GAUGE }, \
	[OUTSIDE_CONFIRMED] = { "confirmed", "Samples that the server has confirmed", NODE_COUNTER }, \
	[OUTSIDE_REPEATED] = { "repeated", "Samples that were sent again after a loss of the connection, and may arrive twice", NODE_COUNTER }, \
	[OUTSIDE_UNSURE] = { "unsure", "Samples whose confirmation did not come before the end of the node, and that were counted as lost", NODE_COUNTER }

extern const char *const outside_full_names[];

/* Entries for the three tables of keys. `default_format` is a text. */
#define OUTSIDE_KEYS(default_format) \
	{ "format", CONFIG_JSON, offsetof(struct outside, format_cfg), \
	  .help = "Format of the samples in messages, a name or a group; " default_format }, \
	OUTSIDE_CONNECT_KEYS

#define OUTSIDE_CONNECT_KEYS \
	{ "reconnect_interval", CONFIG_INT, offsetof(struct outside, reconnect_ms), "1000", \
	  .min = 10, .max = 86400000, \
	  .help = "Milliseconds between attempts to connect, at most" }, \
	{ "connect_timeout", CONFIG_REAL, offsetof(struct outside, connect_timeout_s), "5.0", \
	  .min = 0.01, .max = 3600, \
	  .help = "Seconds after which an attempt to connect is given up" }

#define OUTSIDE_IN_KEYS \
	{ "queuelen", CONFIG_INT, offsetof(struct outside, queuelen), "1024", .min = 2, \
	  .max = 1 << 20, .help = "Samples that wait to be read" }

#define OUTSIDE_OUT_KEYS \
	{ "backlog", CONFIG_INT, offsetof(struct outside, backlog), "1048576", .min = 4096, \
	  .max = 1 << 30, \
	  .help = "Bytes of messages that wait for the server, and as many that it has not confirmed" }, \
	{ "full", CONFIG_ENUM, offsetof(struct outside, full), "drop_oldest", \
	  .names = outside_full_names, \
	  .help = "When the backlog is full: block for out.block_timeout, drop_newest, or drop_oldest; each is counted" }, \
	{ "block_timeout", CONFIG_REAL, offsetof(struct outside, block_timeout_s), "1.0", \
	  .min = 0, .max = 3600, .help = "Seconds that a write waits for room with full = \"block\"" }, \
	{ "max_message", CONFIG_INT, offsetof(struct outside, message_max), "262144", \
	  .min = 64, .max = 1 << 28, .help = "Bytes of a message, at most" }

/* ---- for struct node_type, or to be called by the callbacks of a node-type ---- */

/* Of init(): `ops` is borrowed for ever. */
void outside_init(struct node *n, const struct outside_ops *ops);
void outside_destroy(struct node *n);
/* Makes the formats; `fallback` NULL: the node-type has none. 0 or -EINVAL, reported. */
int outside_parse(struct node *n, struct config *c, json_t *cfg, const char *fallback);
int outside_check_signals(struct node *n, struct config *c, json_t *cfg);
int outside_start(struct node *n);
int outside_stop(struct node *n);
int outside_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
int outside_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
void outside_sleep(struct node *n, uint64_t until_ns);
bool outside_may_wait(struct node *n);
void outside_interrupt(struct node *n);
void outside_rearm(struct node *n);
int outside_poll_fds(struct node *n, int fds[], int max);

/* Those of them that read, write and wait. */
#define OUTSIDE_SAMPLES \
	.read = outside_read, .write = outside_write, .sleep = outside_sleep, \
	.may_wait = outside_may_wait, .interrupt = outside_interrupt, .rearm = outside_rearm, \
	.poll_fds = outside_poll_fds
/* All of them but those of init, parse, start and stop. */
#define OUTSIDE_CALLBACKS \
	.destroy = outside_destroy, .check_signals = outside_check_signals, OUTSIDE_SAMPLES

/* ---- for outside_ops ---- */

/* The server's name for messages, borrowed; without passwords. Of parse(). */
void outside_set_target(struct outside *o, const char *target);
/* Says why a call fails; returns `ret`. */
int outside_fail(struct outside *o, int ret, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for a server that does not answer within connect_timeout; returns -ETIMEDOUT. */
int outside_fail_silent(struct outside *o);
/* What OpenSSL says when TLS fails, with a server that closes the connection or has no TLS named in
 * plain words. The text is `reason` or a constant. */
const char *outside_tls_reason(const char *reason);

/* Until `until_ns` of clock_now_ns(), or until the node stops. For open(). */
struct dial_limit outside_limit(const struct outside *o, uint64_t until_ns);
/* Connects to a TCP port of `host`: dial_host() within outside_limit(), with the reason in
 * o->why. */
int outside_dial(struct outside *o, const char *host, int port, uint64_t until_ns);

/* The same for ops->print(). */
int outside_unprintable(struct outside *o, int ret, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The connection is made; after an open() that returned 1. */
void outside_is_up(struct outside *o);
/* A part of what the node connects to is missing: messages are sent and received, but the state
 * is not "connected". */
void outside_set_partial(struct outside *o, bool partial);
/* The library wants to be called by turn() soon, or to wait for more than it did: for send(),
 * when it left bytes behind. */
void outside_wake(struct outside *o);
/* For open(), which is not locked, around calls of outside_confirm() and outside_reject(). */
void outside_lock(struct outside *o);
void outside_unlock(struct outside *o);
/* The node stops: calls that wait come back soon. Any thread. */
bool outside_is_ending(const struct outside *o);

/* A message has come, in the node's format. What cannot be read is counted and logged. */
void outside_received(struct outside *o, const void *data, size_t len);
/* Messages of many bytes or samples have come in this turn: turn() goes on the next time, because a
 * path that writes waits meanwhile, and one that reads may have to make room first. */
bool outside_is_enough(const struct outside *o);
/* How many samples find room now, beside those that wait to be read. For a server that keeps
 * messages until they are asked for. */
unsigned outside_room(struct outside *o);
/* Samples that were put to those that wait since the start, and how many of these a path has
 * read. For a server that is told what has been read. */
uint64_t outside_samples_put(struct outside *o);
uint64_t outside_samples_read(struct outside *o);
/* Something else has come that cannot be read: counts and logs it. */
void outside_malformed(struct outside *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Samples that the node-type makes by itself: takes up to `cnt` empty ones, fills them, and
 * gives all of them back, of which the first `filled` hold samples. */
unsigned outside_samples_take(struct outside *o, struct sample *smps[], unsigned cnt);
void outside_samples_give(struct outside *o, struct sample *smps[], unsigned cnt,
			  unsigned filled);

/* Numbers for outbox_message.tag, from 1 on, for libraries without their own. */
static inline uint64_t outside_new_tag(struct outside *o)
{
	return ++o->next_tag;
}

/* The server has the message `tag`; with `all_before` all that were sent before it, too. */
void outside_confirm(struct outside *o, uint64_t tag, bool all_before);
/* The server has not taken what was sent, and may take it later: all that is not confirmed is
 * sent once more. */
void outside_repeat(struct outside *o);
/* The server, or the library, has refused it for good. */
void outside_reject(struct outside *o, uint64_t tag, const char *why);
/* And all that were sent before it. */
void outside_reject_all(struct outside *o, uint64_t tag, const char *why);

#endif
