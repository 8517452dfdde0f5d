/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The time stamps of the data frames of one stream: which frames are missing, which came twice or
 * too late, and leap seconds. No clock.
 */
#ifndef GATEWAY_NODE_C37_TRACK_H
#define GATEWAY_NODE_C37_TRACK_H

#include <stdbool.h>
#include <stdint.h>

/* A longer time between two frames is another time and no loss. */
#define C37_GAP_MAX_NS INT64_C(3600000000000)
/* A frame that is behind the last one by more than this is not late. */
#define C37_LATE_MAX_NS INT64_C(2000000000)

enum c37_order {
	C37_ORDER_NEXT,
	C37_ORDER_REPEATED, /* has the time of the one before it */
	C37_ORDER_LATE,     /* was overtaken */
	C37_ORDER_STEP,     /* the clock of the device was set */
	C37_ORDER_LEAP,     /* the next one, behind a leap second */
};

struct c37_track {
	bool ordered;       /* frames cannot overtake each other (TCP) */
	double period_ns;   /* 0: not known */
	bool began;
	bool leapt;         /* the leap second that the quality tells of was taken */
	int64_t last_ns;
	double late_ns;     /* of the last one, behind the grid of periods */
	uint8_t quality;    /* of the last one */
	uint64_t sequence;  /* of the last one: counts periods */
};

struct c37_place {
	enum c37_order order;
	uint64_t sequence;
	uint64_t missed;    /* frames between the last one and this one */
};

/* `rate` as in struct c37_config. What was before stays, so that a gap is seen. */
void c37_track_set_rate(struct c37_track *t, int16_t rate);

/* The next frame: its time since 1970 and the high byte of its FRACSEC. */
struct c37_place c37_track_take(struct c37_track *t, int64_t time_ns, uint8_t quality);

#endif
