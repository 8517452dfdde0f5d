/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that implements the handshake of transport/shm itself, without the adapter, and
 * can then write anything into the link: for tests of hostile processes. It uses the
 * layouts of ring.h and hca/share/public.h and none of the transport's code.
 */
#ifndef ADAPTER_EVIL_H
#define ADAPTER_EVIL_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdbool.h>

#include "hca/object/public.h"
#include "hca/share/process.h"
#include "transport/shm/link/control.h"
#include "transport/shm/ring/ring.h"

enum evil_file {
	EVIL_SEALED,
	EVIL_UNSEALED,   /* may shrink later */
	EVIL_SHORT,      /* sealed, one byte too small */
	EVIL_PIPE,
	EVIL_MISSING,
};

struct evil {
	uint32_t block;        /* of QP numbers */
	int listen_fd;
	struct hca_segment *segment;
	struct hca_key *keys;  /* HCA_KEYS of them */
	int segment_fd, keys_fd, kick_fd, area_fd;
	uint8_t uuid[16];
	uint32_t lends;        /* enum hca_peer_lends, as sent in HELLO and WELCOME */
	/* The link. */
	int fd;
	struct shm_area *area;
	struct shm_direction *tx, *rx;
	const struct hca_segment *victim;
	int victim_kick, victim_keys; /* -1: not given */
	uint8_t victim_uuid[16];
	uint32_t pos;          /* next slot to write */
};

int evil_memory(const char *name, size_t size, enum evil_file kind);
/* A segment, a wake-up descriptor, and the name of block `block` or of the next
 * that is free (0: none). 0 or -1. */
int evil_open(struct evil *e, uint32_t block);
/* A socket connected to the owner of `block`, or -1. */
int evil_connect(uint32_t block);
/* A correct message of the kind; to be sent with evil_send(). */
struct shm_control evil_control(const struct evil *e, enum shm_control_kind kind);
/* `size` bytes of the message with descriptors; 0 or -1. */
int evil_send(int fd, const void *msg, size_t size, const int *fds, int count);
/* The next message within `ms`: its bytes (0: the end), -1: none. */
int evil_recv(int fd, struct shm_control *msg, int fds[3], int ms);
/* A correct handshake: as connector to the owner of `block`, or as acceptor. 0 or -1. */
int evil_call(struct evil *e, uint32_t block);
int evil_answer(struct evil *e, int ms);
/* Its halves. Connector: sends HELLO and waits for WELCOME; sends READY. Acceptor: waits
 * for HELLO; sends WELCOME and waits for READY. 0 or -1. */
int evil_hello(struct evil *e, uint32_t block);
int evil_ready(struct evil *e);
int evil_hear(struct evil *e, int ms);
int evil_welcome(struct evil *e, int ms);
/* Is the connection closed by the other end within `ms`? */
bool evil_closed(int fd, int ms);
/* The next slot, zeroed but for tag and acknowledgement; evil_publish() makes
 * it visible and wakes the receiver. */
struct shm_slot *evil_slot(struct evil *e);
void evil_publish(struct evil *e);
/* How many of our slots the receiver has passed. */
static inline uint32_t evil_consumed(const struct evil *e)
{
	return atomic_load(&e->tx->ack.word) & SHM_ACK_POS_MASK;
}
/* Ends the link. */
void evil_hang_up(struct evil *e);
void evil_close(struct evil *e);

#endif
