/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `zeromq`, for its own files: zeromq.c has the settings, socket.c the sockets,
 * peers.c what is known of peers, message.c the messages, curve.c the keys of CURVE and the list of
 * clients that may connect. */
#ifndef GATEWAY_NODE_ZEROMQ_ZEROMQ_H
#define GATEWAY_NODE_ZEROMQ_ZEROMQ_H

#include <zmq.h>

#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"
#include "util/container_of.h"

#define ZEROMQ_URLS_MAX 32
#define ZEROMQ_URL_MAX 256
#define ZEROMQ_ALLOWED_MAX 128
/* Of a key in the alphabet Z85, and with its end. */
#define ZEROMQ_KEY_LEN 40
#define ZEROMQ_KEY_SIZE (ZEROMQ_KEY_LEN + 1)
#define ZEROMQ_KEY_BYTES 32

enum {
	ZEROMQ_IN_PEERS = OUTSIDE_FIGURES,
	ZEROMQ_OUT_PEERS,
	ZEROMQ_HANDSHAKES_FAILED,
};

enum { ZEROMQ_PUBSUB, ZEROMQ_RADIODISH };
enum { ZEROMQ_ROLE_BINDER, ZEROMQ_ROLE_SERVER, ZEROMQ_ROLE_CLIENT };

/* One direction, which has a socket of its own. */
struct zeromq_side {
	/* Settings */
	json_t *given;
	const char *url[ZEROMQ_URLS_MAX];
	unsigned url_count;
	const char *filter;         /* NULL or not empty */
	bool bind;
	int64_t hwm;
	unsigned peers_figure;

	/* From open() to the end of the connection, or of the node. */
	void *socket, *monitor;
	int fd, monitor_fd;
	bool left;                  /* something may have come that `fd` does not tell */
	uint64_t opened_ns;
	struct zeromq_address {
		char text[ZEROMQ_URL_MAX]; /* of url[], with a number for the host */
		bool failed;        /* an attempt to connect, since open() */
		bool given_up;      /* the library does not connect there again */
	} address[ZEROMQ_URLS_MAX];
	uint64_t retry_ns;          /* when we do; 0: none is given up */
	bool broken;                /* the socket has failed */
	bool half;                  /* the filter was sent, and its message not yet */
	bool is_udp;                /* no peer is known */
	unsigned peers;             /* connections whose handshake has succeeded */
	unsigned failed;            /* handshakes that failed, whose connection has not ended */
	uint64_t topics;            /* of subscriptions that fit to the filter */
	uint64_t looked_ns;         /* the last time that all subscriptions were taken */
	uint64_t ended_ns;          /* the last time that a connection ended */
	uint64_t silent_since_ns;   /* there are peers, but no subscriptions; 0: is not so */
	char why[200];              /* the last handshake or connection failed */
};

struct zeromq_curve {
	bool enabled;
	const char *public_key, *secret_key, *secret_key_file, *server_key;
	int role;                   /* ZEROMQ_ROLE_... */
	json_t *allow_cfg;
	unsigned char allow[ZEROMQ_ALLOWED_MAX][ZEROMQ_KEY_BYTES];
	unsigned allow_count;
};

/* curve.c: the keys of the group `curve`. */
#define ZEROMQ_CURVE_KEYS 7
extern const struct config_key zeromq_curve_keys[ZEROMQ_CURVE_KEYS];

struct zeromq_node {
	struct outside outside;     /* first */

	/* Settings */
	int pattern;
	bool ipv6, drop_slow;
	double heartbeat_s;
	int64_t in_message_max;
	json_t *curve_cfg;
	struct zeromq_curve curve;
	struct zeromq_side in, out;
	char target[300];

	/* From the first open() to the end of the node. */
	void *context;
	void *zap;                  /* answers which clients may connect */
	int zap_fd;
	bool zap_left;              /* as zeromq_side.left */
	uint64_t said_ns;           /* until then, clients that may not connect are not logged */

	bool is_up;
	bool has_waited;            /* the last turn() came after a wait */
};

static inline struct zeromq_node *zeromq_of(struct outside *o)
{
	return container_of(o, struct zeromq_node, outside);
}

/* socket.c */
int zeromq_open(struct outside *o);
void zeromq_close(struct outside *o);
/* Ends the sockets and the threads of the library. */
void zeromq_forget(struct zeromq_node *m);
/* Whether a path uses this direction. */
bool zeromq_is_used(const struct zeromq_node *m, const struct zeromq_side *d);
/* The side whose connection is the one of the node. */
struct zeromq_side *zeromq_main_side(struct zeromq_node *m);
/* Says that the library has refused `what`; a negative errno. */
int zeromq_fail(struct zeromq_node *m, const char *what);

/* message.c */
int zeromq_send(struct outside *o, struct outbox_message *msg);
int zeromq_turn(struct outside *o);
unsigned zeromq_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);
/* Takes one message of several frames without waiting; those beyond `max` are dropped. Their
 * number, which may be greater than `max`; 0: there is none; or a negative errno. The caller
 * closes the frames. */
int zeromq_frames_take(void *socket, zmq_msg_t frames[], unsigned max);
void zeromq_frames_close(zmq_msg_t frames[], int count, unsigned max);

/* peers.c */
/* Takes what the monitor tells. */
void zeromq_peers_take(struct zeromq_node *m, struct zeromq_side *d);
/* Connects to addresses that the library has given up. */
void zeromq_peers_retry(struct zeromq_side *d);
/* A message has come. */
void zeromq_peers_correct(struct zeromq_side *d);
/* Takes what subscribers have sent. 0 or a negative errno. */
int zeromq_subscriptions_take(struct zeromq_node *m);
/* Whether somebody takes messages of this side, or sends some. */
bool zeromq_is_alive(const struct zeromq_node *m, const struct zeromq_side *d);
/* Whether an attempt to connect has failed for each address. */
bool zeromq_have_all_failed(const struct zeromq_side *d);
/* Says once that a publisher has peers, but no subscriptions. */
void zeromq_silence_say(struct zeromq_node *m, struct zeromq_side *d);

/* curve.c */
/* 0 or -EINVAL, reported. */
int zeromq_curve_parse(struct zeromq_node *m, struct config *c, json_t *cfg);
/* Sets the keys of a socket that is not connected yet. 0, or a negative errno with the reason in
 * o->why. */
int zeromq_curve_set(struct zeromq_node *m, struct zeromq_side *side);
/* Opens the socket by which the library asks whether a client may connect, if there is a list. */
int zeromq_zap_open(struct zeromq_node *m);
void zeromq_zap_answer(struct zeromq_node *m);

#endif
