/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of InfiniBand that all transports share: the order of packet sequence numbers
 * (PSN), and the times of retransmission. IBTA volume 1, 9.7.
 */
#ifndef ENGINE_RC_RULES_H
#define ENGINE_RC_RULES_H

#include <stdbool.h>
#include <stdint.h>

#define RC_PSN_MASK 0xffffffu
/* Of a message. Unacknowledged PSNs then span less than half of all PSNs. */
#define RC_PACKETS_MAX (1 << 22)
#define RC_RNR_FOR_EVER 7 /* rnr_retry */

static inline uint32_t rc_psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & RC_PSN_MASK;
}

/* `a` minus `b`, from -2^23 to 2^23 - 1; negative if `a` is before `b` (9.7.1). */
static inline int32_t rc_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* Number of packets of a message; an empty message has one. */
static inline uint32_t rc_packets(uint32_t length, uint32_t mtu)
{
	return length ? (uint32_t)(((uint64_t)length + mtu - 1) / mtu) : 1;
}

/* Wait after an RNR NAK with this timer code (5 bits), table 45. */
static inline uint64_t rc_rnr_ns(uint8_t code)
{
	static const uint16_t units[32] = { /* of 10 us; code 0: see below */
		0,    1,    2,	  3,	4,    6,    8,	  12,	16,   24,   32,
		48,   64,   96,	  128,	192,  256,  384,  512,	768,  1024, 1536,
		2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};
	uint32_t count = code & 31 ? units[code & 31] : 65536;

	return (uint64_t)count * 10000;
}

/* The local ACK timeout of a code (5 bits), 9.7.6.1.3; 0: no timeout. */
static inline uint64_t rc_timeout_ns(uint8_t code)
{
	return code & 31 ? UINT64_C(4096) << (code & 31) : 0;
}

#endif
