/* SPDX-License-Identifier: BSD-2-Clause */
/* Analyses a scene by way of the bytes of a capture file. */
#ifndef TESTS_ANALYZER_ANALYSE_H
#define TESTS_ANALYZER_ANALYSE_H

#include "analyzer/analyzer.h"
#include "analyzer/capture.h"
#include "scene.h"

#include <stdlib.h>
#include <string.h>

/* `piece`: bytes that come at a time; 0: all at once. The caller frees the result. */
static inline struct analyzer *analyse_bytes(const uint8_t *bytes, size_t size, size_t piece,
					     struct analyzer_capture *c)
{
	struct analyzer *a = analyzer_new(1);
	size_t used = 0, have = 0;

	if (!a)
		abort();
	analyzer_capture_begin(c);
	while (have < size && !c->corrupt) {
		have = piece && piece < size - have ? have + piece : size;
		used += analyzer_capture_feed(c, a, bytes + used, have - used);
	}
	analyzer_capture_end(c, have - used);
	analyzer_finish(a);
	return a;
}

static inline struct analyzer *analyse(const struct scene *s, const struct scene_file *f,
				       struct analyzer_capture *c)
{
	size_t size;
	uint8_t *bytes = scene_write(s, f, &size);
	struct analyzer *a = analyse_bytes(bytes, size, 0, c);

	free(bytes);
	return a;
}

#endif
