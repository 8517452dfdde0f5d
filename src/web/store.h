/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of a folder in registered memory, so that the adapter of who asked fetches them from
 * there: the most recent ones stay, in buffers of the instance's pool, up to a limit. Files
 * are read into buffers and not mapped, because a mapped file that becomes shorter ends the
 * process. Any thread.
 */
#ifndef WEB_STORE_H
#define WEB_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct ripc;
struct store;

/* `bytes_max`: of files that are kept. 0, or a negative errno of opening the folder. */
int store_open(struct store **out, struct ripc *r, const char *directory, size_t bytes_max);
/* Every piece was given back. */
void store_close(struct store *st);

/* An open file of the folder. */
struct store_file {
	int fd;
	struct stat stat;
};

/* `path`: relative, as of head_path(). Symbolic links are not followed, so nothing outside the
 * folder is reached. -ENOENT; -EACCES: not readable, or neither a file nor a folder; -ELOOP: a
 * symbolic link. */
int store_look(struct store *st, const char *path, struct store_file *out);
void store_leave(struct store_file *f);

struct store_piece {
	void *data;             /* registered; `bytes` of the file */
	size_t bytes;
	struct store_kept *kept; /* NULL: a buffer of its own */
};

/* `count` bytes of the file from `first` on, as it was when store_look() found it. -EBUSY: it
 * has changed since, look again; -ENOBUFS: no memory; or an error of reading. */
int store_get(struct store *st, const char *path, const struct store_file *f, uint64_t first,
	      uint64_t count, struct store_piece *out);
void store_put(struct store *st, const struct store_piece *p);

struct store_counters {
	uint64_t hits, misses; /* of files that could be kept */
	uint64_t kept_bytes, kept_files;
};
void store_counters(struct store *st, struct store_counters *out);

#endif
