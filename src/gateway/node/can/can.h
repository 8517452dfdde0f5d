/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `can`, for its own files: can.c has the settings, signals.c those of signals, traffic.c
 * reads and writes frames and follows the interface, bus.c is the socket, errors.c knows error
 * frames, places.c is the pure part; dbc.c reads files of that format, engineering.c takes the places
 * of signals from them.
 */
#ifndef GATEWAY_NODE_CAN_CAN_H
#define GATEWAY_NODE_CAN_CAN_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "gateway/node/can/dbc.h"
#include "gateway/node/can/places.h"
#include "gateway/part/backoff.h"
#include "gateway/part/fault.h"
#include "gateway/part/socket_wait.h"
#include "gateway/plugin/node.h"

#define CAN_WHY_MAX 200

/* Behind the figures of fault.h. */
enum can_figure {
	CAN_FRAMES_RECEIVED = FAULT_KINDS,
	CAN_FRAMES_SENT,
	CAN_SHORT_FRAMES,
	CAN_OUT_OF_RANGE,
	CAN_OVERWRITTEN,
	CAN_CLIPPED_VALUES,
	CAN_WAITS,
	CAN_DOWNS,
	/* Counters of error frames. */
	CAN_ERROR_FRAMES,
	CAN_BUS_OFF,
	CAN_RESTARTED,
	CAN_PASSIVE,
	CAN_WARNING,
	CAN_ACTIVE,
	CAN_OVERFLOWS,
	CAN_ARBITRATION_LOST,
	CAN_TX_TIMEOUTS,
	CAN_PROTOCOL_ERRORS,
	CAN_NO_ACK,
	CAN_BUS_ERRORS,
	CAN_TRANSCEIVER,
	CAN_TX_ERRORS,
	CAN_RX_ERRORS,
	CAN_FIGURES,
};

/* ---- bus.c: the socket ---- */

struct can_bus_settings {
	const char *interface;
	bool fd, loopback, receive_own;
	/* Which frames the kernel lets through; `all`: all frames with data. */
	const struct can_filter *filters;
	unsigned filter_count;
	bool all;
};

struct can_arrival {
	_Alignas(8) uint8_t bytes[CANFD_MTU];
	size_t size;
	struct timespec received; /* by the kernel's clock */
	uint32_t overruns;        /* the kernel's counter of frames without room; it wraps */
};

/* A table, so that tests have another bus than the kernel's. No call waits. */
struct can_bus_ops {
	/* Opens a socket that is bound to no interface. A negative errno with the reason in why. */
	int (*open)(const struct can_bus_settings *s, char why[CAN_WHY_MAX]);
	/*
	 * Binds it to the interface, unless it is bound to this one already (*index, which is 0
	 * at first). 0: the interface is up; -ENODEV: there is none; -ENETDOWN: it is down;
	 * -EINVAL: it is none of CAN; or another negative errno. With the reason.
	 */
	int (*attach)(int fd, const struct can_bus_settings *s, unsigned *index,
		      char why[CAN_WHY_MAX]);
	/* 0 or a negative errno: -ENOBUFS, -EAGAIN: there is no room for now. */
	int (*send)(int fd, const void *frame, size_t size);
	/* 0; -EAGAIN: none has come; or another negative errno. */
	int (*receive)(int fd, struct can_arrival *a);
};

extern const struct can_bus_ops can_bus_socket;

/* ---- the node ---- */

enum can_trigger { CAN_TRIGGER_ALL, CAN_TRIGGER_ANY, CAN_TRIGGER_ID };

/* Signals of a direction and the messages that hold them. */
struct can_side {
	struct can_map *maps;
	struct can_message *messages;
	unsigned count, message_count;
};

struct can_node {
	struct node *node;

	/* Settings. */
	struct can_bus_settings bus;
	double sample_rate;      /* accepted because VILLASnode has it; no effect */
	bool bitrate_switch;
	int64_t reconnect_ms;
	const char *dbc;         /* NULL: none */
	int trigger;
	int64_t trigger_id;
	double send_timeout_s;
	struct can_side in, out;

	/* The socket, from start to stop. */
	const struct can_bus_ops *ops;
	int fd;
	struct socket_wait wait;
	struct fault_counters faults;
	struct can_filter *filters;

	/* The interface. Reading and writing threads look at it, one at a time. */
	pthread_mutex_t lock;
	struct backoff retry;      /* with the lock */
	unsigned index;            /* with the lock */
	int was;                   /* with the lock: the errno that was logged last; 0: none */
	_Atomic uint64_t retry_ns; /* when to look again; 0: now */
	atomic_bool up, bus_off;
	atomic_int shown;          /* the enum node_state that this file has set; -1: none */
	_Atomic uint64_t said_ns;  /* a line about errors on the bus */

	/* Used by the thread that reads. */
	struct can_arrival arrival;
	uint32_t overruns;
	union signal_data *values; /* of all signals */
	bool *seen;                /* of each message: it came since the last sample */
	unsigned unseen;           /* messages */
	const struct can_message *trigger_message;

	/* Used by the thread that writes. */
	uint8_t *frames;           /* CANFD_MTU of each message */
	uint64_t drained_ns;
	bool stuck;                /* a frame waited in vain: no other waits until one is sent */
};

/* traffic.c. The first one 0 or a negative errno after a message in the log; close undoes a part,
 * too. */
int can_open(struct can_node *c);
void can_close(struct can_node *c);
int can_node_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
int can_node_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
void can_node_sleep(struct node *n, uint64_t until_ns);

static inline bool can_reads(const struct can_node *c)
{
	return c->in.count && c->node->in.enabled;
}

/* errors.c: an error frame. */
void can_take_error(struct can_node *c, const struct can_received *r);
/* Prints one line about an error frame. Pure. */
void can_error_print(const struct can_received *r, char *buf, size_t size);

/* signals.c */
#define CAN_SIGNAL_KEYS 15
extern const struct config_key can_signal_keys[CAN_SIGNAL_KEYS];
/* The signals of a direction from `signals` of `at`; `l` has their types; `dbc` NULL: there is no file.
 * 0 or a negative errno, reported. */
int can_side_parse(struct can_side *s, struct config *c, const json_t *at,
		   const struct signal_list *l, const struct dbc *dbc, bool fd, bool writes);
/* engineering.c: the place of the signal that dbc_signal of `at` names. 0 or -EINVAL, reported. */
int can_map_from_dbc(struct can_map *m, struct config *c, const json_t *at, const struct dbc *dbc,
		     const char *name, enum signal_type type);
/* Reads the file of the key dbc of `cfg`; *text is to be freed after dbc_free(), in each case. 0 or a
 * negative errno, reported. */
int can_dbc_load(struct dbc *dbc, char **text, struct config *c, const json_t *cfg, const char *path);
void can_side_free(struct can_side *s);
/* The identifier with its flag, from two keys; `extended`: the second one is there. UINT32_MAX: it
 * is none, which was reported. */
uint32_t can_id_parse(struct config *c, const json_t *at, const char *key, int64_t id);

#endif
