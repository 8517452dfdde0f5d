/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples to a COMTRADE record; the writing half of the format. */
#ifndef GATEWAY_COMTRADE_WRITE_H
#define GATEWAY_COMTRADE_WRITE_H

#include "gateway/comtrade/comtrade.h"
#include "gateway/plugin/format.h"

/* One bound for all channels, or one for each. */
struct comtrade_bounds {
	bool given, each;
	unsigned count;
	double *values; /* owned */
};

struct comtrade_source;

struct comtrade_writer {
	/* Settings. */
	enum comtrade_layout layout;
	unsigned revision;
	int data;               /* enum comtrade_data, -1: by the layout */
	const char *station, *device, *quality;
	double line_hz;
	bool secondary;
	int64_t unit_ns;        /* 0: by the data type */
	struct comtrade_bounds low, high;

	/* State. */
	bool begun, head_printed;
	struct comtrade_recorder recorder;
	struct comtrade_source *sources; /* of the channels, in their order */
	union signal_data *row;
	unsigned values;        /* that samples had when it began */
	size_t head_size;       /* of a single file */
	uint64_t bytes;         /* of data printed */
	uint64_t clipped;
	bool warned_clipped, warned_length, warned_time, warned_early;
};

const char *comtrade_writer_problem(const struct comtrade_writer *w);
void comtrade_writer_reset(struct comtrade_writer *w);

/* As format_type.print and comtrade_format_head(). */
int comtrade_writer_print(struct comtrade_writer *w, const struct format *f,
			  char *buf, size_t size, size_t *used,
			  struct sample *const smps[], unsigned cnt);
size_t comtrade_writer_head(struct comtrade_writer *w, const struct format *f,
			    const struct signal_list *signals, char *buf,
			    size_t size);

#endif
