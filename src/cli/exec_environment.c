/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar exec` adds to the environment of its program; see exec_environment.h. */
#include "cli/exec_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/host/settings.h"
#include "util/container_of.h"
#include "util/log.h"

int exec_set(const char *name, const char *format, ...)
{
	va_list args;
	char *value;
	int err;

	va_start(args, format);
	err = vasprintf(&value, format, args) < 0 ? -ENOMEM : 0;
	va_end(args);
	if (err)
		return err;
	err = setenv(name, value, 1) ? -errno : 0;
	free(value);
	return err;
}

/* ---- MPI and UCX ---- */

static const struct {
	const char *name, *value;
} settings[] = {
	/* UCX, which both MPIs use: no shared memory of its own. Not "rc,ud,self",
	 * so that TCP and real adapters stay usable. */
	{ "UCX_TLS", "^sm" },
	/* UCX: threads that share a worker sleep until it is theirs. They would spin
	 * otherwise, and it is polled with the lock held: where threads are more than
	 * processors each turn of the scheduler goes to one that waits for the lock. */
	{ "UCX_USE_MT_MUTEX", "y" },
	/* Open MPI: all components may be used; Debian's configuration file excludes
	 * UCX. */
	{ "OMPI_MCA_pml", "" },
	/* UCX is preferred if a device has one of these drivers. */
	{ "OMPI_MCA_opal_common_ucx_devices", "mlx*,busbar" },
};

int exec_others_set(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (setenv(settings[i].name, settings[i].value, 0))
			return -errno;
	return 0;
}

/* ---- --trace ---- */

/* Empties the file; the processes append to it. */
static int file_prepare(const char *file)
{
	char path[PATH_MAX];
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd >= 0)
		close(fd);
	if (fd < 0 || !realpath(file, path)) {
		log_error("exec: trace file '%s': %s", file, strerror(errno));
		return -errno;
	}
	return exec_set("BUSBAR_TRACE", "%s", path);
}

int exec_trace_set(const struct exec_trace *trace)
{
	int err = trace->file ? file_prepare(trace->file) : 0;

	if (!trace->file)
		unsetenv("BUSBAR_TRACE");
	return err ? err : exec_set("BUSBAR_TRACE_DATA", trace->data ? "1" : "0");
}

/* ---- --capture ---- */

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
			return exec_set(limits[i].env, "%s", value);
		log_error("--capture: '%s' is no value for %s, see 'busbar devices --settings'",
			  value, text);
		return -EINVAL;
	}
	log_error("--capture: '%s' is none of size=BYTES, files=NUMBER and snap=BYTES", text);
	return -EINVAL;
}

char *exec_capture_name(char *name, const char *path)
{
	for (; *path; path++) {
		*name++ = *path;
		if (*path == '%')
			*name++ = '%';
	}
	*name = '\0';
	return name;
}

/* Programs may change their folder. A % in the path of this one is none of the file's. */
static int set_file(const char *file)
{
	char dir[PATH_MAX], name[2 * PATH_MAX] = "";

	if (*file != '/' && !getcwd(dir, sizeof(dir)))
		return -errno;
	if (*file != '/')
		strcpy(exec_capture_name(name, dir), "/");
	return exec_set("BUSBAR_CAPTURE", "%s%s", name, file);
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
