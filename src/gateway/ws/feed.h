/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples printed once for all who take them in the same format: a ring of payloads, with
 * one thread that puts samples in, and one that takes them out for any number of clients,
 * each of which has its own place. Neither waits for the other.
 *
 * The taking thread keeps the newest half of the ring for clients that are behind, so that
 * there is always room for the other one while it is away.
 */
#ifndef GATEWAY_WS_FEED_H
#define GATEWAY_WS_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/ws/frame.h"
#include "gateway/sample/sample.h"

enum {
	WS_FRAME_SAMPLES = 128, /* in a frame */
	/* A frame is not longer, unless one sample is. */
	WS_FRAME_BYTES = 64 << 10,
};

struct ws_feed;

/*
 * `backlog`: bytes that are kept for clients that are behind, at least. 0, or a negative
 * errno with the reason in `why`: -ENOENT, there is no such format; -EINVAL, the format
 * cannot hold `signals` (NULL allowed). Slow: tries the format out.
 */
int ws_feed_new(struct ws_feed **out, const char *format, struct signal_list *signals,
		size_t backlog, char *why, size_t why_size);
void ws_feed_free(struct ws_feed *f); /* NULL allowed */

const char *ws_feed_name(const struct ws_feed *f);
/* Of its messages. */
enum ws_opcode ws_feed_opcode(const struct ws_feed *f);

struct ws_feed_put {
	unsigned refused; /* the format cannot print them */
	unsigned lost;    /* no room: the thread that takes was away for long */
};

/* The thread that puts. */
struct ws_feed_put ws_feed_put(struct ws_feed *f, struct sample *const smps[],
			       unsigned count);

/* ---- the thread that takes ---- */

struct ws_place {
	uint64_t at, samples; /* samples that were put before it */
};

/* What is put from now on. */
void ws_place_init(struct ws_feed *f, struct ws_place *p);

/* Gives up what is older than the backlog. To be called before a round of ws_feed_take();
 * what these returned is not valid any more. */
void ws_feed_trim(struct ws_feed *f);

struct ws_piece {
	char *data;
	size_t len;
};

struct ws_batch {
	unsigned pieces;  /* 0: there is nothing new */
	size_t len;       /* of all together */
	unsigned samples;
	uint64_t lost;    /* samples that this client did not get before them */
	struct ws_place from; /* where it begins, to be taken once more */
};

/* The pieces of the next message for the client at `p`, which is moved behind it. There are
 * WS_HEAD_MAX bytes in front of the first one that the caller may write to. */
struct ws_batch ws_feed_take(struct ws_feed *f, struct ws_place *p,
			     struct ws_piece pieces[WS_FRAME_SAMPLES]);

/* Samples that were put until now and that the client at `p` has not taken. */
uint64_t ws_feed_left(struct ws_feed *f, const struct ws_place *p);

/* Bytes that waited for a client at `p` at the last ws_feed_trim(). */
size_t ws_feed_behind(const struct ws_feed *f, const struct ws_place *p);

#endif
