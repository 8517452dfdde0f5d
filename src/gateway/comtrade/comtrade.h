/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COMTRADE records (IEEE C37.111-1991, -1999 and -2013, the last also being
 * IEC 60255-24): the configuration file, the rows of the data file in its four
 * types, and the single file that holds both. Bytes in memory only: no files, no
 * nodes, no threads, no log.
 *
 * It reads what real devices write (blanks, missing fields, revisions that
 * never were, dates the wrong way round) and writes what the standard says.
 */
#ifndef GATEWAY_COMTRADE_COMTRADE_H
#define GATEWAY_COMTRADE_COMTRADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/sample/sample.h"

/* As many as a list of signals may have. */
#define COMTRADE_CHANNELS_MAX 65536
#define COMTRADE_RATES_MAX 65536

enum comtrade_data {
	COMTRADE_ASCII,
	COMTRADE_BINARY,   /* 16-bit integers */
	COMTRADE_BINARY32,
	COMTRADE_FLOAT32,
};

/* Which side of its transformers the values of a record are taken to be. */
enum comtrade_side {
	COMTRADE_AS_RECORDED,
	COMTRADE_PRIMARY,
	COMTRADE_SECONDARY,
};

/* What is wrong, and in which line (from 1; 0: not of a line). */
struct comtrade_error {
	unsigned line;
	char text[160];
};

/* Texts are UTF-8, never NULL, without surrounding blanks. */
struct comtrade_analog {
	char *name, *phase, *component, *unit;
	double a, b;            /* value = a * stored + b */
	double skew_us;
	double min, max;        /* of stored values */
	double primary, secondary;
	char side;              /* 'P' or 'S'; 0 when not told */
};

struct comtrade_digital {
	char *name, *phase, *component;
	bool normal;            /* the usual state */
};

/* Samples up to number `end` (from 1) come at `hz`. */
struct comtrade_rate {
	double hz;
	uint64_t end;
};

/* As written in the record, which has its own time zone. */
struct comtrade_time {
	bool known;
	bool nanoseconds;       /* written with more than six digits */
	int64_t sec;            /* since 1970, as if it were UTC */
	uint32_t nsec;
};

struct comtrade_cfg {
	char *station, *device;
	unsigned revision;      /* as written; 1991 when it is not, or is no year */
	char *revision_unread;  /* what is written, if that is no year; else NULL */
	unsigned analog_count, digital_count;
	struct comtrade_analog *analog;
	struct comtrade_digital *digital;
	double line_hz;
	/* The number written may be 0: then one entry of rate 0, and times come
	 * from time stamps alone. */
	unsigned rate_count;
	struct comtrade_rate *rates;
	struct comtrade_time start, trigger;
	enum comtrade_data data;
	double time_multiplier;
	bool has_zone;
	bool zone_unread;       /* it has one, in a form that nobody knows */
	int32_t zone_s;         /* the record's clock minus UTC */
	char quality[4], leap[4];
};

/*
 * Reads a configuration. `revision` 0 goes by the file, else it says how dates
 * are written. Text that is no UTF-8 is taken as ISO 8859-1. 0, -EBADMSG with
 * *err filled, or -ENOMEM.
 */
int comtrade_cfg_parse(struct comtrade_cfg **out, const char *text, size_t len,
		       unsigned revision, struct comtrade_error *err);
void comtrade_cfg_free(struct comtrade_cfg *c); /* NULL allowed */

/* Prints as revision 1999 or 2013 demands; counts bytes as snprintf does. */
size_t comtrade_cfg_print(const struct comtrade_cfg *c, char *buf, size_t size);

/* Changes a and b of channels so that values are of that side. */
void comtrade_cfg_convert(struct comtrade_cfg *c, enum comtrade_side side);

/* "ascii", "BINARY" ...; -1 when it is none. */
int comtrade_data_parse(const char *at, const char *end);
const char *comtrade_data_name(enum comtrade_data d);

static inline unsigned comtrade_cfg_values(const struct comtrade_cfg *c)
{
	return c->analog_count + c->digital_count;
}

/* Bytes of a row; 0 for ASCII. */
size_t comtrade_row_size(const struct comtrade_cfg *c);

struct comtrade_row {
	bool has_number, has_stamp;
	bool wraps;             /* the stamp has 32 bits */
	uint64_t number;
	int64_t stamp;          /* in units of the record, before its multiplier */
	double fraction;        /* of a unit; some ASCII files have it */
};

/*
 * Takes one row from buf[0..len) into `values` (analog channels as `f`, then
 * digital ones as `i`; room for comtrade_cfg_values()). What is missing is NaN.
 * Returns 1, 0 when there is no whole row, -ENODATA behind the end mark of an
 * ASCII file, or -EBADMSG with *err filled. *used bytes are done with.
 */
int comtrade_row_decode(const struct comtrade_cfg *c, const char *buf,
			size_t len, size_t *used, struct comtrade_row *row,
			union signal_data *values, struct comtrade_error *err);

