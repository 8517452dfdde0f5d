/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples to bytes and back in memory, through a format of the gateway. */
#ifndef TEST_SIMULATE_CARRIER_H
#define TEST_SIMULATE_CARRIER_H

#include "gateway/plugin/format.h"

#define CARRIER_VALUES 64
#define CARRIER_BYTES 16384

struct carrier {
	struct format *writer, *reader;
	struct sample *scratch;          /* CARRIER_VALUES */
	char bytes[CARRIER_BYTES];
};

/* `cfg` as for format_new(). 0 or a negative errno. */
int carrier_open(struct carrier *k, struct config *c, json_t *cfg,
		 struct signal_list *written, struct signal_list *read);
void carrier_close(struct carrier *k);
/* One message into k->bytes; its length, or a negative errno. */
int carrier_write(struct carrier *k, struct sample *s);
/* One message; *to gets its values. 0 or -EBADMSG. */
int carrier_read(struct carrier *k, const char *bytes, size_t len,
		 struct sample *to);

/* Formats that carry samples of two and more values this way. */
extern const char *carrier_formats[64];
extern unsigned carrier_format_count;
void carrier_find_formats(void);

/*
 * A sample of the simulation has pairs of values: a number that identifies the sample (0:
 * none yet) and its negative. Numbers are whole and below 2^24, so that every format
 * can represent them.
 */
void carrier_fill(struct sample *s, unsigned number);
bool carrier_is_sound(const struct sample *s);

#endif
