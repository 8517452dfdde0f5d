/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading of recordings; see load.h. */
#include "bench/delivery/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/part/reader.h"
#include "gateway/sample/signals.h"
#include "util/log.h"

#define VALUES_MAX 65536
#define READ_BYTES (1 << 20)

/* Makes the format of a configuration text, so that all its spellings are accepted. */
static int make_format(const struct delivery_file *file, struct config **config,
		       struct format **format)
{
	bool object = file->format[0] == '{';
	struct signal_list *signals = NULL;
	char *text;
	int ret;

	if (asprintf(&text, "{ \"format\": %s%s%s, \"signals\": \"%s\" }",
		     object ? "" : "\"", file->format, object ? "" : "\"",
		     file->types ? file->types : "1f") < 0)
		return -ENOMEM;
	ret = config_load_text("command line", text, strlen(text), config);
	free(text);
	if (ret)
		return ret;
	if (file->types)
		ret = signal_list_parse(&signals, *config, config_root(*config),
					"signals");
	if (!ret)
		ret = format_new(format, *config,
				 json_object_get(config_root(*config), "format"),
				 NULL, signals);
	signal_list_put(signals);
	if (ret)
		config_destroy(*config);
	return ret;
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

static int add(const struct delivery_file *file, struct sample *s,
	       struct delivery_samples *out)
{
	if (file->digest) {
		s->data[0].bits = digest(s);
		s->length = 1;
	}
	return delivery_samples_add(out, s);
}

static int read_all(const struct delivery_file *file, struct reader *reader,
		    struct sample *smp, struct delivery_samples *out)
{
	int ret;

	while ((ret = reader_next(reader, &smp, 1, true)) > 0) {
		ret = add(file, smp, out);
		if (ret) {
			log_error("no memory for the samples of '%s'", file->path);
			return ret;
		}
	}
	if (!ret && reader->malformed) {
		log_error("%s: %ju malformed lines", file->path,
			  (uintmax_t)reader->malformed);
		ret = -EBADMSG;
	}
	return ret;
}

int delivery_load(const struct delivery_file *file, struct delivery_samples *out)
{
	size_t size = sizeof(struct sample) + VALUES_MAX * sizeof(union signal_data);
	struct sample *smp = calloc(1, size);
	struct config *config;
	struct format *format;
	struct reader reader;
	int ret;

	if (!smp)
		return -ENOMEM;
	smp->capacity = VALUES_MAX;
	ret = make_format(file, &config, &format);
	if (ret)
		goto err_sample;
	ret = reader_open(&reader, file->path, format, READ_BYTES);
	if (ret)
		goto err_format;
	ret = read_all(file, &reader, smp, out);
	if (!file->digest)
		out->signals = signal_list_get(format->signals);
	reader_close(&reader);
err_format:
	format_destroy(format);
	config_destroy(config);
err_sample:
	free(smp);
	return ret;
}
