/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC of RoCE v2 packets: IBTA volume 1, 7.8.1, and annex A17. It is the
 * CRC-32 of Ethernet over eight bytes of ones (in place of an LRH), IP header, UDP header,
 * BTH, extended headers, payload and pad; fields that change on the way count as ones:
 * of IPv4 type of service, time to live and checksum; of IPv6 traffic class, flow label
 * and hop limit; the checksum of UDP; and the byte of the BTH with FECN and BECN.
 *
 * Without state of their own, for any thread. The fastest code for the processor is chosen
 * at the first call.
 */
#ifndef WIRE_IB_ICRC_H
#define WIRE_IB_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ib/header.h"

/* What IP and UDP headers of a packet hold, in host order. No IP options or extension
 * headers: RoCE v2 has none. */
struct icrc_ip {
	uint8_t version;     /* 4 or 6 */
	uint8_t src[16], dst[16]; /* IPv4: the first four bytes */
	uint16_t src_port, dst_port;
	uint16_t udp_length; /* of the UDP header: its 8 bytes, BTH to ICRC */
	uint16_t id;         /* IPv4 identification */
	bool dont_fragment;  /* IPv4 */
};

struct icrc {
	uint32_t crc;
};

/* Packets between the same two addresses. What the headers of one have in common with those of
 * an earlier one is not run again: all but the IPv4 identification, the request for an
 * acknowledgement and the PSN, mostly. Zeros, except for `ip`, before the first packet. */
#define ICRC_SERIES_LENGTHS 4 /* packets of so many lengths have their place, a multiple of 4
			       * bytes apart */
#define ICRC_SERIES_BTH 8     /* bytes of the BTH in front of the last four */
struct icrc_series {
	struct icrc_ip ip;    /* its udp_length and id are overwritten */
	struct icrc_headers {
		uint8_t bth[ICRC_SERIES_BTH];
		uint32_t crc;         /* behind these, with the identification 0 */
		uint16_t udp_length;  /* 0: no packet yet */
	} headers[ICRC_SERIES_LENGTHS];
};

/* `bth` is that of the packet as it is sent. */
void icrc_begin(struct icrc *c, const struct icrc_ip *ip,
		const uint8_t bth[IB_BTH_BYTES]);
/* The same with the addresses of `s`, up to the first ICRC_SERIES_BTH bytes of the BTH: the
 * others are added with what follows them. */
void icrc_next(struct icrc *c, struct icrc_series *s, const uint8_t bth[IB_BTH_BYTES],
	       uint16_t udp_length, uint16_t id);
/* What follows the BTH, in pieces of any length: extended headers, payload, pad. */
void icrc_add(struct icrc *c, const void *data, size_t bytes);
/* Writes the ICRC in its place: the four bytes behind the pad. */
void icrc_end(const struct icrc *c, uint8_t to[IB_ICRC_BYTES]);

/* Are the bytes `received` the ICRC? */
bool icrc_matches(const struct icrc *c, const uint8_t received[IB_ICRC_BYTES]);

/* The same where the receiver does not know the IPv4 identification: c was begun with
 * id 0 and the udp_length given here. True if there is an id with which `received` is the
 * ICRC; there is one at most, and *id is set to it (NULL: not wanted). A random error is
 * found with a probability of 1 - 2^-16 instead of 1 - 2^-32. */
bool icrc_matches_any_id(const struct icrc *c, uint16_t udp_length,
			 const uint8_t received[IB_ICRC_BYTES], uint16_t *id);

/* For tests and measurements: the CRC register of Ethernet (no inversion before or
 * behind) after `bytes` more, by each of the methods that this processor has. */
enum icrc_method {
	ICRC_PORTABLE,   /* tables, eight bytes a step */
	ICRC_CLMUL,      /* x86: PCLMULQDQ, 16 bytes */
	ICRC_CLMUL_256,  /* x86: VPCLMULQDQ of 32 bytes */
	ICRC_CLMUL_512,  /* x86: VPCLMULQDQ of 64 bytes */
	ICRC_ARM,        /* AArch64: CRC32 instructions */
	ICRC_METHODS,
};
bool icrc_method_there(enum icrc_method method);
const char *icrc_method_name(enum icrc_method method);
enum icrc_method icrc_method_best(void);
uint32_t icrc_run(enum icrc_method method, uint32_t crc, const void *data, size_t bytes);

#endif
