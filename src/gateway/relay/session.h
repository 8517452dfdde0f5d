/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Of the relay's own files: relay.c starts it and answers the server, session.c has sessions
 * and who is in them, member.c the messages and frames of one connection, describe.c what
 * / and /metrics say.
 *
 * Everything belongs to the thread of the server. A worker that describes it takes `lock`
 * to copy what it needs; the functions of the endpoint hold it while they run.
 */
#ifndef GATEWAY_RELAY_SESSION_H
#define GATEWAY_RELAY_SESSION_H

#include <pthread.h>
#include <stdint.h>

#include "gateway/http/requests.h"
#include "gateway/ws/ws_peer.h"
#include "gateway/plugin/web.h"
#include "gateway/relay/relay.h"
#include "util/list.h"

#define RELAY_BUCKETS 1024

/* A message as it goes to all who get it. */
struct relay_frame {
	unsigned users;
	bool queued;          /* counted in relay.held_bytes */
	size_t len;
	unsigned char bytes[];
};

struct relay_counters {
	uint64_t frames_in, frames_out, bytes_in, bytes_out; /* messages; their contents */
	uint64_t lost;        /* messages that were not sent, as somebody was too slow */
};

/* A ring of messages that wait. */
struct relay_queue {
	struct relay_frame **at;
	unsigned size, first, count; /* size: 0 or a power of two */
	size_t bytes;
};

struct relay_member {
	struct list entry;    /* of the session */
	struct list all;      /* of the relay */
	struct relay *relay;
	struct relay_session *session;
	struct ws_peer peer;
	struct relay_queue queue;
	uint64_t id;
	double created;       /* seconds since 1970 */
	char address[64];
	size_t partial_bytes; /* of a message that has not come as a whole */
	struct relay_counters n;
};

struct relay_session {
	struct list entry;    /* of its bucket */
	struct list members;
	unsigned count;
	uint64_t connects;
	double created;
	struct relay_counters n;
	char path[];
};

struct relay_sums {
	struct relay_counters n;
	uint64_t sessions, accepted, refused, malformed, timeouts;
};

struct relay {
	const struct relay_settings *settings;
	struct http_server *server;
	struct web_endpoint endpoint;
	pthread_mutex_t lock;
	uint64_t now_ns;      /* of the present call */
	uint64_t hash_seed;
	struct list sessions[RELAY_BUCKETS];
	struct list members;
	unsigned session_count, member_count;
	size_t held_bytes;    /* messages that wait, or have come in part */
	struct relay_sums sums;
};

/* session.c, with the lock. A member of the session of `path`, which is made if need be.
 * NULL: refused, with the status of the answer and the reason. */
struct relay_member *relay_join(struct relay *r, const char *path, const char *address,
				int *status, const char **why);
/* Frees it; with the last one the session goes. */
void relay_leave(struct relay_member *m);

/* member.c, with the lock. 0, or -1: the connection is to end. */
int relay_member_take(struct relay_member *m, const void *data, size_t len);
/* Sends what waits. */
void relay_member_send(struct relay_member *m);
/* Says goodbye; nothing is sent behind that. */
void relay_member_end(struct relay_member *m, unsigned status, const char *reason);
/* Asks whoever is silent, and gives up who does not answer. */
void relay_member_watch(struct relay_member *m);
void relay_queue_clear(struct relay_member *m);

/* describe.c */
int relay_find(const char *method, const char *path, struct http_found *f);
void relay_ask(void *arg, const struct control_question *q, struct control_answer *a);
json_t *relay_sums_json(const struct relay_sums *s);

#endif
