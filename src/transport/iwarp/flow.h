/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a middlebox (middlebox.h): it reads FPDUs from one socket, decides about them
 * (impair.h) and sends them to the other socket when their time has come. Progress thread.
 */
#ifndef TRANSPORT_IWARP_FLOW_H
#define TRANSPORT_IWARP_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/carrier/impair.h"
#include "wire/iwarp/receiver.h"

struct iwarp_piece;

struct iwarp_flow {
	int from, to;
	uint32_t qpn;          /* for the log, as these */
	const char *text;
	bool crc;
	struct impair_lane lane;
	struct iwarp_receiver frames;
	uint8_t *buffer;       /* of `frames` */
	size_t partial;        /* bytes in front that pass as they are; or */
	bool midway;           /* all up to the end of an FPDU do */
	bool opaque;           /* these are no FPDUs any more */
	uint8_t *frame;        /* what has come of one */
	size_t frame_bytes;
	struct iwarp_piece *first, *last;
	size_t held_bytes;
	uint64_t paused_ns;    /* it stalls until then; 0: it does not */
	bool drops;            /* what comes behind an end */
	bool ended;            /* nothing comes any more */
	bool done;             /* the other side has the end, or is gone */
	bool gone;             /* the other side is */
	bool blocked;          /* the other side takes nothing */
	bool failed;           /* there was no memory */
};

enum iwarp_step {
	IWARP_STEP_NONE, /* nothing is there, or may move */
	IWARP_STEP_DONE,
	IWARP_STEP_LOST, /* the connection is, or has to be */
};

/* `f` has its sockets and what the log needs. `frames`: where the stream is; its buffer, if it has
 * one, is copied. False: no memory, and iwarp_flow_close() follows. */
bool iwarp_flow_open(struct iwarp_flow *f, const struct iwarp_receiver *frames);
void iwarp_flow_close(struct iwarp_flow *f);
/* These faults from now on; with none what is held leaves at once. */
void iwarp_flow_set(struct iwarp_flow *f, const struct impair_params *p, uint64_t seed);

static inline bool iwarp_flow_is_parted(const struct iwarp_flow *f)
{
	return f->lane.params[0].partition;
}

/* Would it read now? */
bool iwarp_flow_reads(const struct iwarp_flow *f);
/* Reads some. `last`: nothing comes behind what is there. */
enum iwarp_step iwarp_flow_read(struct iwarp_flow *f, bool last, uint64_t now_ns);
/* Sends what is due. */
enum iwarp_step iwarp_flow_send(struct iwarp_flow *f, uint64_t now_ns);
/* Drops all, now and later. */
void iwarp_flow_drop(struct iwarp_flow *f);
/* When it has something to do; UINT64_MAX: not before a socket is ready. */
uint64_t iwarp_flow_next_ns(const struct iwarp_flow *f);

#endif
