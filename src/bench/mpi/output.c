/* SPDX-License-Identifier: BSD-2-Clause */
/* See output.h. */
#define LOG_ROOM "bench/mpi"
#include "bench/mpi/output.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/result/columns.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/num.h"
#include "wire/capture/link.h"
#include "wire/capture/reader.h"
#include "wire/ib/header.h"

/* What a column of times says, as the difference to one before it. */
static const struct result_latency meanings[] = {
	{ "t_lat", "half the round trip", "t_begin", "t_half" },
	{ "t_call", "the call that sends", "t_begin", "t_called" },
	{ "t_complete", "from its return to the completion", "t_called", "t_done" },
	{ "t_burst", "a window until its answer", "t_begin", "t_answer" },
	{ "t_operation", "the operation, slowest process", "t_begin", "t_end" },
	{ "t_together", "message and computation together", "t_begin", "t_together" },
};

/* The next word of a line, if it has room in out[size]. */
static const char *word(const char *at, char *out, size_t size)
{
	size_t n;

	at += strspn(at, " ");
	n = strcspn(at, " \t\r\n");
	if (!n || n >= size)
		return NULL;
	memcpy(out, at, n);
	out[n] = '\0';
	return at + n;
}

static bool is_name(const char *text)
{
	if (!islower((unsigned char)*text))
		return false;
	return !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.")];
}

/* Texts go into JSON, which has to be UTF-8; the programs write no other characters. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

bool mpi_row_parse(const char *line, struct mpi_row *row)
{
	const char *at = word(line, row->name, sizeof(row->name));
	char value[40];
	size_t n;

	if (isspace((unsigned char)*line) || !at || !is_name(row->name))
		return false;
	at = word(at, row->unit, sizeof(row->unit));
	at = at ? word(at, value, sizeof(value)) : NULL;
	if (!at || num_parse_double(value, value + strlen(value), &row->value) !=
			   value + strlen(value) || !isfinite(row->value))
		return false;
	at += strspn(at, " ");
	n = strcspn(at, "\r\n");
	if (!n || n >= sizeof(row->meaning))
		return false;
	memcpy(row->meaning, at, n);
	row->meaning[n] = '\0';
	if (!strcmp(row->unit, "-"))
		*row->unit = '\0';
	return is_plain(row->unit) && is_plain(row->meaning);
}

static int add_row(const struct mpi_row *row, struct result_case *c, double *counted)
{
	if (!strcmp(row->name, "counted")) {
		*counted = row->value;
		return 0;
	}
	return result_case_figure(c, &(struct result_figure){
		.name = row->name, .label = row->meaning, .unit = row->unit,
		.value = row->value });
}

/* Adds the rows to the case, unless it is NULL. -ENODATA: the table is not whole. */
static int read_table(const char *path, struct result_case *c, double *counted)
{
	bool table = false, whole = false;
	struct mpi_row row;
	char line[300];
	FILE *f = fopen(path, "re");
	int ret = f ? 0 : -errno;

	while (!ret && fgets(line, sizeof(line), f)) {
		table |= !strncmp(line, "# name", 6);
		if (!table || !strchr(line, '\n') || !mpi_row_parse(line, &row))
			continue;
		/* It stands last. */
		whole |= !strcmp(row.name, "damaged");
		ret = c ? add_row(&row, c, counted) : 0;
	}
	if (f)
		fclose(f);
	return ret || whole ? ret : -ENODATA;
}

int mpi_read_table(const char *path, struct result_case *c, double *counted)
{
	int ret;

	*counted = 0;
	ret = read_table(path, c, counted);
	if (ret != -ENODATA)
		return ret;
	return log_fail(-EBADMSG, "%s has no whole table of results", path);
}

bool mpi_table_is_whole(const char *path)
{
	return !read_table(path, NULL, NULL);
}

static bool is_known(const char *column)
{
	bool known = !strcmp(column, "t_begin");

	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		known |= !strcmp(column, meanings[i].to);
	return known;
}

static bool has_column(const struct mpi_times *t, const char *name)
{
	for (size_t i = 0; i < t->columns; i++)
		if (!strcmp(t->names[i], name))
			return true;
	return false;
}

/* "# t_begin t_half t_called" */
static int parse_heading(const char *line, struct mpi_times *t)
{
	char name[RESULT_NAME_MAX];

	if (*line++ != '#')
		return -EBADMSG;
	while (line[strspn(line, " \n")]) {
		line = word(line, name, sizeof(name));
		if (!line || t->columns == MPI_COLUMNS_MAX || !is_known(name) ||
		    has_column(t, name))
			return -EBADMSG;
		strcpy(t->names[t->columns++], name);
	}
	return has_column(t, "t_begin") && t->columns > 1 &&
	       has_column(t, "t_done") <= has_column(t, "t_called") ? 0 : -EBADMSG;
}

static int parse_times(const char *line, struct mpi_times *t)
{
	int ret = columns_make_room(t->values, t->columns, t->rows, &t->room);

	for (size_t i = 0; !ret && i < t->columns; i++) {
		char text[30];

		line = word(line, text, sizeof(text));
		if (!line || num_parse_i64(text, text + strlen(text), &t->values[i][t->rows]) !=
				     text + strlen(text))
			return -EBADMSG;
	}
	if (ret)
		return ret;
	t->rows++;
	return line[strspn(line, " ")] == '\n' ? 0 : -EBADMSG;
}

