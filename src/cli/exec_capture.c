/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar exec --capture`: the adapter of the program writes its packets to a file. The
 * environment tells it, and all programs that it starts, where.
 */
#include "cli/exec_capture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/host/settings.h"
#include "util/container_of.h"
#include "util/log.h"

static const struct {
	const char *key, *env;
} limits[] = {
	{ "size", "BUSBAR_CAPTURE_SIZE" },
	{ "files", "BUSBAR_CAPTURE_FILES" },
	{ "snap", "BUSBAR_CAPTURE_SNAP" },
};

/* Does the setting's own entry take the value? */
static bool is_valid(const char *env, const char *value)
{
	uint64_t number;

	for (size_t i = 0; i < hca_setting_count; i++)
		if (!strcmp(hca_setting_table[i].env, env))
			return !setting_parse(&hca_setting_table[i], value, &number);
	return false;
}

static int set_limit(char *text)
{
	char *value = strchr(text, '=');

	if (value)
		*value++ = '\0';
	for (size_t i = 0; value && i < ARRAY_SIZE(limits); i++) {
		if (strcmp(text, limits[i].key))
			continue;
		if (is_valid(limits[i].env, value))
			return setenv(limits[i].env, value, 1) ? -errno : 0;
		log_error("--capture: '%s' is no value for %s, see 'busbar devices --settings'",
			  value, text);
		return -EINVAL;
	}
	log_error("--capture: '%s' is none of size=BYTES, files=NUMBER and snap=BYTES", text);
	return -EINVAL;
}

/* Programs may change their folder. A % in the path of this one is none of the file's. */
static int set_file(const char *file)
{
	char dir[PATH_MAX], path[3 * PATH_MAX];
	size_t at = 0;

	if (*file == '/')
		return setenv("BUSBAR_CAPTURE", file, 1) ? -errno : 0;
	if (!getcwd(dir, sizeof(dir)))
		return -errno;
	for (const char *from = dir; *from; from++) {
		path[at++] = *from;
		if (*from == '%')
			path[at++] = '%';
	}
	if (snprintf(path + at, sizeof(path) - at, "/%s", file) >= (int)(sizeof(path) - at))
		return -ENAMETOOLONG;
	return setenv("BUSBAR_CAPTURE", path, 1) ? -errno : 0;
}

int exec_capture_set(const char *option)
{
	char *text = strdup(option), *next = text, *file;
	int err;

	if (!text)
		return -ENOMEM;
	file = strsep(&next, ",");
	err = *file ? set_file(file) : -EINVAL;
	if (err)
		log_error("--capture '%s': a file or a pipe is needed: %s", option,
			  strerror(-err));
	while (!err && next)
		err = set_limit(strsep(&next, ","));
	free(text);
	return err;
}
