/* SPDX-License-Identifier: BSD-2-Clause */
/* See profile.h. */
#define LOG_ROOM "odp"
#include "virtual/odp/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/paging/profile.h"
#include "util/log.h"

static FILE *changed;

/* Copies the text of the profile, which is a built-in one or a file. */
static int copy(const char *profile, FILE *to)
{
	const char *text = paging_profile_text(profile);
	char line[4096];
	FILE *from;

	if (text) {
		fputs(text, to);
		return 0;
	}
	from = fopen(profile, "re");
	if (!from) {
		log_error("profile '%s': %s; a profile is a file or one of %s", profile,
			  strerror(errno), paging_profile_names);
		return -ENOENT;
	}
	while (fgets(line, sizeof(line), from))
		fputs(line, to);
	fclose(from);
	return 0;
}

const char *odp_profile(const struct odp_point *p)
{
	static char path[40];

	if (changed)
		fclose(changed);
	changed = NULL;
	if (!p->fault_ns)
		return p->profile;
	changed = tmpfile();
	if (!changed || copy(p->profile, changed))
		return NULL;
	/* The last of two lines counts. */
	fprintf(changed, "\nfault_us = %" PRIu64 "\n", p->fault_ns / 1000);
	fflush(changed);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(changed));
	return path;
}
