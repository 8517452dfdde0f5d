/* SPDX-License-Identifier: BSD-2-Clause */
/* Control messages on a link's socket. */
#ifndef TRANSPORT_SHM_LINK_CONTROL_H
#define TRANSPORT_SHM_LINK_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/share/process.h"

#define SHM_CONTROL_MAGIC 0x6d687362u
#define SHM_CONTROL_VERSION 6 /* also when struct hca_segment changes */

enum shm_control_kind {
	SHM_HELLO = 1, /* descriptors: segment, kick, area. A peer that may not have
			* the kick descriptor gets the segment's again instead */
	SHM_WELCOME,   /* descriptors: segment, kick, and keys or none */
	SHM_REDIRECT,  /* instead of WELCOME: another link of the two processes exists
			* or is being made, and is to be used */
	SHM_READY,     /* descriptor: keys or none */
	SHM_REFUSED,   /* instead of WELCOME: the connector is not allowed a link */
	/* On a link that is up. A request that is refused has no answer. */
	SHM_ASK_MEMORY,
	SHM_MEMORY,      /* descriptor: /proc/self/mem */
	SHM_ASK_REGION,  /* `id`, `key`: a key in the region */
	SHM_REGION,      /* `id`, `length`, `writable`, `touch_*`; descriptor */
	SHM_REGION_GONE, /* `id` */
	/* One byte instead of a struct: wakes a peer whose eventfd we do not have. */
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
	uint64_t touch_at, touch_length; /* the part that will be used soon */
	uint32_t writable;
	uint32_t lends;        /* HELLO, WELCOME: enum hca_peer_lends */
	uint64_t segment_addr; /* of the sender's segment in its own address space;
				* 0 for a peer that may not access its memory */
	uint8_t uuid[16];
	uint32_t blocks[HCA_BLOCKS_PER_PROCESS];
};

/* Sends `*msg`, in which it fills in the fields that identify the sender. 0 or a negative
 * errno; never waits. */
int shm_control_send(int fd, struct shm_control *msg, const int *fds, int fd_count);

/* Sends a message that has no fields but its kind. As shm_control_send(). */
int shm_control_tell(int fd, enum shm_control_kind kind, const int *fds, int fd_count);

/* Reads the next message and leaves it in the socket: 1, 0 (none yet), or -EPROTO (not
 * a control message, the end, or an error of the socket). */
int shm_control_peek(int fd, struct shm_control *msg);

/* 1 with *msg and fds filled (missing ones -1), 0 (none yet), or a negative errno
 * (-ECONNRESET at the end). `take`: its descriptors are received; else the kernel drops
 * them. */
int shm_control_recv(int fd, struct shm_control *msg, bool take, int fds[3]);

/* Closes those that are not -1 (hca_fd_drop) and sets all to -1. */
void shm_control_drop(int fds[3]);

/* Sends SHM_KICK. Failure is only logged. */
void shm_control_kick(int fd);

#endif
