/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The format json by the library jansson alone: the library makes a tree of each sample.
 * For comparison with the format json, which avoids such trees where it can. It is not
 * registered, so no configuration can use it.
 */
#include "bench/formats/formats.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/format.h"

static json_t *tree_of(const struct sample *s)
{
	json_t *data = json_array();

	for (unsigned i = 0; i < s->length; i++)
		json_array_append_new(data, json_real(s->data[i].f));
	return json_pack("{s{s[II]s[II]}sIso}", "ts", "origin",
			 (json_int_t)s->origin.tv_sec, (json_int_t)s->origin.tv_nsec,
			 "received", (json_int_t)s->received.tv_sec,
			 (json_int_t)s->received.tv_nsec, "sequence",
			 (json_int_t)s->sequence, "data", data);
}

static int print(struct format *f, char *buf, size_t size, size_t *used,
		 struct sample *const smps[], unsigned cnt)
{
	unsigned i;

	*used = 0;
	for (i = 0; i < cnt; i++) {
		json_t *tree = tree_of(smps[i]);
		size_t need = json_dumpb(tree, buf + *used, size - *used, 0);

		json_decref(tree);
		if (!need || need + 1 > size - *used)
			break;
		*used += need;
		buf[(*used)++] = '\n';
	}
	return (int)i;
}

static int take(const char *at, size_t len, struct sample *s)
{
	json_int_t origin[2], received[2], sequence;
	json_t *tree = json_loadb(at, len, 0, NULL), *data, *v;
	size_t i;
	int ret = json_unpack(tree, "{s{s[II]s[II]}sIso}", "ts", "origin",
			      &origin[0], &origin[1], "received", &received[0],
			      &received[1], "sequence", &sequence, "data", &data);

	if (!ret) {
		s->origin = (struct timespec){ origin[0], origin[1] };
		s->received = (struct timespec){ received[0], received[1] };
		s->sequence = (uint64_t)sequence;
		s->length = 0;
		json_array_foreach(data, i, v)
			if (i < s->capacity)
				s->data[s->length++].f = json_number_value(v);
	}
	json_decref(tree);
	return ret ? -EBADMSG : 0;
}

static int scan(struct format *f, const char *buf, size_t len, size_t *used,
		struct sample *smps[], unsigned cnt)
{
	unsigned i;

	*used = 0;
	for (i = 0; i < cnt; i++) {
		const char *end = memchr(buf + *used, '\n', len - *used);

		if (!end || take(buf + *used, (size_t)(end - buf) - *used, smps[i]))
			break;
		*used = (size_t)(end - buf) + 1;
	}
	return (int)i;
}

const struct format_type bench_format_jansson = {
	.name = "jansson",
	.description = "json by the library jansson alone",
	.lines = true,
	.carries.types = FORMAT_TYPE(SIGNAL_FLOAT),
	.print = print,
	.scan = scan,
};
