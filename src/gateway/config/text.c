/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of a configuration before it is parsed: includes are put in, ${...}
 * outside of strings is replaced, and every resulting line remembers the file
 * and line that it came from.
 */
#include "gateway/config/tree.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/container_of.h"

#define INCLUDE_DEPTH_MAX 10

unsigned config_file_add(struct config *c, const char *name)
{
	char **files = realloc(c->files,
			       (c->file_count + 1) * sizeof(*files));
	char *copy = strdup(name);

	if (files)
		c->files = files;
	if (!files || !copy) {
		free(copy);
		c->no_memory = true;
		return 0;
	}
	files[c->file_count] = copy;
	return c->file_count++;
}

size_t config_text_mark(const char *text, size_t len)
{
	return len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

int config_text_read(const char *path, bool only_regular, char **text,
		     size_t *len)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC |
						       (only_regular ? O_NONBLOCK : 0)) :
				     dup(STDIN_FILENO);
	size_t capacity = 1 << 16, used = 0;
	struct stat st;
	char *buf = NULL;
	ssize_t n;
	int ret;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		ret = -errno;
		goto err;
	}
	ret = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (S_ISDIR(st.st_mode) || (only_regular && !S_ISREG(st.st_mode)))
		goto err;
	for (;;) {
		char *more = !buf || used == capacity ?
				     realloc(buf, capacity *= 2) : buf;

		ret = more ? -EFBIG : -ENOMEM;
		if (more)
			buf = more;
		if (!more || used > CONFIG_TEXT_MAX)
			goto err;
		n = read(fd, buf + used, capacity - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			ret = -errno;
			goto err;
		}
		if (n == 0)
			break;
		used += (size_t)n;
	}
	close(fd);
	*len = used - config_text_mark(buf, used);
	memmove(buf, buf + used - *len, *len);
	*text = buf;
	return 0;
err:
	free(buf);
	close(fd);
	return ret;
}

/* Length of the blank or comment at p, 0 when there is none. */
static size_t comment_length(const char *p, const char *end)
{
	const char *q = p;

	if (*p == '#' || (end - p >= 2 && p[0] == '/' && p[1] == '/')) {
		while (q < end && *q != '\n')
			q++;
		return (size_t)(q - p);
	}
	if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
		q = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);
		return (size_t)((q ? q + 2 : end) - p);
	}
	return 0;
}

bool config_text_is_json(const char *text, size_t len)
{
	const char *p = text, *end = text + len;

	while (p < end) {
		size_t n = strchr(" \t\r\n\f", *p) && *p ?
				   1 : comment_length(p, end);

		if (!n)
			return *p == '{' || *p == '[';
		p += n;
	}
	return false;
}

void config_text_put(struct config *c, const char *s, size_t n)
{
	if (c->text_len + n + 1 > c->text_capacity) {
		size_t capacity = MAX(c->text_capacity * 2,
				      c->text_len + n + 4096);
		char *text = realloc(c->text, capacity);

		if (!text) {
			c->no_memory = true;
			return;
		}
		c->text = text;
		c->text_capacity = capacity;
	}
	memcpy(c->text + c->text_len, s, n);
	c->text_len += n;
	c->text[c->text_len] = '\0';
}

/* The line that now begins in the expanded text stood at file:line. */
void config_text_begin_line(struct config *c, unsigned file, unsigned line)
{
	if (c->line_count == c->line_capacity) {
		size_t capacity = c->line_capacity ? c->line_capacity * 2 : 256;
		struct config_line *lines =
			reallocarray(c->lines, capacity, sizeof(*lines));

		if (!lines) {
			c->no_memory = true;
			return;
		}
		c->lines = lines;
		c->line_capacity = capacity;
	}
	c->lines[c->line_count++] =
		(struct config_line){ .file = file, .line = line };
}

/* Copies text that needs no change, following its line ends. */
static void copy(struct config *c, unsigned file, unsigned *line,
		 const char *p, size_t n)
{
	const char *end = p + n;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *stop = nl ? nl + 1 : end;

		config_text_put(c, p, (size_t)(stop - p));
		p = stop;
		if (nl)
			config_text_begin_line(c, file, ++*line);
	}
}

/* The same number of lines, and nothing on them. */
static void blank_out(struct config *c, unsigned file, unsigned *line,
		      const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		copy(c, file, line, p[i] == '\n' ? "\n" : " ", 1);
}

/* A comma behind the last entry, which people leave there and neither of the
 * parsers takes. */
static bool is_last_comma(const char *p, const char *end)
{
	if (*p++ != ',')
		return false;
	while (p < end) {
		size_t n = strchr(" \t\r\n\f", *p) && *p ?
				   1 : comment_length(p, end);

		if (!n)
			return *p == ']' || *p == ')' || *p == '}';
		p += n;
	}
	return false;
}

