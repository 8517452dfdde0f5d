/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's side of C37.118: the stations that the configuration describes, the frames that are
 * made of them and of samples, and the answers to commands. No socket, no clock and no thread.
 */
#ifndef GATEWAY_NODE_C37_SOURCE_H
#define GATEWAY_NODE_C37_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/config/config.h"
#include "gateway/sample/sample.h"
#include "wire/grid/c37_parts.h"

/* An answer has room in so many bytes. */
#define C37_ANSWER_MAX (2 * (size_t)C37_CONFIG_MAX)

/* A signal that the path writes. */
struct c37_input {
	const char *signal;      /* NULL: none */
	int index;               /* -1: no such signal */
	enum signal_type type;
};

struct c37_channel {
	const char *name;        /* as it stands in the configuration frame */
	struct c37_input input;
	union {
		struct c37_phasor_unit phasor;
		struct c37_analog_unit analog;
		bool normal;     /* of a digital */
	};
};

struct c37_pmu {
	struct c37_station station; /* without names and units */
	struct c37_input stat, frequency, rocof;
	struct c37_channel *phasors, *analogs, *digitals;
	unsigned digital_count;     /* bits */
};

struct c37_source {
	uint16_t idcode;
	uint32_t time_base;
	int16_t rate;
	double period_ns;
	uint8_t quality;
	size_t part_size;        /* bytes of a frame of CFG-3; 0: as many as a frame has */
	const char *header;
	struct c37_pmu *pmus;
	unsigned count;
};

/* c37_parse.c: from list `pmus` of group `out`. 0, or a negative errno after config_fail(). */
int c37_source_parse(struct c37_source *s, struct config *c, json_t *out, json_t *pmus,
		     const char *uuid);
void c37_source_destroy(struct c37_source *s);
/* Finds the signals of `l`. Without one of them: false, and its name in *missing. */
bool c37_source_bind(struct c37_source *s, const struct signal_list *l, const char **missing);

/* The frames are written to `to`, of `size` bytes; their length, 0: there is no room. A CFG-3 may be
 * several frames. `ns`: since 1970, below 2^32 s. */
size_t c37_source_config(const struct c37_source *s, enum c37_type type, uint8_t version,
			 int64_t ns, uint8_t *to, size_t size);
size_t c37_source_data(const struct c37_source *s, const struct sample *smp, int64_t ns,
		       uint8_t *to, size_t size);

struct c37_answer {
	size_t len;              /* of the answer in the buffer, one frame or more; 0: there is none */
	bool known;              /* it was a command to this stream that is obeyed */
	bool sends;              /* data are sent from now on; with `known` only */
};

/* Answers a frame of a client that gets data or not (`sends`). */
struct c37_answer c37_source_answer(const struct c37_source *s, const struct c37_frame *f,
				    bool sends, int64_t ns, uint8_t *to, size_t size);

/* Of the samples that come faster than data frames may go, those that go. */
struct c37_gate {
	bool began;
	int64_t last_ns;
	double credit_ns;
};

bool c37_gate_admits(struct c37_gate *g, double period_ns, int64_t ns);

#endif
