/* SPDX-License-Identifier: BSD-2-Clause */
/* See choice.h. */
#include "gateway/scl/choice.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTING(field) offsetof(struct scl_settings, field)
#define COMMON_KEYS \
	{ "file", CONFIG_STRING, SETTING(file), .required = true, \
	  .help = "An engineering file: SCL, such as station.scd" }, \
	{ "control", CONFIG_STRING, SETTING(control), .required = true, \
	  .help = "Logical device, logical node and name of the control block: LD0/LLN0.gcb1" }, \
	{ "ied", CONFIG_STRING, SETTING(ied), \
	  .help = "The device that has it; needed if several have one of this name" }

const struct config_key scl_file_keys[SCL_FILE_KEYS] = { COMMON_KEYS };

const struct config_key scl_read_keys[SCL_KEYS] = {
	COMMON_KEYS,
	{ "prefix", CONFIG_STRING, SETTING(prefix), "",
	  .help = "What stands in front of the names of signals that come from the file" },
};

const struct config_key scl_write_keys[SCL_KEYS] = {
	COMMON_KEYS,
	{ "signals", CONFIG_JSON, SETTING(signals), .form = CONFIG_TEXTS,
	  .help = "Names of the signals for the values, but for qualities, times and texts, in their order" },
};

struct scl_file {
	struct scl_file *next;
	char *path;
	struct scl *scl;
};

void scl_files_free(struct scl_files *f)
{
	while (f->first) {
		struct scl_file *next = f->first->next;

		scl_free(f->first->scl);
		free(f->first->path);
		free(f->first);
		f->first = next;
	}
}

static int load(struct scl_files *files, const char *path, struct scl **out,
		char why[SCL_WHY_MAX])
{
	struct scl_file *f = files->first;
	int ret;

	while (f && strcmp(f->path, path))
		f = f->next;
	if (f) {
		*out = f->scl;
		return 0;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->path = strdup(path);
	ret = f->path ? scl_load(path, &f->scl, why) : -ENOMEM;
	if (ret) {
		free(f->path);
		free(f);
		return ret;
	}
	f->next = files->first;
	files->first = f;
	*out = f->scl;
	return 0;
}

int scl_choose(struct scl_files *files, struct config *c, const json_t *at, const json_t *cfg,
	       enum scl_kind kind, const struct config_key *keys, size_t key_count,
	       struct scl_choice *out)
{
	struct scl_settings *s = &out->settings;
	char why[SCL_WHY_MAX] = "out of memory";
	int ret;

	if (!cfg || json_is_null(cfg))
		return 0;
	if (!json_is_object(cfg)) {
		config_fail(c, at, "scl",
			    "is a group such as { file = \"station.scd\"; control = \"LD0/LLN0.gcb1\"; }");
		return -EINVAL;
	}
	if (config_unpack(c, cfg, keys, key_count, s, NULL, 0))
		return -EINVAL;
	ret = load(files, s->file, &out->scl, why);
	if (!ret)
		ret = scl_find(out->scl, kind, s->ied, s->control, &out->control, why);
	if (!ret)
		ret = scl_control_read(out->scl, out->control, why);
	if (!ret)
		return 0;
	config_fail(c, at, "scl", "%s", why);
	return ret == -ENOMEM ? ret : -EINVAL;
}

void scl_say_overruled(struct config *c, const json_t *at, const char *key,
		       const struct scl_choice *choice, unsigned line, const char *fmt, ...)
{
	char value[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	config_warn(c, at, key, "overrules %s of %s:%u", value, scl_name(choice->scl), line);
}
