/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that speaks the protocol of ripc by itself, as badly as a test wants: connections by
 * the connection manager, messages by verbs. One thread.
 */
#ifndef TEST_EVIL_H
#define TEST_EVIL_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ripc/wire/packet.h"

#define CHECK(what) \
	do { \
		if (!(what)) { \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
			fflush(stdout); \
			exit(1); \
		} \
	} while (0)

#define EVIL_DATA_BYTES (1u << 20)
#define EVIL_SENT (1u << 20) /* wr_id of what is sent */

struct evil {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;      /* receives, a message to send, and the data */
	uint8_t *out, *data;
	uint64_t instance;
	uint8_t reason;       /* of a rejection */
	uint8_t accepted[PACKET_CONNECT_BYTES]; /* private data of the acceptance */
	bool up, ended;
	bool mute;            /* posts no receive again */
	uint16_t owed;        /* credits for what was heard */
	/* What came while something was sent; the oldest are forgotten. */
	struct packet_message heard[8];
	unsigned heard_first, heard_end;
};

/* Where the instance that is tormented listens. */
struct evil_target {
	struct sockaddr_in at;
	uint64_t instance;
};

/* A request with this private data. True: it was accepted. */
bool evil_connect(struct evil *e, const struct evil_target *t, const void *data,
		  size_t bytes);
/* As an instance that keeps to the rules so far; with `credits`. */
bool evil_join(struct evil *e, const struct evil_target *t, uint64_t instance,
	       uint16_t credits);
/* That, and the first message. */
void evil_hello(struct evil *e, const struct evil_target *t, uint64_t instance);
/* Sends what is in e->out. False: the connection has ended. */
bool evil_send(struct evil *e, size_t bytes);
bool evil_say(struct evil *e, const struct packet_message *m); /* grants what is owed, too */
/* The next message that is no CREDIT. False: none came in that time, or it has ended. */
bool evil_hear(struct evil *e, struct packet_message *m, unsigned ms);
/* RDMA WRITE of the data. */
bool evil_write(struct evil *e, uint64_t address, uint32_t key, uint32_t bytes);
/* The other side has ended the connection in that time. */
bool evil_is_ended(struct evil *e, unsigned ms);
/* Ends it, too. */
void evil_close(struct evil *e);

uint64_t evil_now_ms(void);
void evil_nap(unsigned ms);

#endif
