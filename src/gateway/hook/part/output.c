/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of hooks on its way out; see output.h. Not stdio, whose write nobody
 * could call back.
 */
#include "gateway/hook/part/output.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "util/bounded_write.h"
#include "util/clock.h"

#define BUFFER_SIZE ((size_t)65536)
/* How often one who waits looks whether it may go on waiting. */
#define LOOK_MS 20
#define PATIENCE_NS (2 * NSEC_PER_SEC)

enum manner {
	WRITE_NOW,   /* what is taken without waiting */
	WRITE_WAIT,  /* until interrupted */
	WRITE_HURRY, /* as if interrupted */
};

struct hook_output {
	int fd;               /* -1: a FIFO that nobody reads yet */
	char *path;           /* of such a one, until it is open */
	bool terminal;        /* each line is to be seen at once */
	unsigned users;       /* under `opening` */
	pthread_mutex_t lock; /* held while waiting for the reader */
	char *buf;
	size_t size, used;
	bool stuck;           /* it was in vain, nothing was taken since */
	int error;            /* negative; of a write that nobody asked for */
	atomic_bool interrupted;
};

static struct hook_output standard = {
	.fd = STDOUT_FILENO,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};
/* Never held while anybody waits who can be waited for. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static bool set_up(struct hook_output *o)
{
	o->size = BUFFER_SIZE;
	o->used = 0;
	o->stuck = false;
	o->error = 0;
	atomic_store(&o->interrupted, false);
	o->terminal = isatty(o->fd);
	o->buf = malloc(o->size);
	return o->buf;
}

static struct hook_output *open_standard(void)
{
	bool good = true;

	pthread_mutex_lock(&opening);
	if (standard.users == 0) {
		pthread_mutex_lock(&standard.lock);
		good = set_up(&standard);
		pthread_mutex_unlock(&standard.lock);
	}
	standard.users += good;
	pthread_mutex_unlock(&opening);
	return good ? &standard : NULL;
}

static void destroy(struct hook_output *o)
{
	int err = errno;

	if (o->fd >= 0)
		close(o->fd);
	pthread_mutex_destroy(&o->lock);
	free(o->path);
	free(o);
	errno = err;
}

static struct hook_output *open_path(const char *path, int flags)
{
	struct hook_output *o;

	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->users = 1;
	pthread_mutex_init(&o->lock, NULL);
	/* Whoever opens it must not wait for the reader of a FIFO. */
	o->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
				   O_NONBLOCK | flags,
		     0666);
	if (o->fd < 0 && errno == ENXIO)
		o->path = strdup(path);
	if ((o->fd >= 0 || o->path) && set_up(o))
		return o;
	destroy(o);
	return NULL;
}

struct hook_output *hook_output_open(const char *path)
{
	return path ? open_path(path, 0) : open_standard();
}

struct hook_output *hook_output_create(const char *path)
{
	return open_path(path, O_TRUNC);
}

/* The reader of a FIFO that nobody has read so far may be there now: waits for him
 * for `timeout_ms`. 0, -EAGAIN or another negative errno. */
