/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets that the fabric's process makes itself: datagrams with MADs (IBA volume 1, 13.5.1) and
 * congestion notifications (annex A10; the CNP of annex A17). Without VCRC, as clients have them. Pure.
 */
#ifndef FABRIC_SERVE_DATAGRAM_H
#define FABRIC_SERVE_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ib/native.h"

struct agent_address;

/* Writes a datagram with the MAD of 256 bytes at `to`, which has IB_NATIVE_BYTES_MAX bytes; its length,
 * and in *n what its headers say. */
size_t serve_datagram_mad(const uint8_t *mad, const struct agent_address *a, struct ib_native *n,
			  uint8_t *to);
/* Between which ends the MAD of a packet travels; false: the packet carries none. */
bool serve_datagram_address(const struct ib_native *n, struct agent_address *a);

/* Writes a notification to the sender of the packet `of`; its length, and in *n what its headers say.
 * The queue pair that it names is the sender's if `of` is a datagram, otherwise 0: packets of
 * connections do not say it. 0: the packet cannot be answered, as it was for a group. */
size_t serve_datagram_notice(const struct ib_native *of, uint16_t pkey, struct ib_native *n,
			     uint8_t *to);
/* Where the payload of a packet with a BTH begins. */
static inline size_t serve_datagram_payload(const struct ib_native *n)
{
	return n->bth_at + (size_t)ib_opcodes[n->packet.opcode].bytes;
}

/* Sets the FECN bit of the BTH, which the ICRC does not cover. */
void serve_datagram_mark(uint8_t *packet, const struct ib_native *n);

#endif