/*
 * Writes one row; returns its bytes, 0 when they do not fit. Stored values are
 * (value - b) / a, cut to the range of the data type; `digits` 1..16 shortens
 * reals in ASCII, 0 writes all that is needed to read back the same value.
 * *clipped counts values that did not fit the range.
 */
size_t comtrade_row_encode(const struct comtrade_cfg *c, char *buf, size_t size,
			   const struct comtrade_row *row,
			   const union signal_data *values, int digits,
			   uint64_t *clipped);

/* a, b, min and max of a channel, so that [low, high] fills the range of the
 * stored integers; for reals a = 1 and b = 0. */
void comtrade_analog_scale(struct comtrade_analog *a,
			   const struct comtrade_cfg *c, double low, double high);
/* Whether values are stored as integers, which need a range. */
bool comtrade_is_integer(const struct comtrade_cfg *c);

enum comtrade_clock_mode {
	COMTRADE_CLOCK_AUTO,   /* stamps, unless missing or in contradiction to the rate */
	COMTRADE_CLOCK_STAMPS,
	COMTRADE_CLOCK_RATE,
};

/* Times of rows, in their order. */
struct comtrade_clock {
	const struct comtrade_cfg *cfg;
	enum comtrade_clock_mode mode;
	bool by_rate;           /* auto found that the stamps contradict the rate: */
	struct {
		uint64_t row;   /* from 1 */
		double hz;
		int64_t stamp_ns, rate_ns; /* from the start, by either */
	} odd;
	bool stamped;           /* the last row */
	int64_t last_nominal_ns;
	unsigned odd_steps;     /* in a row, longer or shorter than the rate says */
	uint64_t row;           /* next */
	unsigned segment;
	uint64_t segment_row;   /* row from which on its rate counts */
	long double segment_ns; /* time of the row before that, by rates */
	int64_t stamp;          /* the last, without wraps */
	uint32_t raw;
	int64_t last_ns, offset_ns;
};

void comtrade_clock_init(struct comtrade_clock *k, const struct comtrade_cfg *c,
			 enum comtrade_clock_mode mode);
/*
 * Nanoseconds from the start time of the record to this row; exact for stamps
 * whose multiplier is whole. False when neither stamps nor rates tell.
 */
bool comtrade_clock_next(struct comtrade_clock *k,
			 const struct comtrade_row *row, int64_t *ns);

/* Nanoseconds since 1970 UTC of a time in the record. */
int64_t comtrade_time_ns(const struct comtrade_cfg *c,
			 const struct comtrade_time *t);
struct comtrade_time comtrade_time_from_ns(int64_t ns, bool nanoseconds);
/* One line; false when it is no time. `month_first`: as in 1991. */
bool comtrade_time_parse(const char *at, const char *end, bool month_first,
			 struct comtrade_time *t);
/* Parses "-5h30", "+9", "5.5", "0", "UTC+1" or "Z": the offset of local time from UTC. */
bool comtrade_zone_parse(const char *at, const char *end, int32_t *seconds);
/* At most 40 bytes, terminated. */
void comtrade_time_print(char *to, const struct comtrade_time *t);

/* Where the parts of a single file stand. */
struct comtrade_cff {
	size_t cfg_start, cfg_end, dat_start;
	unsigned cfg_line;      /* lines before the configuration */
	bool has_size;
	uint64_t dat_size;      /* bytes, when told (binary types) */
	int data;               /* enum comtrade_data when told, else -1 */
};

/*
 * Looks for the parts in the beginning of a single file. 1 when the data begin
 * within buf[0..len), 0 when more is needed, -EBADMSG when it is none.
 */
int comtrade_cff_find(const char *buf, size_t len, struct comtrade_cff *parts,
		      struct comtrade_error *err);

/* What only the end of a recording knows: rows, and whether they have a rate. */
struct comtrade_recorder {
	struct comtrade_cfg *cfg; /* owned; `start` is that of the first row */
	int64_t unit_ns;          /* of time stamps: 1 or 1000 */
	uint64_t rows;
	uint64_t early;           /* rows older than what their stamp can tell */
	int64_t start_ns, last_ns;
	double period_min, period_max; /* ns that all rows agree with */
};

/*
 * `cfg` with channels and data type is taken over; times, rates and multiplier
 * are filled. `unit_ns`: 1 only from 2013 on.
 */
void comtrade_recorder_init(struct comtrade_recorder *r,
			    struct comtrade_cfg *cfg, int64_t start_ns,
			    int64_t unit_ns);
void comtrade_recorder_destroy(struct comtrade_recorder *r);
/* Number and stamp of a next row; counts it. */
struct comtrade_row comtrade_recorder_next(struct comtrade_recorder *r,
					   int64_t origin_ns);
/* Brings count and rate of the configuration to what has come so far. */
void comtrade_recorder_settle(struct comtrade_recorder *r);

/* How the files of a record lie; of the format and of node `file`. */
enum comtrade_layout {
	COMTRADE_STREAM, /* a single file that nobody can go back in */
	COMTRADE_SINGLE, /* .cff, its head is rewritten */
	COMTRADE_PAIR,   /* .cfg and .dat: only data are scanned and printed */
};

#endif
