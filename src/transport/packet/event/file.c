/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a file of events; see file.h. */
#include "transport/packet/event/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const char *name, const char *why, char *error, size_t error_bytes)
{
	snprintf(error, error_bytes, "%.100s: %s", name, why);
	return -EINVAL;
}

/* The descriptor of a regular file; or -EINVAL. */
static int open_file(const char *name, char *error, size_t error_bytes)
{
	/* What is no regular file must neither block nor become a terminal. */
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat s;

	if (fd < 0)
		return refuse(name, strerror(errno), error, error_bytes);
	if (!fstat(fd, &s) && S_ISREG(s.st_mode))
		return fd;
	close(fd);
	return refuse(name, "no regular file", error, error_bytes);
}

/* How many bytes; more than PACKET_EVENT_TEXT_MAX: the file is too long. Or -1 and errno. */
static ssize_t read_all(int fd, char *text)
{
	size_t have = 0;

	while (have <= PACKET_EVENT_TEXT_MAX) {
		ssize_t n = read(fd, text + have, PACKET_EVENT_TEXT_MAX + 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? n : (ssize_t)have;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

static int load(const char *name, int fd, char *text, struct packet_event_rules *rules,
		char *error, size_t error_bytes)
{
	ssize_t n = read_all(fd, text);

	if (n < 0)
		return refuse(name, strerror(errno), error, error_bytes);
	if (n > PACKET_EVENT_TEXT_MAX)
		return refuse(name, "longer than 64 KiB", error, error_bytes);
	return packet_event_parse(name, text, (size_t)n, rules, error, error_bytes);
}

int packet_event_load(const char *name, struct packet_event_rules **out, char *error,
		      size_t error_bytes)
{
	struct packet_event_rules *rules;
	char *text;
	int fd, ret = -ENOMEM;

	if (getauxval(AT_SECURE))
		return refuse(name, "a set-user-id program reads no file of events", error,
			      error_bytes);
	fd = open_file(name, error, error_bytes);
	if (fd < 0)
		return fd;
	rules = calloc(1, sizeof(*rules));
	text = malloc(PACKET_EVENT_TEXT_MAX + 1);
	if (rules && text)
		ret = load(name, fd, text, rules, error, error_bytes);
	else
		snprintf(error, error_bytes, "%.100s: no memory", name);
	close(fd);
	free(text);
	if (ret)
		free(rules);
	else
		*out = rules;
	return ret;
}
