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

static int write_and_close(int fd, const char *text, size_t size, bool (*stopped)(void))
{
	int ret = fd < 0 ? -errno : write_all(fd, text, size, stopped);

	if (fd >= 0 && close(fd) && !ret)
		ret = -errno;
	return ret;
}

/* As open() would make it, or as it was, where the file system has such modes. */
static void set_mode(int fd, const char *path)
{
	struct stat st;
	mode_t mask;

	if (stat(path, &st)) {
		mask = umask(0);
		umask(mask);
		st.st_mode = 0666 & ~mask;
	}
	if (fchmod(fd, st.st_mode & 0777))
		return;
}

/* Nobody who may write the folder can foretell the name, and have another file written. */
static int write_beside(const char *path, const char *text, size_t size, bool (*stopped)(void))
{
	char *part = NULL;
	int ret, fd;

	if (asprintf(&part, "%s.part.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		free(part);
		return ret;
	}
	set_mode(fd, path);
	ret = write_and_close(fd, text, size, stopped);
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
		return write_and_close(open(path, O_WRONLY | O_CLOEXEC), text, size, stopped);
	file = realpath(path, NULL);
	ret = write_beside(file ? file : path, text, size, stopped);
	free(file);
	return ret;
}
