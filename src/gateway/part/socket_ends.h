/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What node-types with a socket of their own have in common: the settings of its two ends
 * (`in` and `out`), their checks, the formats, and the addresses and options of the socket.
 *
 * The private data of such a node begin with a struct socket_ends. So the functions that
 * take a node can stand in its struct node_type.
 */
#ifndef GATEWAY_PART_SOCKET_ENDS_H
#define GATEWAY_PART_SOCKET_ENDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/part/fault.h"
#include "gateway/part/multicast.h"
#include "gateway/part/socket_address.h"
#include "gateway/part/socket_wait.h"
#include "gateway/plugin/format.h"
#include "gateway/plugin/node.h"

#define SOCKET_DEFAULT_FORMAT "villas.binary"

/* A blocked write returns this often, to check whether it should end. */
#define SOCKET_BLOCK_MS 20
/* A write ends when it was interrupted this often: once may have been meant for the
 * reader of the same node. */
#define SOCKET_INTERRUPTS 3

/* Settings of one direction; the key tables of the node-type fill them. */
struct socket_end {
	const char *address;
	json_t *format, *multicast_cfg;
	bool verify_source;          /* `in` only */
	int64_t buffer_size;         /* bytes */
	struct multicast multicast;
};

struct socket_ends {
	/* Settings; the key tables fill the first three. */
	int layer;                   /* enum socket_layer */
	json_t *format;
	bool verify_source;
	struct socket_end in, out;
	struct config *config;

	struct node *node;
	struct format *reader, *writer; /* NULL: the direction is not used */

	/* From start to stop. */
	struct socket_address local, remote;
	bool has_local, has_remote;
	int fd;                      /* readable when something has come; -1: none. Of
				      * datagrams the socket itself */
	struct socket_wait wait;
	struct fault_counters faults;
	atomic_uint write_interrupts;
};

/* Does out.address name the peer? A server that takes all peers sends to those that have
 * connected. */
static inline bool socket_ends_has_peer(const struct socket_ends *e)
{
	return e->out.address && (e->layer != LAYER_TCP_SERVER || e->verify_source);
}

int socket_ends_init(struct node *n);
void socket_ends_destroy(struct node *n);
int socket_ends_reverse(struct node *n);
void socket_ends_interrupt(struct node *n);
void socket_ends_sleep(struct node *n, uint64_t until_ns);
int socket_ends_poll_fds(struct node *n, int fds[], int max);

/* Interprets the settings and makes the formats. 0, or a negative errno after config_fail(). */
int socket_ends_parse(struct node *n, struct config *c, json_t *cfg);
/* Checks addresses and formats. `in_needed`, `out_needed`: why the address has to be there,
 * NULL if it may be missing. 0, or -EINVAL after config_fail(). */
int socket_ends_check(struct socket_ends *e, struct config *c, json_t *cfg,
		      const char *in_needed, const char *out_needed);
/* Makes another reader with the settings of e->reader; as format_new(). */
int socket_ends_new_reader(struct socket_ends *e, struct format **out);

/* 0 or a negative errno; logs the cause. */
int socket_ends_start(struct node *n);
void socket_ends_stop(struct socket_ends *e);

/* socket_open.c. These return 0 or a negative errno and log the cause. */

/* Looks up both addresses, so that one socket can have them. */
int socket_ends_resolve(struct socket_ends *e);
/* Binds `fd` to `at` if `in` has an address, and joins the multicast group. `what`: the name
 * of what it receives, for the log: "" or " reports". */
int socket_ends_bind(struct socket_ends *e, int fd, const struct socket_address *at,
		     const char *what);
/* Sets the options of e->fd, which sends and receives samples. */
int socket_ends_tune(struct socket_ends *e);

#endif
