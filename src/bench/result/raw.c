/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes raw.bin and raw.csv, and reads raw.bin. */
#define LOG_ROOM "bench/result"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/result/files.h"
#include "bench/result/run_private.h"
#include "util/log.h"
#include "util/num.h"

_Static_assert(sizeof(struct result_header) == 24, "no padding in the file");
_Static_assert(sizeof(struct result_column_header) == 32, "no padding in the file");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");

static FILE *create(const char *dir, const char *name)
{
	char *path = files_path(dir, name);
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!f)
		log_error("file %s/%s cannot be made: %s", dir, name, strerror(errno));
	free(path);
	return f;
}

/* Errors of single writes stay set until here. */
static int finish(FILE *f, const char *dir, const char *name)
{
	int failed = ferror(f), err = errno;

	if (fclose(f) && !failed) {
		failed = 1;
		err = errno;
	}
	if (!failed)
		return 0;
	return log_fail(err ? -err : -EIO, "file %s/%s cannot be written: %s", dir, name,
			strerror(err));
}

int raw_write_binary(const char *dir, const struct result_column *columns,
		     size_t columns_count, size_t rows)
{
	struct result_header head = { .magic = RESULT_MAGIC, .layout = RESULT_LAYOUT,
				      .columns = (uint32_t)columns_count, .rows = rows };
	FILE *f = create(dir, "raw.bin");

	if (!f)
		return -EIO;
	fwrite(&head, sizeof(head), 1, f);
	for (size_t i = 0; i < columns_count; i++) {
		struct result_column_header h = { .name = "" };

		/* The case has checked that they fit. */
		memcpy(h.name, columns[i].name, strlen(columns[i].name));
		memcpy(h.unit, columns[i].unit, strlen(columns[i].unit));
		fwrite(&h, sizeof(h), 1, f);
	}
	for (size_t i = 0; i < columns_count; i++)
		fwrite(columns[i].values, sizeof(int64_t), rows, f);
	return finish(f, dir, "raw.bin");
}

static void print_row(FILE *f, const struct result_column *columns, size_t count,
		      size_t row)
{
	for (size_t i = 0; i < count; i++) {
		char text[NUM_INT_MAX + 1], *at = text;

		if (columns[i].values[row] != RESULT_ABSENT)
			at = num_print_i64(at, columns[i].values[row]);
		*at++ = i + 1 < count ? ',' : '\n';
		fwrite(text, (size_t)(at - text), 1, f);
	}
}

/* The names have the unit: "t_recv [ns]". */
int raw_write_csv(const char *dir, const struct result_column *columns,
		  size_t columns_count, size_t rows)
{
	FILE *f = create(dir, "raw.csv");

	if (!f)
		return -EIO;
	for (size_t i = 0; i < columns_count; i++)
		fprintf(f, "%s%s%s%s%s", i ? "," : "", columns[i].name,
			*columns[i].unit ? " [" : "", columns[i].unit,
			*columns[i].unit ? "]" : "");
	fputc('\n', f);
	for (size_t row = 0; row < rows; row++)
		print_row(f, columns, columns_count, row);
	return finish(f, dir, "raw.csv");
}

/* ---- reading: nothing in it is believed before it was compared with the file's size ---- */

#define COLUMNS_MAX 256

static int damaged(const char *path, const char *why)
{
	return log_fail(-EBADMSG, "file %s is damaged: %s", path, why);
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
	ret = read_header(f, (uint64_t)s.st_size, path, c) ?: read_columns(f, path, c);
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
	if (!from || !to)
		return log_fail(-EBADMSG,
				"case %s is damaged: its raw.bin lacks a column of the latency "
				"'%s'",
				c->id, name);
	*values = malloc((c->rows ? c->rows : 1) * sizeof(**values));
	if (!*values)
		return -ENOMEM;
	*count = latency_values(from, to, c->rows, *values);
	return 0;
}