int mpi_times_parse(FILE *f, struct mpi_times *t)
{
	char line[300];
	int ret;

	*t = (struct mpi_times){ .columns = 0 };
	if (!fgets(line, sizeof(line), f))
		return -EBADMSG;
	ret = parse_heading(line, t);
	while (!ret && fgets(line, sizeof(line), f))
		ret = parse_times(line, t);
	return ret ? ret : t->rows ? 0 : -EBADMSG;
}

void mpi_times_free(struct mpi_times *t)
{
	for (size_t i = 0; i < MPI_COLUMNS_MAX; i++)
		free(t->values[i]);
	*t = (struct mpi_times){ .columns = 0 };
}

static int add_times(const struct mpi_times *t, struct result_case *c)
{
	struct result_column columns[MPI_COLUMNS_MAX];
	struct result_latency latencies[ARRAY_SIZE(meanings)];
	size_t count = 0;

	for (size_t i = 0; i < t->columns; i++)
		columns[i] = (struct result_column){ t->names[i], "ns", t->values[i] };
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (has_column(t, meanings[i].to))
			latencies[count++] = meanings[i];
	return result_case_rows(c, columns, t->columns, t->rows, latencies, count);
}

int mpi_read_times(const char *path, struct result_case *c)
{
	FILE *f = fopen(path, "re");
	struct mpi_times t = { .columns = 0 };
	int ret = f ? mpi_times_parse(f, &t) : -errno;

	if (f)
		fclose(f);
	if (ret)
		log_error("%s cannot be read: line %zu: %s", path, t.rows + 1, strerror(-ret));
	else
		ret = add_times(&t, c);
	mpi_times_free(&t);
	return ret;
}

/* ---- packets ---- */

enum { OUTBOUND = 2, SERVICE = 0xe0, OPERATION = 0x1f /* of an opcode */ };

/* By what the packet does. */
static void count(uint8_t opcode, struct mpi_packets *out)
{
	int operation = opcode & OPERATION;

	if ((opcode & SERVICE) == IB_SERVICE_CNP)
		out->others++;
	else if (operation <= IB_SEND_ONLY_IMM || operation == IB_SEND_LAST_INVALIDATE ||
		 operation == IB_SEND_ONLY_INVALIDATE)
		out->sends++;
	else if (operation <= IB_WRITE_ONLY_IMM)
		out->writes++;
	else if (operation == IB_READ_REQUEST)
		out->read_requests++;
	else if (operation <= IB_READ_RESPONSE_ONLY)
		out->read_responses++;
	else if (operation == IB_ACKNOWLEDGE)
		out->acks++;
	else
		out->others++;
}

int mpi_packets_parse(const void *file, size_t size, uint64_t from_ns, uint64_t to_ns,
		      struct mpi_packets *out)
{
	struct capture_rdma_packet rdma;
	enum capture_status status;
	struct capture_packet p;
	struct capture_reader r;
	size_t at = 0, used;

	capture_begin(&r);
	while (at < size) {
		status = capture_next(&r, (const uint8_t *)file + at, size - at, &used, &p);
		if (status == CAPTURE_MORE || status == CAPTURE_CORRUPT)
			break;
		at += used;
		if (status != CAPTURE_PACKET || p.direction != OUTBOUND || p.when_ns < from_ns ||
		    p.when_ns > to_ns ||
		    capture_find_rdma(p.link, p.data, p.captured, &rdma) != CAPTURE_RDMA)
			continue;
		count(rdma.bth[0], out);
		out->bytes += p.length;
	}
	out->dropped += capture_dropped(&r);
	return at == size && capture_end(&r, 0) ? 0 : -EBADMSG;
}

static int read_file(const char *path, uint64_t from_ns, uint64_t to_ns,
		     struct mpi_packets *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = -EBADMSG;
	struct stat st;
	void *map;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_size > 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		ret = map == MAP_FAILED ? -errno : 0;
		if (!ret) {
			ret = mpi_packets_parse(map, (size_t)st.st_size, from_ns, to_ns, out);
			munmap(map, (size_t)st.st_size);
		}
	}
	close(fd);
	if (ret)
		log_error("%s cannot be read: %s", path, strerror(-ret));
	return ret;
}

int mpi_packets_read(const char *dir, uint64_t from_ns, uint64_t to_ns,
		     struct mpi_packets *out)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int ret = d ? -ENOENT : -errno;
	char path[PATH_MAX];

	*out = (struct mpi_packets){ 0 };
	while (d && (entry = readdir(d))) {
		if (fnmatch("packets-*.pcapng", entry->d_name, 0))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (!ret || ret == -ENOENT)
			ret = read_file(path, from_ns, to_ns, out);
		unlink(path);
	}
	if (d)
		closedir(d);
	if (ret == -ENOENT)
		log_error("%s: the program has left no capture", dir);
	return ret;
}
