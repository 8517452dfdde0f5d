/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that wait, the oldest first, in a ring of bytes of a fixed size: those that a
 * connection has not taken yet, and those that its peer has not confirmed yet. It has no lock
 * and reads no clock.
 */
#ifndef GATEWAY_OUTSIDE_OUTBOX_H
#define GATEWAY_OUTSIDE_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outbox_message {
	const char *data;
	size_t len;
	unsigned samples;
	/* Of what has been sent: the number by which its peer confirms it. */
	uint64_t tag;
};

struct outbox {
	char *ring;
	size_t size;
	/* Positions count bytes for ever. */
	uint64_t head, tail;
	uint64_t sent;      /* messages behind it are to be sent once more (outbox_repeat()) */
	unsigned messages;  /* that are not confirmed */
	uint64_t samples;   /* of them */
	uint64_t looks;     /* at messages by outbox_confirm(), until the owner sets it to 0 */
};

/* `size`: bytes, with about 40 for each message. 0 or -ENOMEM. */
int outbox_init(struct outbox *o, size_t size);
void outbox_destroy(struct outbox *o);

/* Whether a message of `len` bytes would fit into an empty one. */
bool outbox_could_hold(const struct outbox *o, size_t len);
bool outbox_has_room(const struct outbox *o, size_t len);
/* Copies a message. False: there is no room. */
bool outbox_put(struct outbox *o, const struct outbox_message *m);

/* The oldest message; its data stay where they are until outbox_drop(). False: none. */
bool outbox_first(struct outbox *o, struct outbox_message *m);
/* Removes the oldest message, which exists. */
void outbox_drop(struct outbox *o);

/*
 * The message `tag` is confirmed; with `all_before` the older ones, too. Returns the samples
 * of the messages that were not confirmed before.
 */
uint64_t outbox_confirm(struct outbox *o, uint64_t tag, bool all_before);

/* All messages are to be sent once more. */
void outbox_repeat(struct outbox *o);
/* The oldest message that is to be sent once more. False: none. */
bool outbox_next(struct outbox *o, struct outbox_message *m);
/* That message was sent, with this tag. */
void outbox_repeated(struct outbox *o, uint64_t tag);
/* That message will not be sent again: it counts as confirmed. */
void outbox_give_up(struct outbox *o);

#endif
