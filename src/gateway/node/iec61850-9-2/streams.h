/* SPDX-License-Identifier: BSD-2-Clause */
/* Which streams of sampled values a capture file has, for commands. */
#ifndef GATEWAY_NODE_IEC61850_9_2_STREAMS_H
#define GATEWAY_NODE_IEC61850_9_2_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SV_STREAMS_MAX 64
#define SV_STREAM_ID_MAX 129

/* A stream of a capture. */
struct sv_stream {
	char id[SV_STREAM_ID_MAX + 1]; /* printable; other bytes are dots */
	uint16_t appid;
	uint8_t destination[6];
	unsigned asdus;         /* in its first message */
	size_t bytes;           /* of its data set; those of its first sample */
	uint32_t revision;
	uint8_t synch;
	uint16_t count_max;     /* the greatest smpCnt */
	bool simulated, mixed;  /* mixed: the lengths of its data sets differ */
	uint64_t samples;
	uint64_t first_ns, last_ns; /* when its messages were captured */
};

struct sv_streams {
	unsigned count;
	struct sv_stream streams[SV_STREAMS_MAX];
	uint64_t malformed, left_out; /* messages; left_out: of more streams than there is room for */
};

/* Reads all streams of a capture file. 0, or a negative errno, logged. */
int sv_streams_read(struct sv_streams *s, const char *file);

#endif
