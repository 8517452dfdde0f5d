/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of settings and what their look functions have in common; see setting.h. */
#define LOG_ROOM "tune"
#include "bench/tune/setting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "util/log.h"

static const struct tune_setting *const tables[] = {
	tune_settings_clock, tune_settings_place, tune_settings_memory,
	tune_settings_kernel, tune_settings_host,
};

const struct tune_setting *tune_setting_next(const struct tune_setting *s)
{
	if (!s)
		return tables[0];
	if (s[1].name)
		return s + 1;
	for (size_t i = 0; i + 1 < ARRAY_SIZE(tables); i++) {
		const struct tune_setting *last = tables[i];

		while (last[1].name)
			last++;
		if (last == s)
			return tables[i + 1];
	}
	return NULL;
}

const struct tune_setting *tune_setting_find(const char *name)
{
	const struct tune_setting *s = NULL;

	while ((s = tune_setting_next(s)))
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

/* "hypervisor" among the processor's flags: x86 processors below one say so. */
static bool is_virtual(const struct tune_tree *t)
{
	char flags[TUNE_FLAGS_BYTES];

	return tune_tree_exists(t, "/sys/hypervisor/type") ||
	       (!tune_tree_value(t, "/proc/cpuinfo", "flags", flags, sizeof(flags)) &&
		tune_has_word(flags, "hypervisor", TUNE_BLANKS));
}

int tune_host_read(struct tune_host *host, const char *root)
{
	char list[4096];
	int err;

	*host = (struct tune_host){ .tree = { .root = root } };
	err = tune_tree_line(&host->tree, "/sys/devices/system/cpu/online", list, sizeof(list)) ?:
	      tune_cpus_parse_list(list, &host->online);
	if (!err && !tune_cpus_count(&host->online))
		err = -ENODATA;
	if (err)
		return log_fail(err, "%s/sys/devices/system/cpu/online: %s, expected a list of processors%s",
				root, strerror(-err),
				root[0] ? ": --root needs a folder with a copy of /sys and /proc" : "");
	host->virtual = is_virtual(&host->tree);
	return 0;
}

void tune_look(const struct tune_host *host, const struct tune_setting *setting,
	       struct tune_profile *profile, struct tune_look *l)
{
	int err;

	*l = (struct tune_look){ .host = host, .tree = &host->tree, .setting = setting,
				 .profile = profile };
	err = setting->path ? tune_tree_line(l->tree, setting->path, l->line, sizeof(l->line)) : 0;
	if (!err)
		setting->look(l);
	else if (setting->absent)
		look_absent(l, "%s", setting->absent);
	else
		look_absent(l, "%s: %s", setting->path, strerror(-err));
}

#define LOOK_SET(member)                                             \
	do {                                                         \
		va_list args_;                                       \
		va_start(args_, format);                             \
		vsnprintf(l->member, sizeof(l->member), format, args_); \
		va_end(args_);                                       \
	} while (0)

void look_today(struct tune_look *l, const char *format, ...)
{
	LOOK_SET(today);
}

void look_better(struct tune_look *l, const char *format, ...)
{
	LOOK_SET(better);
	if (l->verdict != TUNE_LIMIT)
		l->verdict = TUNE_BETTER;
}

void look_limit(struct tune_look *l, const char *format, ...)
{
	LOOK_SET(limit);
	l->verdict = TUNE_LIMIT;
}

void look_absent(struct tune_look *l, const char *format, ...)
{
	LOOK_SET(today);
	l->verdict = TUNE_ABSENT;
}

void look_want(struct tune_look *l, const char *section, const char *key, const char *value)
{
	if (l->profile)
		tune_profile_add(l->profile, section, key, value);
}

void look_want_file(struct tune_look *l, const char *path, const char *value)
{
	if (l->profile)
		tune_profile_add_file(l->profile, path, value);
}

void look_failed(struct tune_look *l, int err)
{
	if (l->profile && err)
		l->profile->err = err;
}

bool look_alone(struct tune_look *l, const char *what)
{
	if (tune_cpus_count(&l->host->online) > 1)
		return false;
	look_limit(l, "with one processor there is nothing to %s", what);
	return true;
}

void look_sysctl(struct tune_look *l)
{
	const struct tune_setting *s = l->setting;
	long long value = 0;
	bool good = !tune_tree_number(l->tree, s->path, &value) && value >= s->low &&
		    value <= s->high;

	look_today(l, "%s", l->line);
	if (!good)
		look_better(l, "%s", s->wanted);
	look_want_file(l, s->path, good ? l->line : s->wanted);
}

/* The second and third word of a line of /proc/self/mounts: place and type. */
int tune_cgroup_mount(const struct tune_tree *t, char *to, size_t size)
{
	char *text, *line, *next;
	int err = tune_tree_read(t, "/proc/self/mounts", &text);

	if (err)
		return err;
	err = -ENOENT;
	for (line = text; *line && err; line = next) {
		char place[512], type[32];

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (sscanf(line, "%*s %511s %31s", place, type) == 2 &&
		    !strcmp(type, "cgroup2"))
			err = (size_t)snprintf(to, size, "%s", place) >= size ? -ENAMETOOLONG : 0;
	}
	free(text);
	return err;
}
