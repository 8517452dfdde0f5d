/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes raw.bin and raw.csv. */
#define LOG_ROOM "bench/result"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	log_error("file %s/%s cannot be written: %s", dir, name, strerror(err));
	return err ? -err : -EIO;
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
