/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `modbus`, for its own files: modbus.c has the settings, signals.c those of signals; of
 * a client, link.c has the connection and its requests, turn.c reads and writes samples; server.c
 * is the server; registers.c, plan.c and store.c are the pure part.
 */
#ifndef GATEWAY_NODE_MODBUS_MODBUS_H
#define GATEWAY_NODE_MODBUS_MODBUS_H

#include <pthread.h>

#include "util/container_of.h"
/* libmodbus includes sys/param.h, which has its own. */
#pragma push_macro("MIN")
#pragma push_macro("MAX")
#undef MIN
#undef MAX
#include <modbus/modbus.h>
#pragma pop_macro("MIN")
#pragma pop_macro("MAX")

#include "gateway/node/modbus/store.h"
#include "gateway/outside/outside.h"
#include "gateway/part/peers.h"
#include "gateway/part/timer.h"

#define MODBUS_EXCEPTIONS 11

enum {
	MODBUS_POLLS = OUTSIDE_FIGURES,
	MODBUS_POLLS_LEFT_OUT,
	MODBUS_POLLS_FAILED,
	MODBUS_TIMEOUTS,
	MODBUS_BAD_ANSWERS,
	MODBUS_OTHER_UNIT,
	MODBUS_EXCEPTION, /* that of code 1; those of the codes up to 11 follow */
	MODBUS_CLIENTS = MODBUS_EXCEPTION + MODBUS_EXCEPTIONS,
	MODBUS_TURNED_AWAY,
	MODBUS_REQUESTS,
	MODBUS_WRITES,
	MODBUS_FIGURES,
};

enum modbus_mode { MODBUS_CLIENT, MODBUS_SERVER };
enum modbus_transport { MODBUS_TCP, MODBUS_RTU };
enum modbus_write { MODBUS_WRITE_ALL, MODBUS_WRITE_CHANGED };

/* A request for registers or coils. */
struct modbus_op {
	bool writes;
	enum modbus_table table;
	uint16_t address;
	unsigned count;
};

/* Signals of a direction, and the blocks that they are in. */
struct modbus_side {
	struct modbus_map *maps;
	struct modbus_block *blocks;
	unsigned count, block_count;
	unsigned registers;         /* of the largest block */
};

struct modbus_server;

struct modbus_node {
	struct outside outside;     /* first */

	/* Settings */
	int mode, transport, parity, write;
	const char *remote, *device;
	bool echo;                  /* the line gives back what is sent */
	int64_t port, unit, baudrate, data_bits, stop_bits, max_block_size;
	double rate, response_timeout_s, reconnect_s, min_block_usage;
	struct modbus_side in, out;
	char target[320];

	/* Those of a server */
	const char *address;
	int64_t clients_max;
	bool zero_gaps, any_unit;
	double max_age_s;
	json_t *peers_cfg;
	struct peers peers;
	struct modbus_store store;  /* from start to stop with the lock of the server */
	struct modbus_server *server;

	/* For stop(), which ends a request that the server does not answer; with `gate` */
	pthread_mutex_t gate;
	pthread_cond_t answered;
	bool stopping;
	uint64_t requests;          /* that were begun */
	bool busy;                  /* the last one has not ended */
	int fd;                     /* of TCP; -1: none */

	/* Of the connection */
	modbus_t *ctx;
	int exception;              /* of the last request: its code; 0: it was none */
	unsigned failures;          /* requests without a good answer in a row */
	struct timer_grid grid;     /* when to read */
	uint16_t *image;            /* registers that were read last; of the largest block */

	/* The message that is being written: for each block its registers, or the value and the
	 * mask of bits */
	uint16_t *message;
	size_t words;               /* of each message */
	bool has_message, message_failed;
	uint64_t tag, again_ns;     /* not before, the server was busy */
	unsigned next_block;
	char message_why[OUTSIDE_WHY];
	uint16_t *written;          /* as message: what the server has */
	bool *known;                /* of each block, whether `written` holds it */
};

static inline struct modbus_node *modbus_of(struct outside *o)
{
	return container_of(o, struct modbus_node, outside);
}

/* signals.c */
#define MODBUS_SIGNAL_KEYS 10
extern const struct config_key modbus_signal_keys[MODBUS_SIGNAL_KEYS];
/* The signals of a direction from `signals` of `at`; `l` has their types. `writes`: by requests to
 * write, so that their tables can be written; `exclusive`: no register belongs to two signals. 0 or
 * a negative errno, reported. */
int modbus_side_parse(struct modbus_side *s, struct config *c, const json_t *at,
		      const struct signal_list *l, bool writes, bool exclusive);
/* Words of a message for a plan to write. */
size_t modbus_side_words(const struct modbus_side *s);
static inline unsigned modbus_block_words(const struct modbus_block *b)
{
	return b->bits ? 2 : b->count;
}
void modbus_side_free(struct modbus_side *s);

/* link.c */
int modbus_open(struct outside *o);
void modbus_close_link(struct outside *o);
/* Opens m->ctx, a serial line. 0 or a negative errno of libmodbus. */
int modbus_open_line(struct modbus_node *m);
/* Closes m->ctx, if there is one. */
void modbus_close_line(struct modbus_node *m);
/*
 * A request for registers, of a turn, which is locked: not while it waits. 0; -EBADMSG: the server
 * refused it, with m->exception; -EAGAIN: it had no good answer, and may be tried again; another
 * errno: the connection is broken. With the reason in outside.why.
 */
int modbus_request(struct modbus_node *m, const struct modbus_op *op, uint16_t regs[]);
/* Whether the server is still there, and silent. 0 or a negative errno with outside.why. */
int modbus_look(struct modbus_node *m);
/* The node stops: a request without an answer ends soon. */
void modbus_hurry(struct modbus_node *m);

/* echo.c: as a call of libmodbus to read or write: the number of values, or -1 with errno. */
int modbus_exchange_echoed(struct modbus_node *m, const struct modbus_op *op, uint16_t regs[],
			   double timeout_s);

/* turn.c */
int modbus_send(struct outside *o, struct outbox_message *msg);
int modbus_turn(struct outside *o);
unsigned modbus_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);
/* As outside_ops.print. */
int modbus_print_sample(struct outside *o, char *buf, size_t size, size_t *used,
			struct sample *const smps[], unsigned cnt);

/* server.c */
int modbus_server_start(struct modbus_node *m); /* logs */
void modbus_server_stop(struct modbus_node *m);
/* As in struct node_type. */
int modbus_server_read(struct modbus_node *m, struct sample *smps[], unsigned cnt);
int modbus_server_write(struct modbus_node *m, struct sample *smps[], unsigned cnt);
/* NULL while the node is stopped. */
struct inbox *modbus_server_inbox(struct modbus_node *m);

#endif
