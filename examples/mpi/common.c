/* SPDX-License-Identifier: BSD-2-Clause */
/* See common.h. Data, marks, table and times; the options are in options.c. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A page: a piece in front of the first boundary would be a message of its own to some MPIs. */
#define ALIGNMENT 4096
#define MARK_LOOK_NS 500000
#define MARK_SECONDS 60

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void run_fail(const struct run *r, const char *what)
{
	fprintf(stderr, "%s: rank %d: %s\n", r->program->name, r->rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

void *new_memory(const struct run *r, size_t size)
{
	void *at;

	if (posix_memalign(&at, ALIGNMENT, size ? size : 1))
		run_fail(r, "out of memory");
	memset(at, 0xee, size ? size : 1);
	return at;
}

/* Each word differs from the one before and from those of other seeds in all its bytes. */
static uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	uint64_t x = seed + index * 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
	return x ^ (x >> 29);
}

void pattern_fill(void *to, size_t size, uint64_t seed)
{
	uint64_t word;
	size_t i = 0;

	for (; i + sizeof(word) <= size; i += sizeof(word)) {
		word = pattern_word(seed, i);
		memcpy((char *)to + i, &word, sizeof(word));
	}
	word = pattern_word(seed, i);
	memcpy((char *)to + i, &word, size - i);
}

bool pattern_is(const void *at, size_t size, uint64_t seed)
{
	uint64_t word, wrong = 0, there;
	size_t i = 0;

	for (; i + sizeof(word) <= size; i += sizeof(word)) {
		memcpy(&there, (const char *)at + i, sizeof(there));
		wrong |= there ^ pattern_word(seed, i);
	}
	word = pattern_word(seed, i);
	return !wrong && !memcmp((const char *)at + i, &word, size - i);
}

uint64_t pattern_seed(int from, int to, uint64_t number)
{
	return ((uint64_t)from << 48) + ((uint64_t)to << 32) + number * 0x2545f491 + 1;
}

static void mark_path(const struct run *r, const char *which, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s.%s", r->marks, which) >= PATH_MAX)
		run_fail(r, "--marks: the path is too long");
}

static void make_mark(const struct run *r, const char *which)
{
	char path[PATH_MAX];
	int fd;

	mark_path(r, which, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0)
		run_fail(r, "--marks: the file cannot be made");
	close(fd);
}

/* Are all processes in the file? When it is gone, they were. */
static bool all_stand_in(const char *path, int processes)
{
	int fd = open(path, O_RDONLY), lines = 0;
	char text[512];
	ssize_t n;

	if (fd < 0)
		return true;
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += text[i] == '\n';
	close(fd);
	return lines >= processes;
}

static void stop_at(const struct run *r, const char *which)
{
	uint64_t until = now_ns() + MARK_SECONDS * 1000000000ull;
	char path[PATH_MAX], line[30];
	int fd, n = snprintf(line, sizeof(line), "%ld\n", (long)getpid()), there;
	bool all = false;

	mark_path(r, which, path);
	fd = open(path, O_WRONLY | O_APPEND);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		run_fail(r, "--marks: the file cannot be written");
	close(fd);
	while (!access(path, F_OK)) {
		if (now_ns() > until)
			run_fail(r, "nobody has removed the file of --marks");
		/* Others may still need something that only MPI's own calls do. */
		all = all || all_stand_in(path, r->ranks);
		if (!all)
			MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there,
				   MPI_STATUS_IGNORE);
		nanosleep(&(struct timespec){ .tv_nsec = MARK_LOOK_NS }, NULL);
	}
}

void mark_begin(const struct run *r)
{
	if (!r->marks)
		return;
	/* Both, as later nobody may wait for another one by a message. */
	if (!r->rank) {
		make_mark(r, "begin");
		make_mark(r, "end");
	}
	MPI_Barrier(MPI_COMM_WORLD);
	stop_at(r, "begin");
}

void mark_end(const struct run *r)
{
	if (r->marks)
		stop_at(r, "end");
}

void table_begin(const struct run *r)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int n;

	if (r->rank)
		return;
	MPI_Get_library_version(version, &n);
	version[strcspn(version, ",\n")] = '\0';
	for (char *c = version; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
	printf("# %s%s%s, %zu bytes, %d processes, %s\n", r->program->name,
	       r->program->words ? " " : "", r->program->words ? r->program->words[r->word] : "",
	       r->size, r->ranks, version);
	printf("# %-18s %-6s %14s  meaning\n", "name", "unit", "value");
}

void table_row(const struct run *r, const char *name, const char *unit, double value,
	       const char *meaning)
{
	if (!r->rank)
		printf("%-20s %-6s %14.9g  %s\n", name, unit, value, meaning);
}

void times_new(struct times *t, const struct run *r, size_t columns, const char *const *names,
	       size_t rows)
{
	*t = (struct times){ .columns = columns, .rows = rows };
	for (size_t i = 0; i < columns; i++)
		t->names[i] = names[i];
	t->at = new_memory(r, columns * rows * sizeof(*t->at));
}

void times_write(const struct times *t, const struct run *r)
{
	FILE *f;

	if (!r->times || r->rank)
		return;
	f = fopen(r->times, "w");
	if (!f)
		run_fail(r, "--times: the file cannot be made");
	putc('#', f);
	for (size_t i = 0; i < t->columns; i++)
		fprintf(f, " %s", t->names[i]);
	for (size_t row = 0; row < t->rows; row++)
		for (size_t i = 0; i < t->columns; i++)
			fprintf(f, "%c%lld", i ? ' ' : '\n', (long long)times_row(t, row)[i]);
	putc('\n', f);
	if (ferror(f) | fclose(f))
		run_fail(r, "--times: the file cannot be written");
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void times_table(const struct times *t, const struct run *r, const char *name, size_t from,
		 size_t to, const char *meaning)
{
	static const struct {
		const char *suffix;
		double share;
	} shown[] = { { "min", 0 }, { "p50", 0.5 }, { "p99", 0.99 }, { "max", 1 } };
	int64_t *values;

	if (r->times || r->rank || !t->rows)
		return;
	values = new_memory(r, t->rows * sizeof(*values));
	for (size_t row = 0; row < t->rows; row++)
		values[row] = times_row(t, row)[to] - times_row(t, row)[from];
	qsort(values, t->rows, sizeof(*values), by_value);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		size_t place = (size_t)(shown[i].share * (double)(t->rows - 1));
		char key[40];

		snprintf(key, sizeof(key), "%s_%s", name, shown[i].suffix);
		table_row(r, key, "ns", (double)values[place], meaning);
	}
	free(values);
}

void times_free(struct times *t)
{
	free(t->at);
	t->at = NULL;
}
