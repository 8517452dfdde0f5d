/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bad network for one stream: a middlebox between the stream and its TCP connection, on the
 * progress thread. The stream gets one end of a pair of local sockets in place of its TCP socket;
 * the middlebox has the other end and the TCP socket, delays FPDUs, changes bytes and ends the
 * stream, as impair.h decides. A stream without faults has no middlebox, and where it sends and
 * receives there is no test for one.
 *
 * What differs from TCP: an entry of the send queue is complete when the local socket has taken it,
 * and what the middlebox holds is lost if the process ends. When the process closes the device, what
 * is held leaves at once.
 */
#ifndef TRANSPORT_IWARP_MIDDLEBOX_H
#define TRANSPORT_IWARP_MIDDLEBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/carrier/impair.h"
#include "wire/iwarp/receiver.h"

struct iwarp_middlebox;

struct iwarp_middlebox_params {
	int fd;          /* the TCP socket, the middlebox's from now on; non-blocking */
	uint32_t qpn;    /* for the log */
	/* Where both directions are. Of what arrives: the receiver, which is copied. Of what leaves:
	 * `out_partial` bytes up to the next FPDU, which begins at `out_position`. */
	const struct iwarp_receiver *in;
	size_t out_partial;
	uint64_t out_position;
	bool out_markers, crc;
};

/* Returns the stream's socket; or a negative errno, and nothing has changed. Any thread. */
int iwarp_middlebox_open(const struct iwarp_middlebox_params *p,
			 const struct impair_settings *faults,
			 struct iwarp_middlebox **middlebox);
/* Did a reset end the stream, or the loss of the TCP connection? Any thread, before
 * iwarp_middlebox_leave(). */
bool iwarp_middlebox_lost(const struct iwarp_middlebox *m);
/* The stream closes its socket behind this, with a reset or not. Any thread; the last use. */
void iwarp_middlebox_leave(struct iwarp_middlebox *m, bool reset);

/* All middleboxes have these faults from now on. Returns how many of the streams have no CRC.
 * Progress thread. */
unsigned iwarp_middleboxes_set(const struct impair_settings *faults);
/* All streams have left: sends what is held, as far as TCP takes it, and ends the middleboxes. Not
 * on the progress thread, which does it. */
void iwarp_middleboxes_stop(void);
/* In a forked child. */
void iwarp_middleboxes_forked(void);

#endif
