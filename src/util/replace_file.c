/* SPDX-License-Identifier: BSD-2-Clause */
/* A file as a whole; see replace_file.h. */
#include "util/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const char *text, size_t size, bool (*stopped)(void))
{
	while (size) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (stopped())
			return -EINTR;
		text += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int write_to(const char *path, int flags, const char *text, size_t size,
		    bool (*stopped)(void))
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0666), ret;

	if (fd < 0)
		return -errno;
	ret = write_all(fd, text, size, stopped);
	if (close(fd) && !ret)
		ret = -errno;
	return ret;
}

static int write_beside(const char *path, const char *text, size_t size, bool (*stopped)(void))
{
	char *part = NULL;
	int ret;

	if (asprintf(&part, "%s.part", path) < 0)
		return -ENOMEM;
	ret = write_to(part, O_CREAT | O_TRUNC, text, size, stopped);
	if (!ret && rename(part, path))
		ret = -errno;
	if (ret)
		unlink(part);
	free(part);
	return ret;
}

int replace_file(const char *path, const char *text, size_t size, bool (*stopped)(void))
{
	struct stat st;
	char *file;
	int ret;

	if (!strcmp(path, "-"))
		return write_all(STDOUT_FILENO, text, size, stopped);
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return write_to(path, 0, text, size, stopped);
	file = realpath(path, NULL);
	ret = write_beside(file ? file : path, text, size, stopped);
	free(file);
	return ret;
}
