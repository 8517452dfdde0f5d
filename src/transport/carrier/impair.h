/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a network does to packets, decided packet by packet from a seed: loss, copies,
 * wrong order, delay, corruption, a limit of the rate, a partition. And to streams, decided frame by
 * frame: delay, corruption and the rate likewise, stalls, and ends. Only decisions, no
 * packets: the filter `fault` and the network `sim` carry them out, and transport/iwarp those on
 * streams.
 */
#ifndef TRANSPORT_CARRIER_IMPAIR_H
#define TRANSPORT_CARRIER_IMPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/prng.h"

/* Kinds of packets that can be treated differently; who opens the carrier says by a
 * function of which class a packet is. */
#define IMPAIR_CLASSES 8
#define IMPAIR_ALL_CLASSES ((1u << IMPAIR_CLASSES) - 1)
#define IMPAIR_GAP_NS UINT64_C(50000)
#define IMPAIR_PAUSE_NS UINT64_C(100000000)

/* All zero: nothing happens. */
struct impair_params {
	double loss, duplicate, reorder, corrupt; /* probabilities for each packet */
	uint64_t delay_ns;
	uint64_t jitter_ns; /* 0 to this is added; packets do not overtake by it */
	uint64_t gap_ns;    /* a packet in wrong order comes up to this later, and others
			     * overtake it; 0: IMPAIR_GAP_NS */
	uint64_t rate_bps;  /* bits a second of all classes together; 0: no limit */
	bool partition;     /* nothing gets through */
	/* Of streams only: probabilities for each frame. */
	double cut;         /* the stream ends within it */
	double reset;       /* likewise, with a reset */
	double stall;       /* from it on nothing moves for `pause_ns` */
	uint64_t pause_ns;  /* 0: IMPAIR_PAUSE_NS */
	uint64_t after_bytes; /* the stream does not end before */
};

struct impair_counters {
	uint64_t packets;   /* that came by */
	uint64_t lost, duplicated, reordered, corrupted;
	uint64_t cut;       /* by a partition */
	uint64_t overflowed; /* more were held back than there was room for */
	uint64_t refused;   /* by the carrier below, when their time had come */
};

/* One direction of one link. Not thread safe. */
struct impair_lane {
	struct prng random;
	uint64_t free_ns;  /* the last packet has left the link */
	uint64_t last_ns;  /* and comes */
	uint64_t passed;   /* bytes of the stream */
	struct impair_params params[IMPAIR_CLASSES];
	struct impair_counters count[IMPAIR_CLASSES];
};

/* What becomes of a packet: copies that arrive. */
struct impair_fate {
	unsigned copies; /* 0 to 2 */
	struct {
		uint64_t due_ns;
		bool corrupt;
	} copy[2];
};

enum impair_end { IMPAIR_NO_END, IMPAIR_CUT, IMPAIR_RESET };

/* What becomes of a frame of a stream. */
struct impair_stream_fate {
	uint64_t due_ns;
	bool corrupt;
	enum impair_end end;
	size_t end_at;     /* so many bytes of the frame come before the end */
	uint64_t pause_ns; /* from it on the stream stalls for so long; 0: it does not */
};

void impair_lane_init(struct impair_lane *lane, uint64_t seed);
/* The random numbers begin anew; all else stays. */
void impair_lane_seed(struct impair_lane *lane, uint64_t seed);
/* Nothing is on the link any more that would hold up what comes. */
void impair_lane_forget(struct impair_lane *lane);
void impair_lane_set(struct impair_lane *lane, unsigned classes,
		     const struct impair_params *params);

static inline bool impair_is_none(const struct impair_params *p)
{
	return p->loss <= 0 && p->duplicate <= 0 && p->reorder <= 0 && p->corrupt <= 0 &&
	       !p->delay_ns && !p->jitter_ns && !p->rate_bps && !p->partition &&
	       p->cut <= 0 && p->reset <= 0 && p->stall <= 0;
}

/* What only packets, and only streams, can meet. */
static inline bool impair_has_packet_faults(const struct impair_params *p)
{
	return p->loss > 0 || p->duplicate > 0 || p->reorder > 0;
}

static inline bool impair_has_stream_faults(const struct impair_params *p)
{
	return p->cut > 0 || p->reset > 0 || p->stall > 0;
}

/* Decides and counts. The same seed and the same packets give the same fates, and
 * which packets are lost does not depend on the other parameters (but for corruption,
 * which draws more numbers). */
void impair_decide(struct impair_lane *lane, unsigned class, size_t bytes,
		   uint64_t now_ns, struct impair_fate *fate);

/* The same of the next frame of a stream, which has `bytes` (2 at least), by the parameters of
 * class 0. Counts nothing. The caller carries a partition out. */
void impair_decide_stream(struct impair_lane *lane, size_t bytes, uint64_t now_ns,
			  struct impair_stream_fate *fate);

/* Changes one byte. */
void impair_corrupt(struct impair_lane *lane, uint8_t *bytes, size_t n);

/*
 * Settings as text, keys separated by commas:
 *   loss, dup, reorder, corrupt  probability: 0.01 or 1%
 *   delay, jitter, gap           time: 100us (ns, us, ms, s), up to an hour
 *   rate                         1Gbit (bit, Kbit, Mbit, Gbit: 1000 each) a second
 *   partition                    0 or 1
 *   cut, reset, stall            probability; of streams
 *   pause                        time; of streams
 *   after                        bytes: 64k (k, m, g: 1024 each); of streams
 *   seed                         a whole number
 *   events                       a file with events of single packets, which who uses the
 *                                settings reads; its name has no comma
 * They are for what leaves; behind "in." for what arrives ("in.loss=0.01"), but
 * for seed and events. Blanks around keys and values do not count, and an empty text means no faults.
 */
#define IMPAIR_NAME_BYTES 256
struct impair_settings {
	struct impair_params out, in;
	uint64_t seed; /* 1 when not given */
	char events[IMPAIR_NAME_BYTES]; /* the name of the file; "": none */
};

/* 0, or -EINVAL: `error` names the key, what is wrong and what would be right, on one
 * line; `settings` is as it was. */
int impair_parse(const char *text, struct impair_settings *settings, char *error,
		 size_t error_size);

#endif
