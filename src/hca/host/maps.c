/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses /proc/self/maps line by line; see maps.h. */
#include "hca/host/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool number(const char **at, unsigned base, char end, uint64_t *value)
{
	const char *s = *at;
	uint64_t v = 0;

	for (; *s && *s != end; s++) {
		unsigned digit = *s >= '0' && *s <= '9' ? (unsigned)(*s - '0') :
				 *s >= 'a' && *s <= 'f' ?
					 (unsigned)(*s - 'a' + 10) : 99;

		if (digit >= base)
			return false;
		v = v * base + digit;
	}
	if (*s != end || s == *at)
		return false;
	*at = s + 1;
	*value = v;
	return true;
}

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* start-end rwxp offset major:minor inode      name */
bool maps_parse(const char *line, struct maps_entry *m)
{
	const char *perms;
	uint64_t major, minor, inode = 0;

	if (!number(&line, 16, '-', &m->start) ||
	    !number(&line, 16, ' ', &m->end) || strlen(line) < 5)
		return false;
	perms = line;
	line += 5;
	if (!number(&line, 16, ' ', &m->offset) ||
	    !number(&line, 16, ':', &major) || !number(&line, 16, ' ', &minor))
		return false;
	for (; *line >= '0' && *line <= '9'; line++)
		inode = inode * 10 + (uint64_t)(*line - '0');
	while (*line == ' ')
		line++;
	m->inode = (ino_t)inode;
	m->readable = perms[0] == 'r';
	m->writable = perms[1] == 'w';
	m->shared = perms[3] == 's';
	m->is_region = starts(line, "/memfd:busbar-region");
	m->ordinary = starts(perms, "rw-p") && inode == 0 &&
		      (!*line || !strcmp(line, "[heap]") ||
		       (starts(line, "[anon:") && !strstr(line, "stack")));
	return true;
}

int maps_walk(void (*fn)(const struct maps_entry *m, void *arg), void *arg)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char buf[4096 + 512];
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf + have, sizeof(buf) - have - 1)) > 0) {
		char *line = buf, *end;

		have += (size_t)n;
		buf[have] = '\0';
		while ((end = strchr(line, '\n'))) {
			struct maps_entry m;

			*end = '\0';
			if (maps_parse(line, &m))
				fn(&m, arg);
			line = end + 1;
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof(buf) - 1)
			have = 0; /* a line longer than the buffer: skipped */
	}
	close(fd);
	return n < 0 ? -EIO : 0;
}
