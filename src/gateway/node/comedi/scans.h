/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pure part of the node-type comedi: codes of converters and values of samples, and the times
 * of scans. A scan is one code of each channel. No call of the library, no clock inside.
 */
#ifndef GATEWAY_NODE_COMEDI_SCANS_H
#define GATEWAY_NODE_COMEDI_SCANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/sample/sample.h"

/* The codes 0 to `maxdata` mean `min` to `max`, evenly. Of a digital channel all are 0 and 1. */
struct daq_scale {
	double min, max;
	uint32_t maxdata;
	bool digital;
};

/* The value of a code, of a type that is not complex: an integer is the code itself. *at_limit is
 * set when the code is the lowest or highest one of an analog channel. */
void daq_from_code(const struct daq_scale *s, enum signal_type type, uint32_t code,
		   union signal_data *value, bool *at_limit);

/* The code of a value; one beyond the range becomes the nearest code, and *at_limit is set. NULL,
 * or what is wrong with the value, as words that follow it. */
const char *daq_to_code(const struct daq_scale *s, enum signal_type type,
			const union signal_data *value, uint32_t *code, bool *at_limit);

/* Bytes of a code in a buffer of the kernel, which has them in the host's order. */
static inline size_t daq_code_size(bool wide)
{
	return wide ? sizeof(uint32_t) : sizeof(uint16_t);
}

uint32_t daq_code_get(const char *at, bool wide);
void daq_code_put(char *at, bool wide, uint32_t code);

/*
 * The times of scans by the board's clock, which differs a little from the host's. A scan cannot
 * come before its time, so times that are ahead of the host's clock are corrected at once; and the
 * least delay of many reads is taken off. The times of scans rise whatever is corrected, unless the
 * host's clock was set back.
 */
struct daq_clock {
	uint64_t begin_ns;    /* of the scan before the first one */
	uint64_t scans;       /* that have come */
	double period_ns;
	uint64_t least_ns;    /* delay of the newest scan, at least, in the last `looks` reads */
	unsigned looks;
	uint64_t told_ns;     /* the time that was told last */
};

/* Also for a command that follows another one. */
void daq_clock_start(struct daq_clock *c, double period_ns, uint64_t now_ns);
/* `count` scans were read at `now_ns`. */
void daq_clock_advance(struct daq_clock *c, uint64_t count, uint64_t now_ns);
/* The time of the scan that came `back` scans before the newest one. Scans are asked for in their
 * order. */
uint64_t daq_clock_time(struct daq_clock *c, uint64_t back);
/* How many scans should have come since the newest one: at least 1. */
uint64_t daq_clock_missing(const struct daq_clock *c, uint64_t now_ns);

#endif
