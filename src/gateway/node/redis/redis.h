/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `redis`, for its own files: redis.c has the settings, connect.c connects and logs
 * in, turn.c sends and takes replies, hash.c has the samples of hashes, link.c one connection,
 * reply.c and uri.c read what comes from outside.
 */
#ifndef GATEWAY_NODE_REDIS_REDIS_H
#define GATEWAY_NODE_REDIS_REDIS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gateway/node/redis/reply.h"
#include "gateway/node/redis/uri.h"
#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"
#include "gateway/outside/outside_stream.h"
#include "util/container_of.h"

#define REDIS_CHANNELS_MAX 64
/* Commands whose replies have not come. */
#define REDIS_OWED_MAX 4096
/* Bytes that wait for a connection before others are refused. */
#define REDIS_OUT_MAX 65536
/* Entries of a stream that are asked for at a time. */
#define REDIS_ENTRIES_MAX 64
/* Entries of a group that a path has not read yet. */
#define REDIS_UNREAD_MAX 1024
#define REDIS_ERROR_MAX 160

enum redis_mode { REDIS_KEY, REDIS_HASH, REDIS_CHANNEL, REDIS_STREAM };
enum redis_from { REDIS_FROM_NEW, REDIS_FROM_OLDEST };

enum {
	REDIS_UNHEARD = OUTSIDE_FIGURES,
	REDIS_UNCHANGED,
	REDIS_OVERWRITTEN,
	REDIS_AGAIN,
};

/* What the next reply of a connection answers. */
enum redis_owed_kind {
	REDIS_OWED_ANSWER,   /* a command of connect.c, which waits for it */
	REDIS_OWED_PART,     /* a message to one of several channels, but the last one */
	REDIS_OWED_MESSAGE,  /* the last one, or the only one */
	REDIS_OWED_VALUE,    /* GET, HGETALL */
	REDIS_OWED_ENTRIES,  /* XREAD, XREADGROUP */
	REDIS_OWED_ACK,      /* XACK */
	REDIS_OWED_PING,
};

struct redis_owed {
	enum redis_owed_kind kind;
	uint64_t tag;
};

/* An entry of a group: it is acknowledged when paths have read so many samples. */
struct redis_unread {
	struct redis_id id;
	uint64_t samples;
};

/* A piece of a command. */
struct redis_word {
	const char *at;
	size_t len;
};

/* A connection to the server. */
struct redis_link {
	struct redis_node *node;
	struct stream stream;
	struct redis_reader reader;
	bool more;                  /* replies may be there that poll() does not tell of */
	struct redis_owed owed[REDIS_OWED_MAX];
	unsigned first_owed, owed_count;
	bool subscribed;            /* replies come in no order; pings are counted apart */
	unsigned pings;             /* of a subscribed connection, without answer */
	uint64_t heard_ns;          /* something came, or began to be awaited */
};

struct redis_node {
	struct outside outside;     /* first */

	/* Settings */
	int mode, from;
	const char *uri, *host, *path, *user, *password, *password_file, *key, *group, *consumer,
		*field;
	int64_t port, db, max_length, max_reply;
	bool notify, keepalive;
	double rate, connect_timeout_s, socket_timeout_s;
	json_t *channel_cfg, *pattern_cfg, *timeout_cfg, *ssl;
	struct outside_tls tls;
	struct redis_address address;
	const char *channels[REDIS_CHANNELS_MAX], *patterns[REDIS_CHANNELS_MAX];
	unsigned channel_count, pattern_count;
	char target[400];

	/* From start to stop */
	bool wary;                  /* the server refused data for a while: ask before more */
	bool has_last, has_read;
	struct redis_id last;       /* of a stream: what is behind it is to be read; has_read: it
				     * is the entry that was read last */
	bool said_polling;

	/* Of the connection. `data`: commands that are answered at once; `feed`: a
	 * subscription, or a read of a stream, which waits at the server. */
	struct redis_link data, feed;
	uint64_t until_ns;          /* connecting */
	bool notified;              /* the server tells about changes */
	bool asked, ask_again;      /* the value is on its way, and was changed since */
	uint64_t poll_ns;           /* when to ask for it next */
	char *value;                /* that was read last, to notice that it is the same */
	size_t value_len;
	/* Entries of a stream that are not taken yet; borrowed from feed.reader. */
	const struct redis_value *entries;
	unsigned entries_at;
	bool entries_asked;
	/* Of a group: entries that were given to us before, behind `old`, come first. */
	bool old_ones;
	struct redis_id old;
	struct redis_unread unread[REDIS_UNREAD_MAX];
	unsigned first_unread, unread_count;
	uint64_t acknowledge_ns;    /* not before, unless there are many */
};

static inline struct redis_node *redis_of(struct outside *o)
{
	return container_of(o, struct redis_node, outside);
}

static inline struct redis_word redis_word(const char *text)
{
	return (struct redis_word){ text, strlen(text) };
}

/* link.c: connects within node->until_ns. 0 or a negative errno with outside.why. */
int redis_link_open(struct redis_link *l, struct redis_node *m);
/* Sends what can be sent at once, and ends it. */
void redis_link_close(struct redis_link *l);
/* Whether a command, or `count` of them, may be added. */
bool redis_link_has_room(const struct redis_link *l, unsigned count);
/* Adds a command, which redis_link_flush() sends. 0 or -ENOMEM. */
int redis_link_put(struct redis_link *l, enum redis_owed_kind kind, uint64_t tag, unsigned count,
		   const struct redis_word words[]);
/* The same for one that is encoded. */
int redis_link_put_raw(struct redis_link *l, enum redis_owed_kind kind, uint64_t tag,
		       const char *data, size_t len);
/* 0, also if not all went; or a negative errno with outside.why. */
int redis_link_flush(struct redis_link *l);
/* The next reply: 1 with *out; 0: not now; or a negative errno with outside.why. */
int redis_link_next(struct redis_link *l, const struct redis_value **out);
/* What it answers. False: nobody has asked. */
bool redis_link_take_owed(struct redis_link *l, struct redis_owed *out);
/* Asks a server that is silent whether it is there. 0; or -ETIMEDOUT, when it was silent for too
 * long, or another errno, with outside.why. */
int redis_link_keep(struct redis_link *l);
/* When that is to be called. */
uint64_t redis_link_due_ns(const struct redis_link *l);
/* Encodes "$LEN\r\n" and so on; NULL: no room in [at, end). */
char *redis_print_count(char *at, const char *end, char sign, size_t count);
char *redis_print_word(char *at, const char *end, struct redis_word w);

/* connect.c */
int redis_open(struct outside *o);
void redis_close(struct outside *o);

/* turn.c */
/* Tells the server which entries were read, some of them at a time. 0, 1: there may be more, or a
 * negative errno. */
int redis_acknowledge(struct redis_node *m);
int redis_send(struct outside *o, struct outbox_message *msg);
int redis_turn(struct outside *o);
unsigned redis_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);

/* hash.c: as outside_ops.print; a sample becomes a whole command. */
int redis_hash_print(struct outside *o, char *buf, size_t size, size_t *used,
		     struct sample *const smps[], unsigned cnt);
/* The reply of HGETALL. */
void redis_hash_received(struct redis_node *m, const struct redis_value *v);

#endif
