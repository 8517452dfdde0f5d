/* SPDX-License-Identifier: BSD-2-Clause */
/* Files in registered memory; see store.h. */
#include "web/store.h"

#include <busbar/ripc.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/list.h"
#include "util/same_file.h"

#define HEADS 256
#define FILES_MAX 4096

struct store_kept {
	struct list entry; /* of its head */
	struct list age;   /* the most recent one at the end */
	struct stat stat;
	unsigned users;    /* pieces, and the table */
	void *data;
	char path[];
};

struct store {
	struct ripc *r;
	int directory;
	size_t bytes_max;
	pthread_mutex_t lock; /* all below */
	struct list heads[HEADS], ages;
	struct store_counters counters;
};

int store_open(struct store **out, struct ripc *r, const char *directory, size_t bytes_max)
{
	struct store *st = calloc(1, sizeof(*st));

	if (!st)
		return -ENOMEM;
	st->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (st->directory < 0) {
		int err = -errno;

		free(st);
		return err;
	}
	st->r = r;
	st->bytes_max = bytes_max;
	pthread_mutex_init(&st->lock, NULL);
	for (unsigned i = 0; i < HEADS; i++)
		list_init(&st->heads[i]);
	list_init(&st->ages);
	*out = st;
	return 0;
}

/* ---- what is kept; st->lock ---- */

static void let_go(struct store *st, struct store_kept *k)
{
	if (--k->users)
		return;
	ripc_free(st->r, k->data);
	free(k);
}

static void forget(struct store *st, struct store_kept *k)
{
	list_remove(&k->entry);
	list_remove(&k->age);
	st->counters.kept_bytes -= (uint64_t)k->stat.st_size;
	st->counters.kept_files--;
	let_go(st, k);
}

static struct list *head_of(struct store *st, const char *path)
{
	uint32_t hash = 2166136261u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 16777619u;
	return &st->heads[hash % HEADS];
}

/* With a reference more, or NULL. One that the file differs from is forgotten. */
static struct store_kept *find(struct store *st, const char *path, const struct stat *is)
{
	struct list *head = head_of(st, path);

	for (struct list *e = head->next; e != head; e = e->next) {
		struct store_kept *k = container_of(e, struct store_kept, entry);

		if (strcmp(k->path, path))
			continue;
		if (!same_file(&k->stat, is)) {
			forget(st, k);
			return NULL;
		}
		list_remove(&k->age);
		list_push(&st->ages, &k->age);
		k->users++;
		return k;
	}
	return NULL;
}

static void keep(struct store *st, struct store_kept *k)
{
	struct store_kept *other = find(st, k->path, &k->stat);

	if (other) { /* another thread was faster */
		let_go(st, other);
		return;
	}
	k->users++;
	st->counters.kept_bytes += (uint64_t)k->stat.st_size;
	st->counters.kept_files++;
	list_push(head_of(st, k->path), &k->entry);
	list_push(&st->ages, &k->age);
	while (st->counters.kept_bytes > st->bytes_max || st->counters.kept_files > FILES_MAX)
		forget(st, container_of(st->ages.next, struct store_kept, age));
}

void store_close(struct store *st)
{
	if (!st)
		return;
	while (!list_empty(&st->ages))
		forget(st, container_of(st->ages.next, struct store_kept, age));
	pthread_mutex_destroy(&st->lock);
	close(st->directory);
	free(st);
}

/* ---- files ---- */

/* Folder by folder, none of which may be a symbolic link. */
static int open_below(int directory, const char *path)
{
	int at = directory;

	for (;;) {
		const char *slash = strchr(path, '/');
		size_t n = slash ? (size_t)(slash - path) : strlen(path);
		bool last = !slash || !slash[1];
		char name[NAME_MAX + 1];
		/* O_NONBLOCK: a FIFO would hold us up. */
		int flags = !last ? O_PATH | O_DIRECTORY :
				    O_RDONLY | O_NONBLOCK | O_NOCTTY | (slash ? O_DIRECTORY : 0);
		int fd = -1, err = ENAMETOOLONG;

		if (n <= NAME_MAX) {
			memcpy(name, n ? path : ".", n ? n : 1);
			name[n ? n : 1] = '\0';
			fd = openat(at, name, flags | O_CLOEXEC | O_NOFOLLOW);
			err = errno;
		}
		if (at != directory)
			close(at);
		if (fd < 0)
			return -err;
		if (last)
			return fd;
		at = fd;
		path = slash + 1;
	}
}

