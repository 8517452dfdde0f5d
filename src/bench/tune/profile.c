/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of the profile; see profile.h. */
#include "bench/tune/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void tune_profile_add(struct tune_profile *p, const char *section, const char *key,
		      const char *value)
{
	struct tune_line line = { section, strdup(key), strdup(value) };
	struct tune_line *more = line.key && line.value ?
		realloc(p->lines, (p->count + 1) * sizeof(*more)) : NULL;

	if (!more) {
		free(line.key);
		free(line.value);
		p->err = -ENOMEM;
		return;
	}
	p->lines = more;
	more[p->count++] = line;
}

void tune_profile_add_file(struct tune_profile *p, const char *path, const char *value)
{
	static const char sysctls[] = "/proc/sys/";
	char name[128];

	if (strncmp(path, sysctls, sizeof(sysctls) - 1)) {
		tune_profile_add(p, "sysfs", path, value);
		return;
	}
	snprintf(name, sizeof(name), "%s", path + sizeof(sysctls) - 1);
	for (char *at = name; (at = strchr(at, '/'));)
		*at = '.';
	tune_profile_add(p, "sysctl", name, value);
}

void tune_profile_add_partition(struct tune_profile *p, const char *mount, const char *group,
				const char *list)
{
	static const char text[] =
		"#!/bin/sh\n"
		"# Called by tuned: makes and removes the partition that 'busbar tune exec' uses.\n"
		"group='%s'\n"
		"case \"$1\" in\n"
		"start)\n"
		"	echo +cpuset >'%s/cgroup.subtree_control' && mkdir -p \"$group\" &&\n"
		"		echo %s >\"$group/cpuset.cpus\" &&\n"
		"		echo isolated >\"$group/cpuset.cpus.partition\" ;;\n"
		"stop)	[ ! -d \"$group\" ] || rmdir \"$group\" ;;\n"
		"verify)	grep -qx isolated \"$group/cpuset.cpus.partition\" ;;\n"
		"esac\n";

	free(p->script);
	if (asprintf(&p->script, text, group, mount, list) < 0) {
		p->script = NULL;
		p->err = -ENOMEM;
	}
	tune_profile_add(p, "script", "script", "${i:PROFILE_DIR}/" TUNE_SCRIPT);
}

void tune_profile_print(const struct tune_profile *p, FILE *out)
{
	fputs("# Made by 'busbar tune apply'; 'busbar tune undo' removes it.\n[main]\n"
	      "summary=Punctual gateways for co-simulation\n", out);
	for (size_t i = 0; i < p->count; i++) {
		const char *section = p->lines[i].section;
		size_t first = 0;

		while (strcmp(p->lines[first].section, section))
			first++;
		if (first < i)
			continue;
		fprintf(out, "\n[%s]\n", section);
		for (size_t j = i; j < p->count; j++)
			if (!strcmp(p->lines[j].section, section))
				fprintf(out, "%s=%s\n", p->lines[j].key, p->lines[j].value);
	}
}

void tune_profile_free(struct tune_profile *p)
{
	for (size_t i = 0; i < p->count; i++) {
		free(p->lines[i].key);
		free(p->lines[i].value);
	}
	free(p->lines);
	free(p->script);
	*p = (struct tune_profile){ 0 };
}
