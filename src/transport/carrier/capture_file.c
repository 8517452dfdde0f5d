/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a capture; see capture_file.h. */
#include "transport/carrier/capture_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 100

/* ---- names ---- */

struct text {
	char *to;
	size_t at;
	int error;
};

static void add(struct text *t, const char *from, size_t bytes)
{
	if (bytes >= PATH_MAX - t->at) {
		t->error = -ENAMETOOLONG;
		return;
	}
	memcpy(t->to + t->at, from, bytes);
	t->at += bytes;
	t->to[t->at] = '\0';
}

/* Expands the pattern's % in [from, end). */
static void add_expanded(struct text *t, const char *from, const char *end, bool *has_id)
{
	char id[16];
	int length = snprintf(id, sizeof(id), "%d", (int)getpid());

	for (; from < end; from++) {
		if (*from != '%') {
			add(t, from, 1);
		} else if (++from < end && *from == '%') {
			add(t, "%", 1);
		} else if (from < end && *from == 'p') {
			add(t, id, (size_t)length);
			*has_id = true;
		} else {
			t->error = -EINVAL;
			return;
		}
	}
}

/* Where the suffix of the file's name begins, or the end. */
static const char *suffix_of(const char *pattern)
{
	const char *name = strrchr(pattern, '/');
	const char *dot;

	name = name ? name + 1 : pattern;
	dot = strrchr(name, '.');
	return dot && dot != name ? dot : pattern + strlen(pattern);
}

int capture_file_name(const struct capture_file *f, unsigned number, bool own,
		      char name[PATH_MAX])
{
	const char *suffix = suffix_of(f->pattern);
	const char *end = f->pattern + strlen(f->pattern);
	struct text t = { .to = name };
	bool has_id = false, later = false;
	char extra[32];

	name[0] = '\0';
	add_expanded(&t, f->pattern, suffix, &has_id);
	/* An id in the suffix counts as well. */
	later = strstr(suffix, "%p");
	if ((own || f->files > 1) && !has_id && !later)
		add(&t, extra, (size_t)snprintf(extra, sizeof(extra), "-%d",
						(int)getpid()));
	if (f->files > 1)
		add(&t, extra, (size_t)snprintf(extra, sizeof(extra), "-%05u", number));
	add_expanded(&t, suffix, end, &has_id);
	if (!t.error && !t.at)
		t.error = -EINVAL;
	return t.error;
}

/* ---- opening ---- */

/* O_NONBLOCK: opening a pipe does not wait for its reader. */
static int open_named(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

	return fd < 0 ? -errno : fd;
}

/* Nobody else writes it: a lock of the open file, which a forked child shares, and which
 * the end of the process releases. Where there are no locks, nobody is asked. */
static int claim(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK ? -EAGAIN : 0;
}

static int prepare(struct capture_file *f, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	f->pipe = S_ISFIFO(st.st_mode);
	if (S_ISSOCK(st.st_mode) || S_ISBLK(st.st_mode))
		return -EINVAL;
	if (!f->pipe && !S_ISREG(st.st_mode))
		return 0; /* /dev/null */
	if (claim(fd))
		return -EAGAIN;
	return f->pipe || !ftruncate(fd, 0) ? 0 : -errno;
}

static int open_once(struct capture_file *f)
{
	int ret = capture_file_name(f, f->number, f->own_name, f->name);
	struct stat st;
	int fd;

	if (ret)
		return ret;
	fd = open_named(f->name);
	if (fd == -ENXIO) /* also what a socket of that name gives */
		f->pipe = !stat(f->name, &st) && S_ISFIFO(st.st_mode);
	if (fd < 0)
		return fd == -ENXIO && !f->pipe ? -EINVAL : fd;
	ret = prepare(f, fd);
	if (ret) {
		close(fd);
		return ret;
	}
	f->fd = fd;
	f->bytes = 0;
	return 0;
}

int capture_file_open(struct capture_file *f)
{
	int ret;

	if (!f->number)
		f->number = 1;
	ret = open_once(f);
	if (ret != -EAGAIN || f->pipe || f->own_name)
		return ret;
	f->own_name = true;
	return open_once(f);
}

void capture_file_close(struct capture_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

int capture_file_next(struct capture_file *f)
{
	char old[PATH_MAX];

	capture_file_close(f);
	f->number++;
	if (f->number > f->files &&
	    !capture_file_name(f, f->number - f->files, f->own_name, old))
		unlink(old);
	return capture_file_open(f);
}

/* ---- writing ---- */

/* Room in the pipe; false: that was long enough. */
static bool await_room(struct capture_file *f, const struct capture_patience *p)
{
	struct pollfd pollfd = { .fd = f->fd, .events = POLLOUT };

	while (poll(&pollfd, 1, LOOK_MS) == 0)
		if (p->over(p->arg))
			return false;
	return true;
}

int capture_file_write(struct capture_file *f, const void *data, size_t bytes,
		       const struct capture_patience *p)
{
	size_t done = 0;
	int error = 0;

	while (done < bytes && !error) {
		ssize_t n = write(f->fd, (const uint8_t *)data + done, bytes - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			error = await_room(f, p) ? 0 : -ETIMEDOUT;
		else if (errno != EINTR)
			error = -errno;
	}
	/* No part of a block stays behind: readers would call the file damaged. */
	if (error && done && !f->pipe && ftruncate(f->fd, (off_t)f->bytes) == 0)
		return error;
	if (!error)
		f->bytes += bytes;
	return error;
}
