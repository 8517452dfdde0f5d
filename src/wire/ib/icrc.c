/* SPDX-License-Identifier: BSD-2-Clause */
/* Which bytes the ICRC covers, the portable code, and the choice of a faster one. */
#include "wire/ib/icrc.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "wire/crc_tables.h"
#include "wire/ib/icrc_private.h"
#define ICRC_TABLES
#include "wire/ib/icrc_constants.h"

/* ---- portable ---- */

uint32_t icrc_portable_run(uint32_t crc, const uint8_t *data, size_t bytes)
{
	return crc_by_tables(icrc_bytes, crc, data, bytes);
}

uint32_t icrc_portable_multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (int bit = 31; bit >= 0; bit--) {
		product ^= b & -(a >> bit & 1);
		b = b >> 1 ^ (ICRC_POLYNOMIAL & -(b & 1));
	}
	return product;
}

/* ---- the choice ---- */

static const struct icrc_code *icrc_portable(void)
{
	static const struct icrc_code code = { icrc_portable_run,
					       icrc_portable_multiply };

	return &code;
}

static const struct {
	const char *name;
	const struct icrc_code *(*get)(void);
} methods[ICRC_METHODS] = { /* each better than those before it */
	[ICRC_PORTABLE] = { "portable", icrc_portable },
	[ICRC_CLMUL] = { "clmul", icrc_clmul },
	[ICRC_CLMUL_256] = { "clmul-256", icrc_clmul_256 },
	[ICRC_CLMUL_512] = { "clmul-512", icrc_clmul_512 },
	[ICRC_ARM] = { "arm", icrc_arm },
};

bool icrc_method_there(enum icrc_method method)
{
	return methods[method].get() != NULL;
}

const char *icrc_method_name(enum icrc_method method)
{
	return methods[method].name;
}

enum icrc_method icrc_method_best(void)
{
	unsigned method = ICRC_METHODS - 1;

	while (!icrc_method_there(method))
		method--;
	return method;
}

uint32_t icrc_run(enum icrc_method method, uint32_t crc, const void *data, size_t bytes)
{
	return methods[method].get()->run(crc, data, bytes);
}

/* Every thread that is here for the first time finds the same. */
static const struct icrc_code *_Atomic chosen;

static const struct icrc_code *choose(void)
{
	const struct icrc_code *code = methods[icrc_method_best()].get();

	atomic_store_explicit(&chosen, code, memory_order_relaxed);
	return code;
}

static inline const struct icrc_code *best(void)
{
	const struct icrc_code *code = atomic_load_explicit(&chosen, memory_order_relaxed);

	return __builtin_expect(code != NULL, 1) ? code : choose();
}

/* ---- the headers ---- */

enum { IPV4_BYTES = 20, UDP_BYTES = 8, PROTOCOL_UDP = 17 };

static uint64_t get32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return be32toh(v);
}

static uint64_t get64(const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return be64toh(v);
}

/* The headers in words of eight bytes, in the order of the wire. Zeros stand before them
 * to make whole blocks of 16 bytes: in front of a register of zeros they change nothing.
 * The register as it is behind the ones for an LRH is added to the first four bytes.
 * Bytes that count as ones are written so. */

/* `without` bytes at the end of the BTH. */
static uint32_t run_ipv4(const struct icrc_ip *ip, const uint8_t *bth, size_t without)
{
	const uint64_t ports = (uint64_t)ip->src_port << 16 | ip->dst_port;
	const uint64_t words[6] = {
		0,
		htobe64((uint64_t)(0x45 << 8 | 0xff) << 48 |
			(uint64_t)(uint16_t)(IPV4_BYTES + ip->udp_length) << 32 |
			(uint64_t)ip->id << 16 | (ip->dont_fragment ? 0x4000 : 0)) ^
			htole64(ICRC_SEED),
		htobe64((uint64_t)(0xff << 8 | PROTOCOL_UDP) << 48 |
			UINT64_C(0xffff) << 32 | get32(ip->src)),
		htobe64(get32(ip->dst) << 32 | ports),
		htobe64((uint64_t)ip->udp_length << 48 | UINT64_C(0xffff) << 32 |
			get32(bth)),
		htobe64(get64(bth + 4) | UINT64_C(0xff) << 56),
	};

	return best()->run(0, (const uint8_t *)words, sizeof(words) - without);
}

