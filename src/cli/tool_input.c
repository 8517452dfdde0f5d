/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats of the command line, and reading samples; see tool_stream.h. */
#define LOG_ROOM tool_room
#include "cli/tool_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/container_of.h"
#include "util/log.h"

#define READ_SIZE ((size_t)256 << 10)
/* If no sample ends within this length, the input is in another format. */
#define SAMPLE_SIZE_MAX ((size_t)64 << 20)

int tool_format_open(struct tool_format *f, char **argv, int opt,
		     const char *text, struct signal_list *signals)
{
	char option[] = { '-', (char)opt, '\0' };
	json_t *given = text[0] == '{' ? NULL : json_string(text);
	char *quoted = given ? json_dumps(given, JSON_ENCODE_ANY) : NULL;
	char *whole = NULL;
	int ret = -ENOMEM;

	json_decref(given);
	memset(f, 0, sizeof(*f));
	if (asprintf(&whole, "{\"%s\": %s}", option,
		     text[0] == '{' ? text : quoted ? quoted : "\"\"") >= 0)
		ret = config_load_text(argv[0], whole, strlen(whole),
				       &f->config);
	free(whole);
	free(quoted);
	if (!ret)
		ret = format_new(&f->format, f->config,
				 json_object_get(config_root(f->config), option),
				 NULL, signals);
	if (!ret)
		return CLI_OK;
	tool_format_close(f);
	return CLI_USAGE;
}

void tool_format_close(struct tool_format *f)
{
	format_destroy(f->format);
	config_destroy(f->config);
	memset(f, 0, sizeof(*f));
}

bool tool_format_can_scan(char **argv, const struct tool_format *f)
{
	if (f->format->type->scan)
		return true;
	fprintf(stderr, "%s: format '%s' cannot be read\n", argv[0],
		f->format->type->name);
	return false;
}

int tool_input_open(struct tool_input *in, const char *path,
		    struct format *format)
{
	bool std = !strcmp(path, "-");
	struct stat st;
	int err;

	memset(in, 0, sizeof(*in));
	in->name = std ? "stdin" : path;
	in->format = format;
	in->fd = std ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0 || fstat(in->fd, &st)) {
		err = errno;
		log_error("cannot open '%s' for reading: %s", in->name,
			  strerror(err));
		goto err_close;
	}
	if (S_ISDIR(st.st_mode)) {
		err = EISDIR;
		log_error("cannot read '%s': it is a folder", in->name);
		goto err_close;
	}
	in->size = READ_SIZE;
	in->buf = malloc(in->size);
	if (!in->buf) {
		err = ENOMEM;
		log_error("no memory for %zu bytes of input", in->size);
		goto err_close;
	}
	if (format->type->reset)
		format->type->reset(format);
	return 0;

err_close:
	tool_input_close(in);
	return -err;
}

void tool_input_close(struct tool_input *in)
{
	free(in->buf);
	in->buf = NULL;
	if (in->fd > STDIN_FILENO)
		close(in->fd);
	in->fd = -1;
}

/* A text format may contain binary data, which its header announces. */
static bool is_binary(const struct tool_input *in)
{
	return in->format->type->binary || in->format->binary;
}

/* Number of delimiters in buf[0..end). */
static uint64_t count_lines(const struct tool_input *in, size_t end)
{
	const char *at = in->buf, *stop = in->buf + end;
	uint64_t n = 0;

	if (is_binary(in))
		return 0;
	while ((at = memchr(at, in->format->delimiter, (size_t)(stop - at)))) {
		n++;
		if (++at == stop)
			break;
	}
	return n;
}

/* Reports the line of the last byte that was taken. */
static int report_malformed(struct tool_input *in)
{
	size_t last = in->start ? in->start - 1 : 0;

	if (is_binary(in))
		log_error("%s: before byte %ju: %s", in->name,
			  (uintmax_t)(in->offset + in->start),
			  format_error(in->format));
	else
		log_error("%s:%ju: %s", in->name,
			  (uintmax_t)(in->lines + 1 + count_lines(in, last)),
			  format_error(in->format));
	return -EBADMSG;
}

