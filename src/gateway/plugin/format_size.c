/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many bytes a sample may take in a format. Nobody keeps a second description of
 * a format's sizes beside its print(): the format is asked to print the sample that
 * is the longest there can be, and the one that is the shortest.
 */
#include <assert.h>
#include <errno.h>
#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/config.h"
#include "gateway/plugin/format.h"

#define SIZE_FIRST ((size_t)4096)
#define SIZE_LAST ((size_t)1 << 30)

/* Of the longest ones in text; in other formats all are alike. */
static union signal_data longest(enum signal_type type)
{
	union signal_data v = { .bits = 0 };

	switch (type) {
	case SIGNAL_FLOAT:
		v.f = -DBL_MAX;
		break;
	case SIGNAL_INTEGER:
		v.i = INT64_MIN;
		break;
	case SIGNAL_BOOLEAN:
		break; /* "false" is longer than "true" */
	case SIGNAL_COMPLEX:
		v.z.re = v.z.im = -FLT_MAX;
		break;
	}
	return v;
}

static void fill(struct sample *s, struct signal_list *l, bool worst)
{
	const struct timespec end = { .tv_sec = INT64_C(253402300799),
				      .tv_nsec = 999999999 };

	memset(s, 0, sizeof(*s));
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
		   SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
	s->signals = l;
	s->length = s->capacity = l->count;
	if (worst) {
		s->sequence = UINT64_MAX;
		s->received = end;
		s->origin = (struct timespec){ .tv_nsec = 1 };
	}
	for (unsigned i = 0; i < l->count; i++)
		s->data[i] = worst ? longest(l->signals[i].type) :
				     (union signal_data){ .bits = 0 };
}

/* Makes *buf twice as large, what was in it is lost. 0 or -ENOMEM. */
static int enlarge(char **buf, size_t *size)
{
	free(*buf);
	*size = *size ? 2 * *size : SIZE_FIRST;
	*buf = *size <= SIZE_LAST ? malloc(*size) : NULL;
	return *buf ? 0 : -ENOMEM;
}

/*
 * *used: the bytes that print() makes of it; *room: the bytes that it asks for, which
 * may be more, up to a 64th too much. 0 or a negative errno.
 */
static int measure(struct format *f, struct sample *s, size_t *used, size_t *room)
{
	size_t low = 0, high = 0, other, size;
	char *buf = NULL;
	int ret;

	do {
		low = high;
		ret = enlarge(&buf, &high);
		if (!ret)
			ret = f->type->print(f, buf, high, used, &s, 1);
	} while (!ret);
	size = high;
	while (ret > 0 && high - low > 1 + high / 64) {
		size_t middle = low + (high - low) / 2;

		assert(middle <= size);
		if (f->type->print(f, buf, middle, &other, &s, 1) > 0)
			high = middle;
		else
			low = middle;
	}
	free(buf);
	*room = high;
	return ret < 0 ? ret : 0;
}

int format_sizes(struct format *f, struct signal_list *signals,
		 struct format_sizes *out)
{
	struct sample *s = malloc(sizeof(*s) +
				  signals->count * sizeof(s->data[0]));
	size_t used, room;
	int ret;

	if (!s)
		return -ENOMEM;
	fill(s, signals, true);
	ret = measure(f, s, &used, &out->room_max);
	if (!ret) {
		fill(s, signals, false);
		ret = measure(f, s, &out->bytes_min, &room);
	}
	free(s);
	return ret;
}

int format_check_sizes(struct format *f, struct config *c, json_t *cfg,
		       struct signal_list *signals, struct format_sizes *out)
{
	int ret = format_sizes(f, signals, out);

	if (!ret)
		return 0;
	config_fail(c, cfg, NULL,
		    "the format '%s' cannot write samples of the %u values that the paths bring: %s",
		    f->type->name, signals->count,
		    *format_error(f) ? format_error(f) : strerror(-ret));
	return -EINVAL;
}
