/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smpCnt, the number of a sample within a second (IEC 61850-9-2). A subscriber makes of it a
 * sequence number that goes on over the wraps, and finds what is lost, repeated or late; a
 * publisher numbers what it sends. Pure: the time is an argument.
 */
#ifndef GATEWAY_NODE_IEC61850_9_2_COUNTING_H
#define GATEWAY_NODE_IEC61850_9_2_COUNTING_H

#include <stdbool.h>
#include <stdint.h>

/* smpCnt has 16 bits. */
#define COUNTING_MAX 65536u

/* What a subscriber knows of one stream; zeroed, but for `configured`, at its beginning. */
struct counting {
	uint32_t configured;  /* smpCnt begins at 0 again behind so many; 0: not configured */
	uint32_t stated;      /* the same, as the last message said; 0: it did not */
	uint32_t learned;     /* the same, as found at a wrap; 0: not yet */
	bool stated_wrong;    /* the publisher's count contradicts what it states */
	uint32_t doubt;       /* where it has wrapped before that; 0: it has not */
	bool began;
	uint16_t last;        /* smpCnt of the sample with the greatest sequence number */
	uint64_t sequence;    /* and that number */
	uint64_t seen;        /* bit i: the sample with number `sequence` - i has come */
	unsigned run;         /* samples without a gap before that one */
	uint64_t last_ns;     /* when it came */
	/* Where the rate is learned: when the count was 0 (0: samples are missing since then), how
	 * long the last wrap took, and the longest one. */
	uint64_t zero_ns, wrap_ns, wrap_ns_max;
};

enum counting_verdict {
	COUNTING_NEXT,
	COUNTING_LOST,       /* step.lost samples before it did not come */
	COUNTING_LATE,       /* overtaken by later ones */
	COUNTING_REPEATED,   /* it came before, or is too old to know */
	COUNTING_RESTARTED,  /* the publisher began its count again */
	COUNTING_IMPOSSIBLE, /* smpCnt is not below the configured rate */
};

struct counting_step {
	enum counting_verdict verdict;
	uint64_t sequence; /* of this sample; not with REPEATED and IMPOSSIBLE */
	uint64_t lost;
};

/*
 * Takes the next sample. `stated`: smpRate of a message that counts per second, else 0.
 * `now_ns`: when it was read, by a clock that does not jump. `elapsed_ns`: how much time has passed
 * at most since the sample with the greatest number; 0: that is not known. Whole seconds without a
 * sample count as lost only if they have passed.
 */
struct counting_step counting_take(struct counting *c, uint16_t count, uint32_t stated,
				   uint64_t now_ns, uint64_t elapsed_ns);

/* Behind how many samples smpCnt begins at 0 again; 0: not known yet. */
uint32_t counting_wrap(const struct counting *c);

/*
 * The time of a sample of a publisher whose smpCnt is 0 at the full second of UTC: the one with
 * that fraction of a second that is nearest to `received_ns`, both in nanoseconds since 1970.
 * False: it is not known how many samples a second has.
 */
bool counting_time(const struct counting *c, uint16_t count, int64_t received_ns,
		   int64_t *time_ns);

/*
 * The numbers that a publisher gives. `by_time`: 0 at the full second of the samples' times. These
 * may be late, and a little early, so a sample gets the number behind the one before, or by
 * its sequence number, as long as its time allows that.
 */
struct numbering {
	uint32_t wrap;    /* 1 to COUNTING_MAX */
	bool by_time;
	bool began;
	uint16_t next;    /* behind the last one */
	/* How late the times were since `window` samples, at least; in 16ths of a sample. */
	int64_t late_min;
	unsigned window;
};

/*
 * The number of the next sample. `nanoseconds` of its second; -1: it has no time. `step`: by how
 * much its sequence number is greater than the last one's; 0: it has none, or it is not greater.
 * *astray: its time does not allow the number that would follow.
 */
uint16_t numbering_take(struct numbering *n, int64_t nanoseconds, uint64_t step, bool *astray);

#endif