int tool_input_scan(struct tool_input *in, struct sample *smps[], unsigned cnt)
{
	size_t used;
	int ret;

	if (in->start == in->end)
		return 0;
	ret = in->format->type->scan(in->format, in->buf + in->start,
				     in->end - in->start, &used, smps, cnt);
	in->start += used;
	return ret == -EBADMSG ? report_malformed(in) : ret;
}

/* Makes room after the unread bytes. */
static int make_room(struct tool_input *in)
{
	char *buf;

	if (in->start > 0) {
		in->lines += count_lines(in, in->start);
		in->offset += in->start;
		memmove(in->buf, in->buf + in->start, in->end - in->start);
		in->end -= in->start;
		in->start = 0;
	}
	/* One byte stays free for a delimiter that the last line may lack. */
	if (in->end + 1 < in->size)
		return 0;
	if (in->size >= SAMPLE_SIZE_MAX) {
		log_error("%s:%ju: no end of a sample in %zu MiB; is it in format %s?",
			  in->name, (uintmax_t)in->lines + 1,
			  SAMPLE_SIZE_MAX >> 20, in->format->type->name);
		return -EBADMSG;
	}
	buf = realloc(in->buf, 2 * in->size);
	if (!buf) {
		log_error("%s: no memory for a sample longer than %zu bytes",
			  in->name, in->size);
		return -ENOMEM;
	}
	in->buf = buf;
	in->size *= 2;
	return 0;
}

/* At the end: does the input have the length that its header gives? */
static int check_length(struct tool_input *in)
{
	int ret = in->format->type->finish ?
			  in->format->type->finish(in->format) : 0;

	if (ret == -EBADMSG) {
		log_error("%s: %s", in->name, format_error(in->format));
		return ret;
	}
	/* Only a warning: no sample is lost, and some devices count one too few. */
	if (ret)
		log_warn("%s: %s", in->name, format_error(in->format));
	return 0;
}

/* Handles the bytes that are left at the end of the input. */
static int finish(struct tool_input *in)
{
	static const char blanks[] = " \t\r\n";
	bool blank = !is_binary(in);

	if (in->start == in->end)
		return check_length(in);
	if (in->format->type->lines && !is_binary(in) && !in->at_eof) {
		in->at_eof = true;
		in->buf[in->end++] = in->format->delimiter;
		return 1;
	}
	for (size_t i = in->start; i < in->end && blank; i++)
		blank = in->buf[i] && strchr(blanks, in->buf[i]);
	if (blank)
		return check_length(in);
	log_error("%s: ends within a sample, %zu bytes are left", in->name,
		  in->end - in->start);
	check_length(in);
	return -EBADMSG;
}

int tool_input_fill(struct tool_input *in)
{
	ssize_t n;
	int ret = make_room(in);

	if (ret)
		return ret;
	for (;;) {
		struct pollfd p[] = {
			{ .fd = in->fd, .events = POLLIN },
			{ .fd = tool_stop_fd(), .events = POLLIN },
		};

		/* poll(), because the descriptor may be non-blocking. */
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			break;
		if (tool_stopping())
			return -EINTR;
		if (!p[0].revents)
			continue;
		n = read(in->fd, in->buf + in->end, in->size - 1 - in->end);
		if (n > 0) {
			in->end += (size_t)n;
			return 1;
		}
		if (n == 0)
			return finish(in);
		if (errno != EINTR && errno != EAGAIN)
			break;
	}
	ret = -errno;
	log_error("cannot read '%s': %s", in->name, strerror(-ret));
	return ret;
}

int tool_input_next(struct tool_input *in, struct sample *smps[], unsigned cnt)
{
	for (;;) {
		int ret = tool_input_scan(in, smps, cnt);

		if (ret)
			return ret;
		ret = tool_input_fill(in);
		if (ret <= 0)
			return ret;
	}
}
