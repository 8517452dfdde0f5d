/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of text as a whole; see text_file.h. */
#include "util/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* The descriptor of a regular file, or -1. */
static int open_regular(const char *path, char *why, size_t why_bytes)
{
	/* What is no regular file must neither block nor become a terminal. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat s;

	if (fd < 0) {
		snprintf(why, why_bytes, "%s", strerror(errno));
		return -1;
	}
	if (!fstat(fd, &s) && S_ISREG(s.st_mode))
		return fd;
	close(fd);
	snprintf(why, why_bytes, "no regular file");
	return -1;
}

/* How many bytes, `most` + 1 at most; or -1 and errno. */
static ssize_t read_up_to(int fd, char *text, size_t most)
{
	size_t have = 0;

	while (have <= most) {
		ssize_t n = read(fd, text + have, most + 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? n : (ssize_t)have;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

char *text_file_read(const char *path, size_t most, size_t *bytes, char *why, size_t why_bytes)
{
	char *text;
	ssize_t n;
	int fd;

	/* Its caller must not learn what is in files that only the program may read. */
	if (getauxval(AT_SECURE)) {
		snprintf(why, why_bytes, "a set-user-id program reads no file that a setting names");
		return NULL;
	}
	fd = open_regular(path, why, why_bytes);
	if (fd < 0)
		return NULL;
	text = malloc(most + 1);
	n = text ? read_up_to(fd, text, most) : -1;
	if (n < 0)
		snprintf(why, why_bytes, "%s", strerror(errno));
	close(fd);
	if (n > (ssize_t)most)
		snprintf(why, why_bytes, "longer than %zu bytes", most);
	if (n < 0 || n > (ssize_t)most) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*bytes = (size_t)n;
	return text;
}
