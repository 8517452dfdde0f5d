/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of the kernel below a root folder; see tree.h. */
#include "bench/tune/tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (4u << 20)

char *tune_tree_path(const struct tune_tree *t, const char *path)
{
	char *full;

	return asprintf(&full, "%s%s", t->root, path) < 0 ? NULL : full;
}

bool tune_tree_exists(const struct tune_tree *t, const char *path)
{
	char *full = tune_tree_path(t, path);
	bool there = full && !access(full, F_OK);

	free(full);
	return there;
}

/* Files of the kernel have no size: reads until the end. */
static int read_all(int fd, char **text)
{
	size_t room = 4096, used = 0;
	char *buf = malloc(room);

	while (buf) {
		ssize_t n = read(fd, buf + used, room - used - 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || used + (size_t)n > TEXT_MAX) {
			int err = n < 0 ? -errno : -EFBIG;

			free(buf);
			return err;
		}
		used += (size_t)n;
		buf[used] = '\0';
		if (!n) {
			*text = buf;
			return 0;
		}
		if (room - used < 2048) {
			char *more = realloc(buf, room *= 2);

			if (!more)
				free(buf);
			buf = more;
		}
	}
	return -ENOMEM;
}

int tune_tree_read(const struct tune_tree *t, const char *path, char **text)
{
	char *full = tune_tree_path(t, path);
	struct stat st;
	int fd, err;

	if (!full)
		return -ENOMEM;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	err = fd < 0 ? -errno : 0;
	free(full);
	if (err)
		return err;
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		*text = strdup("");
		err = *text ? 0 : -ENOMEM;
	} else {
		err = read_all(fd, text);
	}
	close(fd);
	return err;
}

int tune_tree_put(const struct tune_tree *t, const char *path, const char *text)
{
	char *full = tune_tree_path(t, path);
	int fd = full ? open(full, O_WRONLY | O_TRUNC | O_CLOEXEC) : -1;
	ssize_t length = (ssize_t)strlen(text), n;
	int err = !full ? -ENOMEM : fd < 0 ? -errno : 0;

	free(full);
	if (err)
		return err;
	do
		n = write(fd, text, (size_t)length);
	while (n < 0 && errno == EINTR);
	err = n < 0 ? -errno : n != length ? -EIO : 0;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

char *tune_trim(char *text)
{
	size_t length = strlen(text), skip = 0;

	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
	while (isspace((unsigned char)text[skip]))
		skip++;
	memmove(text, text + skip, length - skip + 1);
	return text;
}

int tune_tree_line(const struct tune_tree *t, const char *path, char *to, size_t size)
{
	char *text;
	int err = tune_tree_read(t, path, &text);

	to[0] = '\0';
	if (err)
		return err;
	text[strcspn(text, "\n")] = '\0';
	snprintf(to, size, "%s", tune_trim(text));
	free(text);
	return 0;
}

int tune_tree_value(const struct tune_tree *t, const char *path, const char *name, char *to,
		    size_t size)
{
	size_t length = strlen(name);
	char *text, *at;
	int err = tune_tree_read(t, path, &text);

	to[0] = '\0';
	if (err)
		return err;
	for (at = text; *at && (strncmp(at, name, length) || !strchr(" \t:=", at[length]));)
		at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
	err = *at ? 0 : -ENOENT;
	if (!err) {
		at += length + strspn(at + length, " \t:=\"");
		at[strcspn(at, "\n\"")] = '\0';
		snprintf(to, size, "%s", tune_trim(at));
	}
	free(text);
	return err;
}

int tune_tree_number(const struct tune_tree *t, const char *path, long long *value)
{
	char line[32], *end;
	int err = tune_tree_line(t, path, line, sizeof(line));
	long long number;

	if (err)
		return err;
	errno = 0;
	number = strtoll(line, &end, 10);
	if (end == line || *end || errno)
		return -EINVAL;
	*value = number;
	return 0;
}

long long tune_tree_amount(const struct tune_tree *t, const char *path, const char *name)
{
	char text[32];

	return tune_tree_value(t, path, name, text, sizeof(text)) ? -1 : strtoll(text, NULL, 10);
}

bool tune_ticks_parse(const char *line, struct tune_ticks *out)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal = 0;
	int n = sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice,
		       &system, &idle, &iowait, &irq, &softirq, &steal);

	out->busy = user + nice + system + irq + softirq;
	out->stolen = steal;
	out->all = out->busy + steal + idle + iowait;
	return n >= 7;
}

static int compare_int(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The number behind the prefix; -1: there is another thing. */
static int number_of(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);
	char *end;
	long n;

	if (strncmp(name, prefix, length) || !isdigit((unsigned char)name[length]))
		return -1;
	n = strtol(name + length, &end, 10);
	return *end || n > 1 << 24 ? -1 : (int)n;
}

int tune_tree_numbers(const struct tune_tree *t, const char *dir, const char *prefix,
		      int **numbers, size_t *count)
{
	char *full = tune_tree_path(t, dir);
	DIR *d = full ? opendir(full) : NULL;
	struct dirent *e;
	int err = full ? 0 : -ENOMEM;

	*numbers = NULL;
	*count = 0;
	free(full);
	while (d && !err && (e = readdir(d))) {
		int n = number_of(e->d_name, prefix);
		int *more = n < 0 ? NULL : realloc(*numbers, (*count + 1) * sizeof(int));

		if (more) {
			*numbers = more;
			more[(*count)++] = n;
		} else if (n >= 0) {
			err = -ENOMEM;
		}
	}
	if (d)
		closedir(d);
	if (*count)
		qsort(*numbers, *count, sizeof(int), compare_int);
	return err;
}

void tune_chosen(const char *text, char *to, size_t size)
{
	const char *open = strchr(text, '['), *shut = open ? strchr(open, ']') : NULL;

	if (shut) {
		snprintf(to, size, "%.*s", (int)(shut - open - 1), open + 1);
		return;
	}
	snprintf(to, size, "%.*s", (int)strcspn(text, "\n"), text);
	tune_trim(to);
}

bool tune_has_word(const char *text, const char *word, const char *between)
{
	size_t length = strlen(word), n;

	for (; *text; text += n) {
		text += strspn(text, between);
		n = strcspn(text, between);
		if (n && n == length && !memcmp(text, word, n))
			return true;
	}
	return false;
}