static int open_late(struct hook_output *o, int timeout_ms)
{
	if (o->fd >= 0)
		return 0;
	o->fd = open(o->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
	if (o->fd >= 0)
		return 0;
	if (errno != ENXIO)
		return -errno;
	if (timeout_ms)
		nanosleep(&(struct timespec){ .tv_nsec = timeout_ms * 1000000L },
			  NULL);
	return -EAGAIN;
}

static ssize_t write_once(struct hook_output *o, const char *text, size_t len,
			  int timeout_ms)
{
	int ret = open_late(o, timeout_ms);

	return ret ? ret : bounded_write_once(o->fd, text, len, timeout_ms);
}

bool hook_output_is_new(const struct hook_output *o)
{
	struct stat st;

	return o->fd < 0 || fstat(o->fd, &st) || !S_ISREG(st.st_mode) || !st.st_size;
}

/* One more time: nothing was taken since `since_ns`. */
static bool goes_on(struct hook_output *o, enum manner m, uint64_t since_ns)
{
	if (m == WRITE_NOW || o->stuck)
		return false;
	o->stuck = ((m == WRITE_HURRY || atomic_load(&o->interrupted)) &&
		    clock_monotonic_ns_slow() - since_ns >= PATIENCE_NS) ||
		   ending_is_past(ENDING_HOOKS_MS);
	return !o->stuck;
}

/* 0: all is out; -EAGAIN: not all; another negative errno: what was left is
 * thrown away. */
static int write_out(struct hook_output *o, enum manner m)
{
	uint64_t since_ns = clock_monotonic_ns_slow();
	size_t done = 0;
	int ret = 0;

	while (done < o->used) {
		ssize_t n = write_once(o, o->buf + done, o->used - done,
				       m == WRITE_NOW || o->stuck ? 0 : LOOK_MS);

		if (n > 0) {
			done += (size_t)n;
			o->stuck = false;
			since_ns = clock_monotonic_ns_slow();
		} else if (n != -EAGAIN) {
			ret = (int)n;
			done = o->used;
		} else if (!goes_on(o, m, since_ns)) {
			ret = -EAGAIN;
			break;
		}
	}
	o->used -= done;
	if (o->used)
		memmove(o->buf, o->buf + done, o->used);
	return ret;
}

static bool make_room(struct hook_output *o, size_t len)
{
	char *buf;

	if (len <= o->size)
		return true;
	buf = realloc(o->buf, len);
	if (!buf)
		return false;
	o->buf = buf;
	o->size = len;
	return true;
}

/* Out with what is there, where `len` more do not fit. */
static int take_room(struct hook_output *o, size_t len)
{
	int ret = 0;

	if (o->used + len <= o->size)
		return 0;
	/* Who wants somebody back says so again and again. */
	atomic_store(&o->interrupted, false);
	ret = write_out(o, WRITE_WAIT);
	if (ret == -EAGAIN && o->used + len <= o->size)
		return 0;
	if (!ret && !make_room(o, len))
		ret = -ENOMEM;
	return ret;
}

int hook_output_put(struct hook_output *o, const char *prefix, const char *text,
		    size_t len)
{
	size_t before = strlen(prefix);
	int ret;

	pthread_mutex_lock(&o->lock);
	ret = take_room(o, before + len);
	/* After a failure there is room: what comes next may do better. */
	if (ret != -EAGAIN && o->used + before + len <= o->size) {
		memcpy(o->buf + o->used, prefix, before);
		memcpy(o->buf + o->used + before, text, len);
		o->used += before + len;
	}
	if (!ret && o->terminal) {
		atomic_store(&o->interrupted, false);
		ret = write_out(o, WRITE_WAIT);
		/* It is in the buffer, for later. */
		ret = ret == -EAGAIN ? 0 : ret;
	}
	if (!ret)
		ret = o->error;
	o->error = 0;
	pthread_mutex_unlock(&o->lock);
	return ret;
}

static bool flush(struct hook_output *o, enum manner m)
{
	bool empty;
	int ret;

	if (pthread_mutex_trylock(&o->lock))
		return false;
	ret = write_out(o, m);
	if (ret && ret != -EAGAIN)
		o->error = ret;
	empty = ret != -EAGAIN;
	pthread_mutex_unlock(&o->lock);
	return empty;
}

bool hook_output_flush(struct hook_output *o)
{
	return flush(o, WRITE_NOW);
}

bool hook_output_flush_stdout(bool wait)
{
	return flush(&standard, wait ? WRITE_HURRY : WRITE_NOW);
}

void hook_output_interrupt(struct hook_output *o)
{
	atomic_store(&o->interrupted, true);
}

/* Nobody else has it. */
static size_t tear_down(struct hook_output *o, bool hurry, int *error)
{
	size_t left;
	int ret;

	pthread_mutex_lock(&o->lock);
	ret = write_out(o, hurry ? WRITE_HURRY : WRITE_WAIT);
	left = o->used;
	ret = o->error ?: ret;
	*error = ret == -EAGAIN ? 0 : -ret;
	free(o->buf);
	o->buf = NULL;
	o->used = o->size = 0;
	pthread_mutex_unlock(&o->lock);
	return left;
}

size_t hook_output_close(struct hook_output *o, bool hurry, int *error)
{
	size_t left = 0;
	bool last;

	*error = 0;
	pthread_mutex_lock(&opening);
	last = --o->users == 0;
	if (last)
		left = tear_down(o, hurry, error);
	else
		hook_output_flush(o);
	pthread_mutex_unlock(&opening);
	if (o == &standard)
		return left;
	destroy(o);
	return left;
}
