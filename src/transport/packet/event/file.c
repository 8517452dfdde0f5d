/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a file of events; see file.h. */
#include "transport/packet/event/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/text_file.h"

static int refuse(const char *name, const char *why, char *error, size_t error_bytes)
{
	snprintf(error, error_bytes, "%.100s: %s", name, why);
	return -EINVAL;
}

int packet_event_load(const char *name, struct packet_event_rules **out, char *error,
		      size_t error_bytes)
{
	struct packet_event_rules *rules;
	size_t bytes;
	char why[160];
	char *text;
	int ret;

	text = text_file_read(name, PACKET_EVENT_TEXT_MAX, &bytes, why, sizeof(why));
	if (!text)
		return refuse(name, why, error, error_bytes);
	rules = calloc(1, sizeof(*rules));
	if (rules) {
		ret = packet_event_parse(name, text, bytes, rules, error, error_bytes);
	} else {
		ret = -ENOMEM;
		snprintf(error, error_bytes, "%.100s: no memory", name);
	}
	free(text);
	if (ret)
		free(rules);
	else
		*out = rules;
	return ret;
}