/* True when the text reads as a number, a boolean or a whole structure, so
 * that it may stand without quotes. */
static bool stands_alone(const char *s)
{
	size_t len = strlen(s);
	char *end;

	if (!len)
		return false;
	if (strchr("\"{[(", *s))
		return true;
	if (!strcasecmp(s, "true") || !strcasecmp(s, "false"))
		return true;
	if (strspn(s, "+-.0123456789abcdefABCDEFxXL") != len)
		return false;
	strtod(s, &end);
	return !strcmp(end, "") || !strcmp(end, "L") || !strcmp(end, "LL");
}

/* Length of the name or number at p, 0 when there is neither. */
static size_t word_length(const char *p, const char *end)
{
	const char *q = p;

	if (isalnum((unsigned char)*p) || *p == '_' || *p == '*' || *p == '-')
		while (q < end && (isalnum((unsigned char)*q) ||
				   strchr("_*-", *q)) && *q)
			q++;
	return (size_t)(q - p);
}

/*
 * libconfig cuts a whole number that does not fit into 32 bits, unless it ends
 * in L. 1: that L is missing; 0: nothing to do; -ERANGE: beyond 64 bits.
 */
static int long_suffix(const char *p, size_t n, const char *end)
{
	char text[32], *stop;
	long long value;

	if (n >= sizeof(text) && strspn(p, "-0123456789") >= n)
		return -ERANGE;
	if (n < 8 || n >= sizeof(text) || (p + n < end && p[n] == '.') ||
	    !(isdigit((unsigned char)*p) || *p == '-'))
		return 0;
	memcpy(text, p, n);
	text[n] = '\0';
	errno = 0;
	value = strtoll(text, &stop, strncasecmp(text, "0x", 2) ? 10 : 16);
	if (errno && (!*stop || !strcmp(stop, "L")))
		return -ERANGE;
	return !*stop && (value > INT32_MAX || value < INT32_MIN);
}

/* Puts in the value of a ${...} that stands outside of strings. */
static void put_value(struct config *c, const char *value, bool json)
{
	bool quote = !stands_alone(value);

	if (quote)
		config_text_put(c, "\"", 1);
	for (const char *p = value; *p; p++) {
		/* The line map knows nothing of lines inside a value. */
		if (*p == '\n' || *p == '\r')
			config_text_put(c, " ", 1);
		else if (quote && (*p == '"' || *p == '\\'))
			config_text_put(c, (char[]){ '\\', *p }, 2);
		else
			config_text_put(c, p, 1);
	}
	if (quote)
		config_text_put(c, "\"", 1);
	else if (!json && long_suffix(value, strlen(value),
				      value + strlen(value)) == 1)
		config_text_put(c, "L", 1);
}

static size_t string_length(const char *p, const char *end)
{
	const char *q = p + 1;

	while (q < end && *q != '"')
		q += *q == '\\' && q + 1 < end ? 2 : 1;
	return (size_t)(MIN(q + 1, end) - p);
}

static int expand(struct config *c, unsigned file, const char *text,
		  size_t len, bool json, unsigned depth);

/* The name of a file with its ${...} put in; false (and said) when one cannot be,
 * or it is too long. */
static bool include_name(struct config *c, unsigned file, unsigned line,
			 const char *p, const char *end, char *name, size_t size)
{
	char problem[256];
	size_t used = 0;

	while (p < end && used < size) {
		char *value;

		if (end - p < 2 || p[0] != '$' || p[1] != '{') {
			name[used++] = *p++;
			continue;
		}
		value = config_env_value(&p, end, problem, sizeof(problem));
		if (!value) {
			config_error_in(c, file, line, "%s", problem);
			return false;
		}
		used += (size_t)snprintf(name + used, size - used, "%s", value);
		free(value);
	}
	if (used >= size) {
		config_error_in(c, file, line, "the name of the file is too long");
		return false;
	}
	name[used] = '\0';
	return true;
}

/* Puts in the file at `path`, as whole lines; false (and said) on failure. */
static bool include_file(struct config *c, unsigned file, unsigned line,
			 const char *name, const char *path, unsigned depth)
{
	char *text;
	size_t len;
	int ret = config_text_read(path, true, &text, &len);

	if (ret) {
		config_error_in(c, file, line, "@include \"%s\": cannot read %s: %s",
				name, path,
				ret == -EINVAL ? "not a regular file" :
						 strerror(-ret));
		return false;
	}
	c->line_count--; /* nothing but blanks stands on it yet */
	expand(c, config_file_add(c, path), text, len, false, depth + 1);
	free(text);
	config_text_put(c, "\n", 1);
	config_text_begin_line(c, file, line);
	return true;
}

/* All files of a pattern in alphabetical order. One that matches nothing is a
 * name, which will be said to be missing. */
