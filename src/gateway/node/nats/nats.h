/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `nats`, for its own files: nats.c has the settings, connect.c connects, messages.c
 * sends and takes messages, jetstream.c has streams, link.c the lines of a connection; protocol.c,
 * answer.c and credentials.c read what comes from outside.
 */
#ifndef GATEWAY_NODE_NATS_NATS_H
#define GATEWAY_NODE_NATS_NATS_H

#include "gateway/node/nats/protocol.h"
#include "gateway/outside/outside.h"
#include "gateway/outside/outside_stream.h"
#include "gateway/outside/settings.h"
#include "util/container_of.h"

#define NATS_URLS_MAX 16
#define NATS_SUBJECTS_MAX 64
/* The last numbers of a stream that are remembered, to know messages that come again. */
#define NATS_REMEMBERED (1 << 20)
/* Messages of a stream that the path has not read, and that are not acknowledged. */
#define NATS_UNREAD_MAX 1024

/* Questions whether the server is there that have no answer, and how often it is asked for
 * confirmations. */
#define NATS_PINGS_MAX 8
#define NATS_ASK_NS (5 * UINT64_C(1000000))
/* Bytes in front of a message to a stream, and of subjects that the node makes. */
#define NATS_JETSTREAM_HEAD_MAX 100
#define NATS_INBOX_SIZE 32

enum {
	NATS_DUPLICATES = OUTSIDE_FIGURES,
};

struct nats_url {
	char host[256], user[256], password[512]; /* empty: none */
	int port;
};

/* When a question was asked, and the last message before it. */
struct nats_ping {
	uint64_t tag, at_ns;
};

struct nats_jetstream {
	bool enabled;
	const char *stream, *durable;
	bool create, memory;
	int64_t max_bytes;
	/* A prefix of message ids that no other node and no other run has. */
	char id[33];
	/* Messages that were asked for and have not come. */
	int64_t awaited;
	uint64_t asked_ns;
	/* Numbers of the stream up to `highest`; a bit for each of the last ones: it was taken. */
	uint64_t highest;
	uint8_t *taken;
	char created[40];           /* of the stream: when */
	/* Subjects to which the server sends messages, and "INBOX.TAG", to which it answers. */
	char inbox[NATS_INBOX_SIZE], consumer_inbox[NATS_INBOX_SIZE + 1];
	uint64_t pull_from_ns;      /* messages that nobody has acknowledged come first */
	/* The stream is not there: since when, and until when nothing is sent to it; 0: it is. */
	uint64_t away_ns, pause_ns;
	/* Messages that are not acknowledged, the oldest first: the subject of the acknowledgement,
	 * and how many samples had come with them (outside_samples_put()). */
	struct {
		char *reply;
		uint64_t put;
	} unread[NATS_UNREAD_MAX];
	unsigned unread_first, unread_count;
};

/* jetstream.c: the keys of the group `jetstream`. */
#define NATS_JETSTREAM_KEYS 5
extern const struct config_key nats_jetstream_keys[NATS_JETSTREAM_KEYS];

struct nats_node {
	struct outside outside;     /* first */

	/* Settings */
	json_t *url_cfg, *subscribe, *publish, *ssl, *jetstream_cfg;
	const char *host, *username, *password, *password_file, *token, *token_file, *credentials;
	const char *queue_group;
	int64_t port, in_message_max;
	double keepalive_s;
	bool no_echo;
	struct outside_tls tls;
	const char *urls[NATS_URLS_MAX];
	unsigned url_count;
	char own_url[300];
	const char *sub[NATS_SUBJECTS_MAX], *pub[NATS_SUBJECTS_MAX];
	unsigned sub_count, pub_count;
	char target[300];
	struct nats_jetstream js;

	/* State of the connection */
	struct stream stream;
	struct outside_input in;
	uint64_t until_ns;          /* connecting */
	bool wants_tls, has_heads;  /* the server */
	uint64_t max_payload;       /* that it takes */
	char nonce[256];            /* that it wants to be signed */
	struct nats_ping pings[NATS_PINGS_MAX];
	unsigned ping_count;
	uint64_t asked_ns;
	bool refused;               /* the server does not let us publish */
	char refusal[160];
};

static inline struct nats_node *nats_of(struct outside *o)
{
	return container_of(o, struct nats_node, outside);
}

/* Functions that return int: 0 or a negative errno with outside.why, unless said otherwise. */

/* link.c: adds a line, which outside_stream_flush() sends. */
int nats_put_line(struct nats_node *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a message. `head`: NULL, or with its last empty line, and then with `reply`. */
int nats_publish(struct nats_node *m, const char *subject, const char *reply, const char *head,
		 const void *data, size_t len);
/* Asks whether the server is there, and has what was sent. */
int nats_ping(struct nats_node *m);
/* For turn(): asks the server when that is due; the other function tells when. */
int nats_keep(struct nats_node *m);
uint64_t nats_due_ns(const struct nats_node *m);
/* The next frame, which stays until the next read: 1; 0: it has not come completely. */
int nats_next(struct nats_node *m, struct nats_frame *f);
/* The same for open(), which waits for it. */
int nats_await(struct nats_node *m, struct nats_frame *f);
/* Does what a frame asks for that is no message. */
int nats_take(struct nats_node *m, const struct nats_frame *f);
/* Has the samples of a message read, unless it is too long. */
void nats_received(struct nats_node *m, const struct nats_frame *f);

/* connect.c */
int nats_open(struct outside *o);
/* Ends the connection at once. */
void nats_drop(struct nats_node *m);
/* False: it is none. A token in place of user and password is none. */
bool nats_url_parse(struct nats_url *u, const char *url);

/* messages.c */
int nats_send(struct outside *o, struct outbox_message *msg);
int nats_turn(struct outside *o);
unsigned nats_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);
/* Does what a frame asks for. */
int nats_message(struct nats_node *m, const struct nats_frame *f);

/* jetstream.c */
int nats_jetstream_parse(struct nats_node *m, struct config *c, json_t *cfg);
/* For open(): finds or makes the stream and the consumer. */
int nats_jetstream_setup(struct nats_node *m);
int nats_jetstream_publish(struct nats_node *m, const struct outbox_message *msg);
/* A message has come. */
int nats_jetstream_message(struct nats_node *m, const struct nats_frame *f);
/* For turn(): acknowledges messages, and asks for more. */
int nats_jetstream_turn(struct nats_node *m);
/* For close(): sends the acknowledgements that wait, and closes the stream. */
void nats_jetstream_close(struct nats_node *m);
/* For start() and stop(): forgets what was read. 0 or -ENOMEM. */
int nats_jetstream_start(struct nats_node *m);
void nats_jetstream_stop(struct nats_node *m);

#endif
