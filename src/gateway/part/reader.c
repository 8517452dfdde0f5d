/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples out of a file; see reader.h. */
#define LOG_ROOM "gateway/file"
#include "gateway/part/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/container_of.h"
#include "util/log.h"

/* Of a file with thousands of bad lines these many are shown. */
#define REPORTS_MAX 5

int reader_open(struct reader *r, const char *path, struct format *format,
		size_t buffer_size)
{
	struct stat st;
	int err;

	memset(r, 0, sizeof(*r));
	r->path = path;
	r->format = format;
	r->size = buffer_size;
	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0 || fstat(r->fd, &st)) {
		err = errno;
		log_error("cannot open '%s' for reading: %s", path, strerror(err));
		goto err_close;
	}
	if (S_ISDIR(st.st_mode)) {
		err = EISDIR;
		log_error("cannot read '%s': it is a folder", path);
		goto err_close;
	}
	r->regular = S_ISREG(st.st_mode);
	r->fifo = S_ISFIFO(st.st_mode);
	r->buf = malloc(r->size);
	if (!r->buf) {
		err = ENOMEM;
		log_error("no memory for %zu bytes of input buffer", r->size);
		goto err_close;
	}
	if (format->type->reset)
		format->type->reset(format);
	return 0;

err_close:
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	return -err;
}

void reader_close(struct reader *r)
{
	free(r->buf);
	r->buf = NULL;
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

int reader_rewind(struct reader *r)
{
	if (lseek(r->fd, 0, SEEK_SET) < 0)
		return -errno;
	r->start = r->end = 0;
	r->offset = 0;
	r->at_eof = false;
	r->told_incomplete = r->finished = r->ended_line = false;
	if (r->format->type->reset)
		r->format->type->reset(r->format);
	return 0;
}

/* Number of the line whose last byte, its end or not, lies before `behind`; 0 when
 * it cannot be told. */
static uint64_t line_before(const struct reader *r, uint64_t behind)
{
	char piece[4096];
	bool newlines = r->format->delimiter == '\n';
	uint64_t line = 1, pos = 0;
	char last = 0;

	if (!r->regular || r->format->type->binary || r->format->binary)
		return 0;
	while (pos + 1 < behind) {
		size_t want = (size_t)MIN(behind - 1 - pos, sizeof(piece));
		ssize_t n = pread(r->fd, piece, want, (off_t)pos);

		if (n <= 0)
			return 0;
		for (ssize_t i = 0; i < n; last = piece[i++])
			line += piece[i] == r->format->delimiter ||
				(newlines && last == '\r' && piece[i] != '\n');
		pos += (uint64_t)n;
	}
	return line;
}

/* `behind`: offset behind the bad line. */
static void report_malformed(struct reader *r, uint64_t behind)
{
	uint64_t line;

	if (++r->malformed > REPORTS_MAX)
		return;
	line = line_before(r, behind);
	if (line)
		log_warn("%s:%ju: %s; line ignored", r->path, (uintmax_t)line,
			 format_error(r->format));
	else
		log_warn("%s: before byte %ju: %s; ignored", r->path,
			 (uintmax_t)behind, format_error(r->format));
	if (r->malformed == REPORTS_MAX)
		log_warn("%s: further malformed lines or records are counted, not shown",
			 r->path);
}

/* Makes room behind the unread bytes. */
static int make_room(struct reader *r)
{
	char *buf;

	if (r->start > 0) {
		memmove(r->buf, r->buf + r->start, r->end - r->start);
		r->end -= r->start;
		r->start = 0;
	}
	/* One byte stays free for the delimiter that a last line may lack. */
	if (r->end + 1 < r->size)
		return 0;
	buf = realloc(r->buf, 2 * r->size);
	if (!buf) {
		log_error("%s: no memory for a line longer than %zu bytes",
			  r->path, r->size);
		return -ENOMEM;
	}
	r->buf = buf;
	r->size *= 2;
	return 0;
}

/* A pipe without a writer yet looks to read() like a pipe that has ended. */
static bool awaits_writer(const struct reader *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };

	return r->fifo && r->offset == 0 && r->end == 0 &&
	       poll(&p, 1, 0) >= 0 && !(p.revents & POLLHUP);
}

/* Reads more bytes. 1: some came, 0: none (at_eof tells why). */
static int fill(struct reader *r)
{
	ssize_t n;
	int ret = make_room(r);

	if (ret)
		return ret;
	do {
		n = read(r->fd, r->buf + r->end, r->size - 1 - r->end);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0) {
		ret = -errno;
		log_error("cannot read '%s': %s", r->path, strerror(-ret));
		return ret;
	}
	r->at_eof = n == 0 && !awaits_writer(r);
	r->end += (size_t)n;
	return n > 0;
}

/* Scans what lies in the buffer; negative errno only from the format. */
static int scan(struct reader *r, struct sample *smps[], unsigned cnt)
{
	const struct format_type *type = r->format->type;
	size_t used;
	int ret;

	for (;;) {
		ret = type->scan(r->format, r->buf + r->start,
				 r->end - r->start, &used, smps, cnt);
		r->start += used;
		r->offset += used;
		if (ret != -EBADMSG)
			return ret;
		report_malformed(r, r->offset);
	}
}

/* The file ends, and what is left of it is no whole sample. */
static void report_incomplete(struct reader *r)
{
	if (r->told_incomplete)
		return;
	r->told_incomplete = true;
	r->malformed++;
	log_warn("%s: the file ends within a sample: its last %zu bytes are ignored",
		 r->path, r->end - r->start);
}

/* All is read: is it as long as it says itself? */
static void finish(struct reader *r)
{
	if (r->finished)
		return;
	r->finished = true;
	if (r->format->type->finish && r->format->type->finish(r->format))
		log_warn("%s: %s", r->path, format_error(r->format));
}

int reader_next(struct reader *r, struct sample *smps[], unsigned cnt,
		bool complete)
{
	int ret;

	for (;;) {
		if (r->start < r->end) {
			ret = scan(r, smps, cnt);
			if (ret)
				return ret;
		}
		ret = fill(r);
		if (ret < 0)
			return ret;
		if (ret > 0)
			continue;
		if (!r->at_eof || !complete)
			return 0;
		if (r->start == r->end) {
			finish(r);
			return 0;
		}
		/* Also when the end of a line did not end it: names of a CSV
		 * file with an open quote. */
		if (!r->format->type->lines || r->format->binary || r->ended_line) {
			report_incomplete(r);
			finish(r);
			return 0;
		}
		/* The last line lacks its delimiter; make_room() left a byte. */
		r->buf[r->end++] = r->format->delimiter;
		r->ended_line = true;
	}
}