static void include_all(struct config *c, unsigned file, unsigned line,
			const char *name, const char *path, unsigned depth)
{
	glob_t found;

	if (!strpbrk(name, "*?[") ||
	    glob(path, GLOB_NOCHECK, NULL, &found)) {
		include_file(c, file, line, name, path, depth);
		return;
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (!include_file(c, file, line, name, found.gl_pathv[i], depth))
			break;
	globfree(&found);
}

/* Where the file p..end is, as text of file:line names it; false when that was
 * said to be impossible. */
static bool include_path(struct config *c, unsigned file, unsigned line,
			 const char *p, const char *end, unsigned depth,
			 char name[512], char path[1024])
{
	const char *base = c->files[file], *slash = strrchr(base, '/');

	if (!include_name(c, file, line, p, end, name, 512))
		return false;
	if (name[0] == '/' || !slash)
		snprintf(path, 1024, "%s", name);
	else
		snprintf(path, 1024, "%.*s%s",
			 (int)MIN(slash - base + 1, 500), base, name);
	if (depth < INCLUDE_DEPTH_MAX)
		return true;
	config_error_in(c, file, line,
			"@include \"%s\": more than %d files deep, does a file include itself?",
			name, INCLUDE_DEPTH_MAX);
	return false;
}

/* `p` stands behind @include. Returns the text behind the directive. */
static const char *include(struct config *c, unsigned file, unsigned line,
			   const char *p, const char *end, unsigned depth)
{
	char name[512], path[1024];
	size_t n;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	n = p < end && *p == '"' ? string_length(p, end) : 0;
	if (n < 3 || n > sizeof(name) || p[n - 1] != '"' ||
	    memchr(p, '\n', n)) {
		config_error_in(c, file, line,
				"expected a file name: @include \"file\"");
		return end;
	}
	if (!include_path(c, file, line, p + 1, p + n - 1, depth, name, path))
		return depth < INCLUDE_DEPTH_MAX ? p + n : end;
	include_all(c, file, line, name, path, depth);
	return p + n;
}

/* A text of a JSON configuration that stands for the value in a file. */
#define JSON_INCLUDE "\"@include "

static bool is_key(const char *behind, const char *end)
{
	while (behind < end && strchr(" \t\r\n\f", *behind) && *behind)
		behind++;
	return behind < end && *behind == ':';
}

/* The values of several files as one: members and entries of each behind those of
 * the one before. */
struct joined {
	const char *first;  /* path of the first file, NULL before it */
	char kind;          /* '{' or '[' */
	size_t end;         /* where its closing bracket is */
	bool empty;         /* nothing between the brackets so far */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f';
}

/* The value that begins at c->text + start joins what is before it; false when it is
 * of another kind, or not complete. */
static bool join(struct config *c, struct joined *j, const char *path,
		 size_t start)
{
	size_t end = c->text_len, inner;
	char close;

	while (start < end && is_blank(c->text[start]))
		start++;
	while (end > start && is_blank(c->text[end - 1]))
		end--;
	if (!j->first)
		j->kind = start < end ? c->text[start] : '\0';
	close = j->kind == '{' ? '}' : ']';
	if (end - start < 2 || c->text[start] != j->kind ||
	    c->text[end - 1] != close)
		return false;
	inner = start + 1;
	while (is_blank(c->text[inner]))
		inner++;
	if (j->first) {
		c->text[j->end] = ' ';
		c->text[start] = j->empty || inner == end - 1 ? ' ' : ',';
		j->empty &= inner == end - 1;
	} else {
		j->first = path;
		j->empty = inner == end - 1;
	}
	j->end = end - 1;
	return true;
}

/* Puts in the value of the file at `path`, on lines of its own; false (and said) on
 * failure. */
static bool include_json_file(struct config *c, unsigned file, unsigned line,
			      const char *name, const char *path,
			      unsigned depth, struct joined *j)
{
	char *text = NULL;
	size_t len = 0, start;
	bool good = true;
	int ret = config_text_read(path, true, &text, &len);

	if (ret) {
		config_error_in(c, file, line, "@include %s: cannot read %s: %s",
				name, path,
				ret == -EINVAL ? "not a regular file" :
						 strerror(-ret));
		return false;
	}
	start = c->text_len;
	if (config_text_is_json(text, len)) {
		config_text_put(c, "\n", 1);
		expand(c, config_file_add(c, path), text, len, true, depth + 1);
	} else if (config_text_embed(c, path, text, len)) {
		config_error_in(c, file, line, "@include %s: cannot read %s",
				name, path);
		good = false;
	}
	free(text);
	config_text_put(c, "\n", 1);
	config_text_begin_line(c, file, line);
	/* The parser reports errors of a single file. */
	if (good && !join(c, j, path, start) && j->first) {
		config_error_in(c, file, line,
				"@include %s: %s and %s cannot be put together; expected complete files of one kind, groups or lists",
				name, j->first, path);
		good = false;
	}
	return good;
}

/* Puts the value in the place of p..end. Of several files that match a pattern, in
 * alphabetical order, it is one group with all members or one list with all entries.
 * Whatever is wrong is said, and null stands there. */
static void include_json(struct config *c, unsigned file, unsigned line,
			 const char *p, const char *end, unsigned depth)
{
	struct joined j = { .first = NULL };
	char name[512], path[1024];
	bool good = true;
	glob_t found;

	p += strlen(JSON_INCLUDE);
	if (!include_path(c, file, line, p, end - 1, depth, name, path)) {
		config_text_put(c, "null", 4);
		return;
	}
	if (!strpbrk(name, "*?[") || glob(path, GLOB_NOCHECK, NULL, &found)) {
		if (!include_json_file(c, file, line, name, path, depth, &j))
			config_text_put(c, "null", 4);
		return;
	}
	for (size_t i = 0; i < found.gl_pathc && good; i++)
		good = include_json_file(c, file, line, name,
					 found.gl_pathv[i], depth, &j);
	if (!good && !j.first)
		config_text_put(c, "null", 4);
	globfree(&found);
}

/* True when the text p..p+n was an include, or one that is none. */
static bool is_json_include(struct config *c, unsigned file, unsigned line,
			    const char *p, size_t n, const char *end,
			    unsigned depth)
{
	size_t len = strlen(JSON_INCLUDE);
	bool key = is_key(p + n, end);

	if (key && n == len && !memcmp(p, "\"@include\"", n))
		config_error_in(c, file, line,
				"in JSON an include is a value, \"key\": \"@include FILE\", which gets what is in the file");
	if (key || n <= len + 1 || memcmp(p, JSON_INCLUDE, len))
		return false;
	include_json(c, file, line, p, p + n, depth);
	return true;
}

static int expand(struct config *c, unsigned file, const char *text,
		  size_t len, bool json, unsigned depth)
{
	const char *p = text, *end = text + len;
	bool line_start = true;
	unsigned line = 1;
	char problem[256];
	int ret;

	config_text_begin_line(c, file, line);
	while (p < end && !c->no_memory) {
		size_t n = comment_length(p, end);
		const char *was = p;

		if ((n && json) || is_last_comma(p, end)) {
			n = n ? n : 1;
			blank_out(c, file, &line, p, n);
			p += n;
			continue;
		}

		if (*p == '"') {
			n = string_length(p, end);
			if (n < 2 || p[n - 1] != '"') {
				config_error_in(c, file, line,
						"the text that begins here has no closing '\"'");
				return -EINVAL;
			}
			if (json && is_json_include(c, file, line, p, n, end,
						    depth)) {
				if (c->text_len > CONFIG_TEXT_MAX)
					break;
				p += n;
				continue;
			}
		}
		if (!n && end - p >= 2 && p[0] == '$' && p[1] == '{') {
			char *value = config_env_value(&p, end, problem,
						       sizeof(problem));

			if (value)
				put_value(c, value, json);
			else
				config_error_in(c, file, line, "%s", problem);
			free(value);
			if (p == was)
				p += 2;
			line_start = false;
			continue;
		}
		if (!n && !json && line_start && end - p > 8 &&
		    !memcmp(p, "@include", 8)) {
			p = include(c, file, line, p + 8, end, depth);
			if (c->text_len > CONFIG_TEXT_MAX || p == end)
				break;
			line_start = false;
			continue;
		}
		if (!*p) {
			config_error_in(c, file, line,
					"a zero byte: this is not a text file");
			return -EINVAL;
		}
		line_start = *p == '\n' ||
			     (line_start && (*p == ' ' || *p == '\t'));
		if (!n && !json && (n = word_length(p, end))) {
			ret = long_suffix(p, n, end);
			if (ret < 0)
				config_error_in(c, file, line,
						"%.*s does not fit into 64 bits",
						(int)n, p);
			copy(c, file, &line, p, n);
			if (ret == 1 && (p == text || p[-1] != '.'))
				config_text_put(c, "L", 1);
			p += n;
			continue;
		}
		copy(c, file, &line, p, n ? n : 1);
		p += n ? n : 1;
	}
	if (c->text_len > CONFIG_TEXT_MAX) {
		config_error_in(c, file, line,
				"the configuration is larger than %u MiB",
				CONFIG_TEXT_MAX >> 20);
		return -EFBIG;
	}
	return 0;
}

int config_text_expand(struct config *c, unsigned file, const char *text,
		       size_t len, bool json)
{
	int ret;

	config_text_put(c, "", 0); /* never NULL */
	ret = expand(c, file, text, len, json, 0);
	if (c->no_memory)
		return -ENOMEM;
	if (ret)
		return ret;
	return c->errors ? -EINVAL : 0;
}