static uint32_t run_ipv6(const struct icrc_ip *ip, const uint8_t *bth, size_t without)
{
	const uint64_t ports = (uint64_t)ip->src_port << 16 | ip->dst_port;
	const uint64_t words[8] = {
		htobe64(UINT64_C(0x6fffffff)) ^
			htole64((uint64_t)ICRC_SEED << 32),
		htobe64((uint64_t)ip->udp_length << 48 |
			(uint64_t)(PROTOCOL_UDP << 8 | 0xff) << 32 | get32(ip->src)),
		htobe64(get64(ip->src + 4)),
		htobe64(get32(ip->src + 12) << 32 | get32(ip->dst)),
		htobe64(get64(ip->dst + 4)),
		htobe64(get32(ip->dst + 12) << 32 | ports),
		htobe64((uint64_t)ip->udp_length << 48 | UINT64_C(0xffff) << 32 |
			get32(bth)),
		htobe64(get64(bth + 4) | UINT64_C(0xff) << 56),
	};

	return best()->run(0, (const uint8_t *)words, sizeof(words) - without);
}

static uint32_t run_headers(const struct icrc_ip *ip, const uint8_t *bth, size_t without)
{
	return ip->version == 4 ? run_ipv4(ip, bth, without) : run_ipv6(ip, bth, without);
}

void icrc_begin(struct icrc *c, const struct icrc_ip *ip,
		const uint8_t bth[IB_BTH_BYTES])
{
	c->crc = run_headers(ip, bth, 0);
}

void icrc_next(struct icrc *c, struct icrc_series *s, const uint8_t bth[IB_BTH_BYTES],
	       uint16_t udp_length, uint16_t id)
{
	struct icrc_headers *h = &s->headers[udp_length / 4 % ICRC_SERIES_LENGTHS];

	if (h->udp_length != udp_length || memcmp(h->bth, bth, sizeof(h->bth))) {
		s->ip.udp_length = h->udp_length = udp_length;
		s->ip.id = 0;
		memcpy(h->bth, bth, sizeof(h->bth));
		h->crc = run_headers(&s->ip, bth, IB_BTH_BYTES - sizeof(h->bth));
	}
	c->crc = h->crc;
	/* The register is linear; see icrc_matches_any_id(). */
	if (id && s->ip.version == 4)
		c->crc ^= best()->multiply((uint32_t)(id & 0xff) << 24 |
					   (uint32_t)(id >> 8) << 16, ICRC_ID);
}

void icrc_add(struct icrc *c, const void *data, size_t bytes)
{
	if (bytes)
		c->crc = best()->run(c->crc, data, bytes);
}

void icrc_end(const struct icrc *c, uint8_t to[IB_ICRC_BYTES])
{
	const uint32_t icrc = htole32(~c->crc);

	memcpy(to, &icrc, sizeof(icrc));
}

static uint32_t difference(const struct icrc *c, const uint8_t received[IB_ICRC_BYTES])
{
	uint32_t icrc;

	memcpy(&icrc, received, sizeof(icrc));
	return ~le32toh(icrc) ^ c->crc;
}

bool icrc_matches(const struct icrc *c, const uint8_t received[IB_ICRC_BYTES])
{
	return !difference(c, received);
}

/* The register is linear: an id i instead of 0 adds i * x^(32 + n) to it, where i is a
 * polynomial of degree below 16 and n the number of bits behind it. The power of x has an
 * inverse, so the sum is divided by it; an id is found if the quotient has no coefficient
 * of x^16 or above. */
bool icrc_matches_any_id(const struct icrc *c, uint16_t udp_length,
			 const uint8_t received[IB_ICRC_BYTES], uint16_t *id)
{
	uint32_t sum = difference(c, received);

	if (udp_length % 4 || udp_length < UDP_BYTES + IB_BTH_BYTES + IB_ICRC_BYTES ||
	    udp_length / 4 >= sizeof(icrc_inverse) / sizeof(icrc_inverse[0]))
		return false;
	if (sum)
		sum = best()->multiply(sum, icrc_inverse[udp_length / 4]);
	if (sum & 0xffff)
		return false;
	/* Bit 31 is x^0; as bytes in the order of the wire bit 0 comes first. */
	if (id)
		*id = (uint16_t)((sum >> 16 & 0xff) << 8 | sum >> 24);
	return true;
}
