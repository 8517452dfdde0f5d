/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `nats`, for its own files: nats.c has the settings, link.c a connection of the
 * library and its helper thread, connect.c how it is made, messages.c what is sent and received,
 * jetstream.c streams, answer.c reads their answers.
 */
#ifndef GATEWAY_NODE_NATS_NATS_H
#define GATEWAY_NODE_NATS_NATS_H

#include <nats/nats.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"
#include "util/container_of.h"

#define NATS_URLS_MAX 16
#define NATS_SUBJECTS_MAX 64
/* The last numbers of a stream that are remembered, to know messages that come again. */
#define NATS_REMEMBERED (1 << 20)
/* Messages of a stream that the path has not read, and that are not acknowledged. */
#define NATS_UNREAD_MAX 1024

enum {
	NATS_DUPLICATES = OUTSIDE_FIGURES,
	NATS_DROPPED,
};

enum nats_link_state {
	NATS_LINK_CONNECTING, /* the helper waits for the server; the library is not used else */
	NATS_LINK_SETUP,      /* the helper subscribes, with the settings of the node */
	NATS_LINK_READY,
	NATS_LINK_FAILED,
};

struct nats_node;

/*
 * A connection. The library can only wait for a connection and for confirmations, so a helper
 * thread does this. All else happens in turn() and send(): the library believes that they are
 * its event loop. A helper that still waits for a server when its node stops is left behind, and
 * ends on its own; hence the count of references.
 */
struct nats_link {
	atomic_uint refs;
	struct nats_node *node;     /* not used by the helper unless in state NATS_LINK_SETUP */
	natsOptions *options;
	/* Makes the subscriptions, by the helper. 0, or a negative errno with the reason in `why`. */
	int (*setup)(struct nats_link *l);
	bool confirms, tls;

	/* Of the event loop */
	int event_fd;               /* wakes who waits for the server */
	atomic_int fd;              /* the connection's, a duplicate; -1 */
	atomic_bool want_write;     /* the library has bytes to write */
	_Atomic uint64_t busy_ns;   /* TLS: since when a call of the library lasts; 0: none */
	bool partial, full;         /* TLS: a record is not complete, a socket without room */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	_Atomic enum nats_link_state state;
	bool ending;                /* the node wants it no more */
	bool closed;                /* and will not use `connection` */
	natsConnection *connection; /* from NATS_LINK_SETUP on */
	char why[OUTSIDE_WHY];      /* of NATS_LINK_FAILED, or of a refusal */

	/* Messages up to tag `asked` were sent, up to `answered` the server has them. */
	_Atomic uint64_t asked, answered;
	bool idle;                  /* the helper waits for `asked` */
	atomic_bool refused;        /* the server does not let us publish */

	natsSubscription *subs[NATS_SUBJECTS_MAX];
	unsigned sub_count;

	/* JetStream */
	natsInbox *inbox;           /* of answers to what was published: INBOX.TAG */
	natsSubscription *answers;
	char consumer_inbox[64];
	uint64_t pull_from_ns;      /* messages that nobody has acknowledged come first */
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
	int64_t created;            /* of the stream: when */
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
	int64_t port;
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

	/* From start to stop */
	struct nats_link *link;     /* of open() to close() */
	struct nats_link *left;     /* one whose helper has been left behind, or NULL */
	uint64_t confirmed;         /* the last tag */
	int64_t dropped[NATS_SUBJECTS_MAX];
};

static inline struct nats_node *nats_of(struct outside *o)
{
	return container_of(o, struct nats_node, outside);
}

/* link.c */
/* Starts to connect with `options`, which are used up also if this fails. */
int nats_link_start(struct nats_node *m, natsOptions *options,
		    int (*setup)(struct nats_link *l));
/* Of close(): after this the helper does not use the node. */
void nats_link_end(struct nats_node *m);
/* True: no helper of an earlier connection still runs. */
bool nats_link_forget(struct nats_node *m);
/* Of stop(): such a helper ends on its own. */
void nats_link_leave_behind(struct nats_node *m);
/* Reads and writes what the socket allows, at once. */
void nats_link_process(struct nats_link *l, bool read);
/* Tells the helper that message `tag` was sent. */
void nats_link_ask(struct nats_link *l, uint64_t tag);

/* Marks a stretch of code in which this thread itself does what the library asks of its event
 * loop. */
void nats_link_enter(void);
void nats_link_leave(void);
/* Puts the reason into l->why; returns a negative errno. */
int nats_link_fail(struct nats_link *l, natsStatus s, const char *what);

/* connect.c */
int nats_open(struct outside *o);

/* messages.c */
int nats_send(struct outside *o, struct outbox_message *msg);
int nats_turn(struct outside *o);
unsigned nats_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);

/* jetstream.c */
int nats_jetstream_parse(struct nats_node *m, struct config *c, json_t *cfg);
int nats_jetstream_setup(struct nats_link *l);
natsStatus nats_jetstream_publish(struct nats_node *m, const struct outbox_message *msg);
/* Of turn(). 0 or a negative errno with the reason. */
int nats_jetstream_turn(struct nats_node *m);
/* Of close(): the server gets the acknowledgements. */
void nats_jetstream_close(struct nats_node *m);
/* Of start() and stop(): nothing was read. 0 or -ENOMEM. */
int nats_jetstream_start(struct nats_node *m);
void nats_jetstream_stop(struct nats_node *m);

#endif
