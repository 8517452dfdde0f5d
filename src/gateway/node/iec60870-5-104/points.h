/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which information object each signal is: the table that the entries of `signals` make, and the
 * values of objects. No sockets, no threads.
 */
#ifndef GATEWAY_NODE_IEC60870_5_104_POINTS_H
#define GATEWAY_NODE_IEC60870_5_104_POINTS_H

#include "gateway/config/config.h"
#include "gateway/sample/sample.h"
#include "wire/grid/iec104.h"

#define POINT_NO_SIGNAL UINT32_MAX

struct point {
	const struct iec104_type_info *info;
	uint32_t address;
	unsigned value;   /* the signal's place in samples */
	unsigned quality; /* likewise of its quality; POINT_NO_SIGNAL: none */
	bool select;      /* commands are selected before they are executed */
	unsigned group;   /* of interrogation: 1 to 16, of counters to 4; 0: none */
};

/* Points that are sent in one ASDU: order[first] and those behind it. */
struct point_chunk {
	const struct iec104_type_info *info;
	unsigned first, count;
	bool sequence;    /* their addresses count up */
};

struct points {
	struct point *list;
	unsigned count;
	unsigned *by_address;       /* indexes, in the order of their addresses */
	unsigned *order;            /* indexes, those of one type together */
	struct point_chunk *chunks;
	unsigned chunk_count;
};

#define POINT_GROUPS 16
#define POINT_COUNTER_GROUPS 4

#define POINT_KEYS 7
extern const struct config_key point_keys[POINT_KEYS];

/* The signals of `group`. `commands`: each is one, else none is. `sequence`: an entry with the
 * address of the one before it has the next address. 0, or a negative errno after config_fail(). */
int points_parse(struct points *p, struct config *c, const json_t *group, bool commands,
		 bool sequence);
void points_free(struct points *p);
/* The index of the point with that address and kind; -1: there is none. */
int points_find(const struct points *p, uint32_t address, enum iec104_kind kind);

/* values.c */
/*
 * Puts a value into an object. What the type cannot hold becomes the nearest value that it can,
 * with a bit of the quality: IEC104_OVERFLOW, or IEC104_INVALID where it has no such bit or the value
 * is no number. False: the quality is not good (a command is not given then).
 */
bool point_to_object(const struct point *p, enum signal_type type, union signal_data value,
		     struct iec104_object *o);
union signal_data point_from_object(enum iec104_kind kind, const struct iec104_object *o,
				    enum signal_type type);
/* A value of a signal that is a quality. */
uint8_t point_quality(enum signal_type type, union signal_data value);
union signal_data point_number(enum signal_type type, double value);
/* Writes the ASDU of a chunk. `objects`: of all points. `timed`: with the time tag if the points have
 * one, else without. Its length. */
size_t point_chunk_encode(const struct points *p, const struct point_chunk *chunk,
			  const struct iec104_object *objects, bool timed,
			  struct iec104_asdu head, uint8_t to[IEC104_ASDU_MAX]);

/* Is it in that group of counters, or of other values? Group 0 has all of them. */
static inline bool point_is_in(const struct point *p, bool counters, unsigned group)
{
	return (p->info->kind == IEC104_COUNTER) == counters && (!group || p->group == group);
}

/*
 * The same for the points of a group, without time tags, in several ASDUs: *next, 0 at first, is
 * where the next one begins. 0: there is none.
 */
size_t point_group_encode(const struct points *p, bool counters, unsigned group, unsigned *next,
			  const struct iec104_object *objects, struct iec104_asdu head,
			  uint8_t to[IEC104_ASDU_MAX]);

#endif
