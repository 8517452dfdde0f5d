/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading of recordings; see load.h. */
#include "bench/delivery/load.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/part/reader.h"
#include "gateway/sample/signals.h"
#include "util/log.h"

#define VALUES_MAX 65536
#define READ_BYTES (1 << 20)

/* The configuration text of a format, so that all its spellings are accepted; NULL: no memory. */
static char *text_of(const struct delivery_file *file)
{
	json_t *name = json_string(file->format), *types = json_string(file->types ?: "1f");
	char *quoted = json_dumps(name, JSON_ENCODE_ANY);
	char *list = json_dumps(types, JSON_ENCODE_ANY), *text = NULL;

	if (quoted && list &&
	    asprintf(&text, "{ \"format\": %s, \"signals\": %s }",
		     file->format[0] == '{' ? file->format : quoted, list) < 0)
		text = NULL;
	json_decref(name);
	json_decref(types);
	free(quoted);
	free(list);
	return text;
}

int delivery_open(const struct delivery_file *file, struct delivery_reading *r)
{
	char *text = text_of(file);
	struct signal_list *signals = NULL;
	json_t *all;
	int ret = -ENOMEM;

	*r = (struct delivery_reading){ 0 };
	if (text)
		ret = config_load_text("command line", text, strlen(text), &r->config);
	free(text);
	if (ret)
		return ret;
	all = config_root(r->config);
	if (file->types)
		ret = signal_list_parse(&signals, r->config, all, "signals");
	if (!ret)
		ret = format_new(&r->format, r->config, json_object_get(all, "format"), NULL,
				 signals);
	signal_list_put(signals);
	if (!ret && !r->format->type->scan) {
		log_error("format '%s' cannot be read", r->format->type->name);
		format_destroy(r->format);
		ret = -EINVAL;
	}
	if (ret)
		config_destroy(r->config);
	return ret;
}

int delivery_read(struct delivery_reading *r, const char *path,
		  int (*take)(void *data, struct sample *s), void *data)
{
	struct sample *smp = calloc(1, sizeof(*smp) + VALUES_MAX * sizeof(smp->data[0]));
	struct reader reader;
	int ret;

	if (!smp)
		return -ENOMEM;
	smp->capacity = VALUES_MAX;
	ret = reader_open(&reader, path, r->format, READ_BYTES);
	if (!ret) {
		while ((ret = reader_next(&reader, &smp, 1, true)) > 0) {
			ret = take(data, smp);
			if (ret)
				break;
		}
		r->malformed = reader.malformed;
		reader_close(&reader);
	}
	free(smp);
	return ret;
}

void delivery_close(struct delivery_reading *r)
{
	format_destroy(r->format);
	config_destroy(r->config);
}

/* One word that differs when a bit of the values or their number does, but for chance. */
static uint64_t digest(const struct sample *s)
{
	uint64_t h = s->length + UINT64_C(0x9e3779b97f4a7c15);

	for (unsigned i = 0; i < s->length; i++) {
		h = (h ^ s->data[i].bits) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	return h;
}

static int add_digest(void *samples, struct sample *s)
{
	s->data[0].bits = digest(s);
	s->length = 1;
	return delivery_samples_add(samples, s);
}

static int add_values(void *samples, struct sample *s)
{
	return delivery_samples_add(samples, s);
}

int delivery_load(const struct delivery_file *file, struct delivery_samples *out)
{
	struct delivery_reading r;
	int ret = delivery_open(file, &r);

	if (ret)
		return ret;
	ret = delivery_read(&r, file->path, file->digest ? add_digest : add_values, out);
	if (!ret && r.malformed) {
		log_error("%s: %ju malformed lines", file->path, (uintmax_t)r.malformed);
		ret = -EBADMSG;
	} else if (ret == -ENOMEM) {
		log_error("no memory for the samples of '%s'", file->path);
	}
	if (!file->digest)
		out->signals = signal_list_get(r.format->signals);
	delivery_close(&r);
	return ret;
}
