/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet boundary: every packet of a transport leaves through emit() and arrives
 * through deliver(). A carrier brings packets from place to place and knows nothing of
 * what is in them: no queue pair, key or work entry. Capture, faults and simulated
 * networks stand here and nowhere else; a filter is a carrier over a carrier.
 *
 * Nothing of hca is included here, so that carriers also work in a simulation without
 * an adapter.
 *
 * Who may call what
 *   emit     any number of threads at a time, with locks of queue pairs held. It does
 *            not block, and never calls deliver() or writable().
 *   poll     any thread, without locks of queue pairs. One call at a time drains; one
 *            that finds another draining returns 0 at once, and what would have been
 *            its work is not lost: the other one does it, or wakes somebody again.
 *   next_ns  any thread, with locks of queue pairs held.
 *   close    once, when no other call is in progress or follows.
 *   deliver, writable (the owner's functions): only from within poll, on its thread, with
 *            no lock of the carrier held. They may call emit, of this carrier too; not
 *            poll or close.
 *
 * Who owns what
 *   A unit, its iovec and its bytes belong to who calls emit or deliver, and are read
 *   only until that call returns: a carrier copies or sends before emit returns, and
 *   the owner copies what it needs before deliver returns.
 *
 * Loss, copies and wrong order are what every owner has to live with. A carrier that
 * says that it took a unit promises nothing about its arrival.
 */
#ifndef TRANSPORT_CARRIER_CARRIER_H
#define TRANSPORT_CARRIER_CARRIER_H

#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

struct carrier;

/* Bytes that only carriers of one kind understand: a sockaddr_in or sockaddr_in6 for
 * UDP, a number for the simulation. Bytes behind the address are 0, so that equal
 * addresses are equal bytes. */
#define CARRIER_ADDR_BYTES 28

struct carrier_addr {
	_Alignas(uint32_t) uint8_t bytes[CARRIER_ADDR_BYTES];
};

static inline int carrier_addr_equal(const struct carrier_addr *a,
				     const struct carrier_addr *b)
{
	return !memcmp(a->bytes, b->bytes, CARRIER_ADDR_BYTES);
}

/* Addresses of carriers that number their ends: queue and sim. */
static inline struct carrier_addr carrier_addr_of(uint32_t number)
{
	struct carrier_addr a = { { 0 } };

	memcpy(a.bytes, &number, sizeof(number));
	return a;
}

static inline uint32_t carrier_addr_number(const struct carrier_addr *a)
{
	uint32_t number;

	memcpy(&number, a->bytes, sizeof(number));
	return number;
}

/* Which fields of a unit mean something: on emission those that the sender wants to be
 * so, on delivery those that the carrier saw. */
enum carrier_known {
	CARRIER_TOS = 1 << 0,
	CARRIER_TTL = 1 << 1,
	CARRIER_IP_ID = 1 << 2,     /* delivery only */
	CARRIER_INTERFACE = 1 << 3,
	CARRIER_FROM = 1 << 4,      /* emission: `from` is to be the source */
	CARRIER_WHEN = 1 << 5,
	/* Emission only: it may leave in fragments, from the port that the carrier has for
	 * these (udp.h), where it is longer than the network takes. */
	CARRIER_FRAGMENTS = 1 << 6,
	/* Emission only: it gets lost behind all filters that show it (fault.h). */
	CARRIER_LOST = 1 << 7,
};

#define CARRIER_IOV_MAX 256

enum carrier_direction {
	CARRIER_OUT, /* emitted */
	CARRIER_IN,  /* delivered */
};
#define CARRIER_BOTH ((1u << CARRIER_OUT) | (1u << CARRIER_IN))

/* A packet, or a train: packets of `segment` bytes one behind the other, the last one
 * perhaps shorter, all with the same addresses. */
struct carrier_unit {
	const struct iovec *iov; /* what follows the headers of UDP and IP */
	unsigned count;          /* of `iov`, 1 to CARRIER_IOV_MAX */
	uint32_t segment;        /* 0: one packet */
	struct carrier_addr to, from;
	uint64_t when_ns;        /* delivery: when it came, by the carrier's clock;
				  * emission: not used */
	uint16_t known;          /* enum carrier_known */
	uint16_t ip_id;          /* IPv4 identification; segment k of a train has + k */
	uint8_t tos, ttl;
	uint32_t interface;      /* index, as of if_nametoindex() */
	uint32_t flow;           /* emission: the number that its owner has for the sender of
				  * these packets; 0: none. For filters (fault.h) */
};

/* All are mandatory. A time of 0 is "now", UINT64_MAX "never". */
struct carrier_ops {
	/* Units leave in their order. How many were taken; when not even the first one
	 * was, a negative errno:
	 *   -EAGAIN        no room; poll will call writable() when there is some
	 *   -EMSGSIZE      longer than this carrier can ever take, or than the network takes
	 *                  without CARRIER_FRAGMENTS
	 *   -EHOSTUNREACH  nothing leads to the address
	 *   -EINVAL        the unit is not one (no bytes, count above CARRIER_IOV_MAX)
	 * Behind a number below `n`: call again with the rest, and learn why. */
	int (*emit)(struct carrier *c, const struct carrier_unit *units, unsigned n);
	/* Delivers what has come, `budget` (at least 1) units at most. How much of the
	 * budget it used, which may be more than it delivered; all of it: there may be
	 * more, and nothing else will wake the owner. */
	unsigned (*poll)(struct carrier *c, unsigned budget);
	/* When poll has work that no arrival announces (what a filter holds back, a
	 * pacing time), by the clock that the carrier was opened with. May be early. An
	 * emit or a poll may make it earlier: ask again behind them. */
	uint64_t (*next_ns)(struct carrier *c);
	/* Frees the carrier and those below it. What it held is lost. */
	void (*close)(struct carrier *c);
};

/* What the owner offers. */
struct carrier_upper {
	void (*deliver)(void *arg, const struct carrier_unit *unit);
	/* Once behind an emit that took less than it was given: there is room again. It
	 * may also come without need. NULL: the owner tries again by itself. */
	void (*writable)(void *arg);
	void *arg;
};

struct carrier {
	const struct carrier_ops *ops;
	struct carrier *below; /* of a filter, which owns it; else NULL */
	struct carrier_upper upper;
};

/* Before the first poll, or while nobody polls. A filter does it for the carrier below itself. */
static inline void carrier_set_upper(struct carrier *c, const struct carrier_upper *upper)
{
	c->upper = *upper;
}

static inline int carrier_emit(struct carrier *c, const struct carrier_unit *units,
			       unsigned n)
{
	return c->ops->emit(c, units, n);
}

static inline unsigned carrier_poll(struct carrier *c, unsigned budget)
{
	return c->ops->poll(c, budget);
}

static inline uint64_t carrier_next_ns(struct carrier *c)
{
	return c->ops->next_ns(c);
}

/* NULL is allowed. */
static inline void carrier_close(struct carrier *c)
{
	if (c)
		c->ops->close(c);
}

/* ---- helpers for those who write carriers ---- */

static inline void carrier_deliver(struct carrier *c, const struct carrier_unit *unit)
{
	c->upper.deliver(c->upper.arg, unit);
}

static inline void carrier_writable(struct carrier *c)
{
	if (c->upper.writable)
		c->upper.writable(c->upper.arg);
}

/* Bytes of all of its packets; 0 for what is no unit. */
size_t carrier_unit_bytes(const struct carrier_unit *unit);

/* Of a unit of `bytes`: how many packets, and how long packet `k` of them is. */
unsigned carrier_unit_packets(const struct carrier_unit *unit, size_t bytes);
size_t carrier_packet_bytes(const struct carrier_unit *unit, size_t bytes, unsigned k);

/* Copies `bytes` from offset `at` of the unit; it has them. */
void carrier_unit_gather(const struct carrier_unit *unit, size_t at, size_t bytes,
			 void *to);

#endif
