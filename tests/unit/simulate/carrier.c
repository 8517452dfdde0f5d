/* SPDX-License-Identifier: BSD-2-Clause */
/* See carrier.h. */
#include "carrier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"
#include "world.h"

const char *carrier_formats[64];
unsigned carrier_format_count;

int carrier_open(struct carrier *k, struct config *c, json_t *cfg,
		 struct signal_list *written, struct signal_list *read)
{
	int ret = format_new(&k->writer, c, cfg, "villas.binary", written);

	if (!ret)
		ret = format_new(&k->reader, c, cfg, "villas.binary", read);
	if (!ret) {
		k->scratch = calloc(1, sizeof(*k->scratch) +
					CARRIER_VALUES * sizeof(union signal_data));
		ret = k->scratch ? 0 : -ENOMEM;
	}
	if (ret) {
		carrier_close(k);
		return ret;
	}
	k->scratch->capacity = CARRIER_VALUES;
	k->writer->message = k->reader->message = true;
	return 0;
}

void carrier_close(struct carrier *k)
{
	format_destroy(k->writer);
	format_destroy(k->reader);
	free(k->scratch);
	k->writer = k->reader = NULL;
	k->scratch = NULL;
}

int carrier_write(struct carrier *k, struct sample *s)
{
	size_t used = 0;
	int n = k->writer->type->print(k->writer, k->bytes, sizeof(k->bytes),
				       &used, &s, 1);

	return n == 1 ? (int)used : n < 0 ? n : -ENOSPC;
}

int carrier_read(struct carrier *k, const char *bytes, size_t len,
		 struct sample *to)
{
	size_t used = 0;

	to->flags = 0;
	to->length = 0;
	return k->reader->type->scan(k->reader, bytes, len, &used, &to, 1) == 1 ?
		       0 : -EBADMSG;
}

void carrier_fill(struct sample *s, unsigned number)
{
	s->length = 2;
	s->data[0].f = number;
	s->data[1].f = -(double)number;
	s->flags |= SAMPLE_HAS_DATA;
}

bool carrier_is_sound(const struct sample *s)
{
	if (s->length % 2)
		return false;
	for (unsigned i = 0; i < s->length; i += 2)
		if (s->data[i].f < 0 || s->data[i].f > (1 << 24) ||
		    s->data[i].f != -s->data[i + 1].f)
			return false;
	return s->length > 0;
}

static bool carries(const char *name)
{
	struct carrier *k = calloc(1, sizeof(*k));
	struct signal_list *l = signal_list_new(4, SIGNAL_FLOAT);
	json_t *cfg = json_string(name);
	bool good = !carrier_open(k, NULL, cfg, l, l);

	for (unsigned turn = 1; good && turn <= 3; turn++) {
		struct sample *s = k->scratch;
		int n;

		s->sequence = turn;
		s->signals = l;
		s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			   SAMPLE_HAS_DATA;
		s->origin = (struct timespec){ .tv_sec = 1700000000 + turn };
		carrier_fill(s, turn * 1000003);
		s->length = 4;
		s->data[2].f = 16777215;
		s->data[3].f = -16777215;
		n = carrier_write(k, s);
		good = n > 0 && !carrier_read(k, k->bytes, (size_t)n, s) &&
		       s->length == 4 && s->data[0].f == turn * 1000003 &&
		       s->data[3].f == -16777215;
	}
	carrier_close(k);
	signal_list_put(l);
	json_decref(cfg);
	free(k);
	return good;
}

void carrier_find_formats(void)
{
	for (const struct plugin *p = format_plugins; p->name; p++)
		if (p->type && carries(p->name) && carrier_format_count < 64)
			carrier_formats[carrier_format_count++] = p->name;
}
