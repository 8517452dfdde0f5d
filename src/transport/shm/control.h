/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a link's socket. */
#ifndef TRANSPORT_SHM_CONTROL_H
#define TRANSPORT_SHM_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/process.h"

#define SHM_CONTROL_MAGIC 0x6d687362u
#define SHM_CONTROL_VERSION 6 /* also when struct hca_segment changes */

enum shm_control_kind {
	SHM_HELLO = 1, /* descriptors: segment, kick, area; kick: the segment again
			* for who does not get it */
	SHM_WELCOME,   /* descriptors: segment, kick, and keys or none */
	SHM_REDIRECT,  /* use the link that we have with you already */
	SHM_READY,     /* descriptor: keys or none */
	SHM_REFUSED,   /* instead of WELCOME: you may not talk to us */
	/* On a link that is up. A request that is refused has no answer. */
	SHM_ASK_MEMORY,
	SHM_MEMORY,      /* descriptor: /proc/self/mem */
	SHM_ASK_REGION,  /* `id`, `key`: one that lies in the region */
	SHM_REGION,      /* `id`, `length`, `writable`, `touch_*`; descriptor */
	SHM_REGION_GONE, /* `id` */
	/* One byte instead of a message: wakes who has no eventfd for that. */
	SHM_KICK,
};

struct shm_control {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint32_t area_bytes;
	uint32_t block_count;
	uint32_t id, key;
	uint64_t length;
	uint64_t touch_at, touch_length; /* will be used soon */
	uint32_t writable;
	uint32_t lends;        /* HELLO, WELCOME: enum hca_peer_lends */
	uint64_t segment_addr; /* of the sender's segment in its own space, for
				* those who may look there */
	uint8_t uuid[16];
	uint32_t blocks[HCA_BLOCKS_PER_PROCESS];
};

/* Sends `*msg`, whose identity it fills in. 0 or a negative errno; never waits. */
int shm_control_send(int fd, struct shm_control *msg, const int *fds,
		     int fd_count);

/* A message of a kind alone. */
int shm_control_tell(int fd, enum shm_control_kind kind, const int *fds,
		     int fd_count);

/* What comes next, left where it is: 1; 0: nothing yet; -EPROTO: nothing of ours, or
 * the end. */
int shm_control_peek(int fd, struct shm_control *msg);

/* 1 with *msg and fds filled (missing ones -1), 0 nothing there, or a negative
 * errno (-ECONNRESET at the end). `take`: with its descriptors; else they never
 * become ours. */
int shm_control_recv(int fd, struct shm_control *msg, bool take, int fds[3]);

/* Descriptors that were of no use. */
void shm_control_drop(int fds[3]);

/* A SHM_KICK. */
void shm_control_kick(int fd);

#endif