int store_look(struct store *st, const char *path, struct store_file *out)
{
	int fd = open_below(st->directory, path);

	if (fd < 0)
		return fd == -ENOTDIR || fd == -ENAMETOOLONG ? -ENOENT :
		       fd == -EPERM || fd == -ENXIO ? -EACCES : fd;
	out->fd = fd;
	if (fstat(fd, &out->stat) ||
	    (!S_ISREG(out->stat.st_mode) && !S_ISDIR(out->stat.st_mode))) {
		close(fd);
		return -EACCES;
	}
	return 0;
}

void store_leave(struct store_file *f)
{
	close(f->fd);
}

/* -EAGAIN: the file has changed. */
static int read_all(const struct store_file *f, uint64_t first, size_t count, char *to)
{
	struct stat now;

	while (count) {
		ssize_t n = pread(f->fd, to, count, (off_t)first);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EAGAIN;
		to += n;
		first += (uint64_t)n;
		count -= (size_t)n;
	}
	return fstat(f->fd, &now) ? -errno : same_file(&now, &f->stat) ? 0 : -EAGAIN;
}

/* The whole file, into memory that may be kept. */
static int load(struct store *st, const char *path, const struct store_file *f,
		struct store_kept **out)
{
	size_t bytes = (size_t)f->stat.st_size;
	struct store_kept *k = calloc(1, sizeof(*k) + strlen(path) + 1);
	int ret;

	if (!k)
		return -ENOBUFS;
	k->data = ripc_alloc(st->r, bytes);
	if (!k->data) {
		free(k);
		return -ENOBUFS;
	}
	list_init(&k->entry);
	list_init(&k->age);
	k->stat = f->stat;
	k->users = 1;
	strcpy(k->path, path);
	ret = read_all(f, 0, bytes, k->data);
	if (ret) {
		ripc_free(st->r, k->data);
		free(k);
		return ret;
	}
	*out = k;
	return 0;
}

static int get_kept(struct store *st, const char *path, const struct store_file *f,
		    struct store_kept **out)
{
	int ret;

	pthread_mutex_lock(&st->lock);
	*out = find(st, path, &f->stat);
	st->counters.hits += *out != NULL;
	st->counters.misses += *out == NULL;
	pthread_mutex_unlock(&st->lock);
	if (*out)
		return 0;
	ret = load(st, path, f, out);
	if (ret || same_file_is_young(&f->stat))
		return ret;
	pthread_mutex_lock(&st->lock);
	keep(st, *out);
	pthread_mutex_unlock(&st->lock);
	return 0;
}

static int get_own(struct store *st, const struct store_file *f, uint64_t first, size_t count,
		   struct store_piece *out)
{
	int ret;

	out->kept = NULL;
	out->data = ripc_alloc(st->r, count);
	if (!out->data)
		return -ENOBUFS;
	ret = read_all(f, first, count, out->data);
	if (ret)
		ripc_free(st->r, out->data);
	return ret;
}

int store_get(struct store *st, const char *path, const struct store_file *f, uint64_t first,
	      uint64_t count, struct store_piece *out)
{
	uint64_t size = (uint64_t)f->stat.st_size;
	int ret = -EAGAIN;

	out->bytes = (size_t)count;
	if (size > st->bytes_max / 2)
		ret = get_own(st, f, first, (size_t)count, out);
	else {
		ret = get_kept(st, path, f, &out->kept);
		if (!ret)
			out->data = (char *)out->kept->data + first;
	}
	return ret == -EAGAIN ? -EBUSY : ret;
}

void store_put(struct store *st, const struct store_piece *p)
{
	if (!p->kept) {
		ripc_free(st->r, p->data);
		return;
	}
	pthread_mutex_lock(&st->lock);
	let_go(st, p->kept);
	pthread_mutex_unlock(&st->lock);
}

void store_counters(struct store *st, struct store_counters *out)
{
	pthread_mutex_lock(&st->lock);
	*out = st->counters;
	pthread_mutex_unlock(&st->lock);
}
