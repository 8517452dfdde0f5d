/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads raw.bin. Nothing in it is believed before it was compared with the file's size. */
#define LOG_ROOM "bench/result"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/result/run_private.h"
#include "util/log.h"

#define COLUMNS_MAX 256

static int damaged(const char *path, const char *why)
{
	log_error("file %s is damaged: %s", path, why);
	return -EBADMSG;
}

/* Name or unit, NUL-terminated and printable. */
static bool is_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return n < size;
}

static int read_header(FILE *f, uint64_t file_bytes, const char *path,
		       struct result_read *c)
{
	struct result_header h;
	uint64_t cells, bytes;

	if (fread(&h, sizeof(h), 1, f) != 1)
		return damaged(path, "it is shorter than its header");
	if (memcmp(h.magic, RESULT_MAGIC, sizeof(h.magic)) || h.layout != RESULT_LAYOUT)
		return damaged(path, "it does not begin with " RESULT_MAGIC " and layout 1");
	if (h.columns > COLUMNS_MAX)
		return damaged(path, "too many columns");
	if (__builtin_mul_overflow(h.rows, (uint64_t)h.columns, &cells) ||
	    __builtin_mul_overflow(cells, sizeof(int64_t), &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(h) +
				   h.columns * sizeof(struct result_column_header), &bytes) ||
	    bytes != file_bytes || (h.rows && !h.columns))
		return damaged(path, "its size is not that of the rows and columns in its "
				     "header");
	c->header = calloc(h.columns + 1, sizeof(*c->header));
	c->values = calloc(h.columns + 1, sizeof(*c->values));
	if (!c->header || !c->values)
		return -ENOMEM;
	c->columns = h.columns;
	c->rows = h.rows;
	if (fread(c->header, sizeof(*c->header), h.columns, f) != h.columns)
		return damaged(path, "it ends within its columns' names");
	return 0;
}

static int read_columns(FILE *f, const char *path, struct result_read *c)
{
	for (size_t i = 0; i < c->columns; i++) {
		if (!is_text(c->header[i].name, sizeof(c->header[i].name)) ||
		    !is_text(c->header[i].unit, sizeof(c->header[i].unit)))
			return damaged(path, "a column's name or unit is no text");
		c->values[i] = malloc((c->rows ? c->rows : 1) * sizeof(int64_t));
		if (!c->values[i])
			return -ENOMEM;
		if (fread(c->values[i], sizeof(int64_t), c->rows, f) != c->rows)
			return damaged(path, "it ends within its rows");
	}
	return 0;
}

void result_drop_rows(struct result_read *c)
{
	for (size_t i = 0; c->values && i < c->columns; i++)
		free(c->values[i]);
	free(c->values);
	free(c->header);
	c->values = NULL;
	c->header = NULL;
	c->columns = c->rows = 0;
}

static int read_file(int fd, const char *path, struct result_read *c)
{
	struct stat s;
	FILE *f;
	int ret;

	if (fstat(fd, &s) || !S_ISREG(s.st_mode)) {
		close(fd);
		return damaged(path, "it is no file");
	}
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	ret = read_header(f, (uint64_t)s.st_size, path, c);
	if (!ret)
		ret = read_columns(f, path, c);
	fclose(f);
	return ret;
}

int result_read_rows(const char *dir, struct result_read *c)
{
	char *path;
	int fd, ret = 0;

	if (c->values)
		return 0;
	if (asprintf(&path, "%s/cases/%s/raw.bin", dir, c->id) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		ret = read_file(fd, path, c);
		if (ret)
			result_drop_rows(c);
	} else if (errno != ENOENT) {
		ret = -errno;
		log_error("file %s cannot be read: %s", path, strerror(-ret));
	}
	free(path);
	return ret;
}

static const int64_t *column(const struct result_read *c, const json_t *name)
{
	const char *text = json_string_value(name);

	for (size_t i = 0; text && i < c->columns; i++)
		if (!strcmp(c->header[i].name, text))
			return c->values[i];
	return NULL;
}

int result_read_latency(const struct result_read *c, const char *name, int64_t **values,
			size_t *count)
{
	const json_t *latency = json_object_get(json_object_get(c->summary, "latencies"),
						name);
	const int64_t *from = column(c, json_object_get(latency, "from"));
	const int64_t *to = column(c, json_object_get(latency, "to"));

	if (!latency)
		return -ENOENT;
	if (!from || !to) {
		log_error("case %s is damaged: its raw.bin lacks a column of the latency "
			  "'%s'", c->id, name);
		return -EBADMSG;
	}
	*values = malloc((c->rows ? c->rows : 1) * sizeof(**values));
	if (!*values)
		return -ENOMEM;
	*count = latency_values(from, to, c->rows, *values);
	return 0;
}
