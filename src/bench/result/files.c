/* SPDX-License-Identifier: BSD-2-Clause */
/* See files.h. */
#define LOG_ROOM "bench/result"
#include "bench/result/files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"

#define JSON_BYTES_MAX (64 << 20) /* a damaged or strange file is not read for minutes */
#define OPEN_DIRS 16

char *files_path(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

bool files_is_dir(const char *path)
{
	struct stat s;

	return !stat(path, &s) && S_ISDIR(s.st_mode);
}

int files_make_dir(const char *path)
{
	char *copy = strdup(path), *at = copy;
	int ret = !copy ? -ENOMEM : *path ? 0 : -ENOENT;

	while (!ret && at) {
		at = strchr(at + 1, '/');
		if (at)
			*at = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			ret = -errno;
		if (at)
			*at = '/';
	}
	if (!ret && !files_is_dir(path))
		ret = -ENOTDIR;
	if (ret)
		log_error("folder %s cannot be made: %s", path, strerror(-ret));
	free(copy);
	return ret;
}

int files_make_temporary(char **path)
{
	const char *base = getenv("TMPDIR");
	int ret;

	if (asprintf(path, "%s/busbar-bench-XXXXXX", base && *base == '/' ? base : "/tmp") < 0)
		return -ENOMEM;
	if (mkdtemp(*path))
		return 0;
	ret = -errno;
	log_error("folder %s cannot be made: %s", *path, strerror(-ret));
	free(*path);
	return ret;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
	return remove(path) ? errno : 0;
}

int files_remove_dir(const char *path)
{
	int err;

	if (!files_is_dir(path))
		return 0;
	err = nftw(path, remove_one, OPEN_DIRS, FTW_DEPTH | FTW_PHYS);
	if (err < 0)
		err = errno;
	if (err)
		log_error("folder %s cannot be removed: %s", path, strerror(err));
	return -err;
}

/* To the disk before the name is changed: a name without its text would be a damaged run. */
static int write_text(const char *path, const json_t *value)
{
	FILE *f = fopen(path, "we");
	int err = 0;

	if (!f)
		return -errno;
	if (json_dumpf(value, f, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) ||
	    fputc('\n', f) == EOF || fflush(f) || fsync(fileno(f)))
		err = errno ? errno : EIO;
	if (fclose(f) && !err)
		err = errno;
	return -err;
}

int files_write_json(const char *dir, const char *name, const json_t *value)
{
	char *path = files_path(dir, name), *part = NULL;
	int ret = -ENOMEM;

	if (!path || asprintf(&part, "%s.part", path) < 0) {
		part = NULL;
		goto out;
	}
	ret = write_text(part, value);
	if (!ret && rename(part, path))
		ret = -errno;
	if (ret)
		unlink(part);
out:
	if (ret)
		log_error("file %s/%s cannot be written: %s", dir, name, strerror(-ret));
	free(part);
	free(path);
	return ret;
}

int files_read_json(const char *dir, const char *name, json_t **value)
{
	char *path = files_path(dir, name);
	FILE *f = NULL;
	json_error_t e;
	struct stat s;
	int ret = 0, fd;

	*value = NULL;
	if (!path)
		return -ENOMEM;
	/* Not to wait for the other end if it is a pipe. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &s) || !(f = fdopen(fd, "r"))) {
		ret = -errno;
		if (ret != -ENOENT)
			log_error("file %s cannot be read: %s", path, strerror(-ret));
	} else if (!S_ISREG(s.st_mode) || s.st_size > JSON_BYTES_MAX) {
		ret = log_fail(-EBADMSG, "file %s is no file of at most %d MiB", path,
			       JSON_BYTES_MAX >> 20);
	} else if (!(*value = json_loadf(f, JSON_REJECT_DUPLICATES, &e))) {
		ret = log_fail(-EBADMSG, "file %s, line %d is damaged: %s", path, e.line, e.text);
	} else if (!json_is_object(*value)) {
		ret = log_fail(-EBADMSG, "file %s is damaged: no JSON object", path);
		json_decref(*value);
		*value = NULL;
	}
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	free(path);
	return ret;
}
