/* SPDX-License-Identifier: BSD-2-Clause */
/* How a recording names its signals. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/report/recording.h"

#define HEADER_BYTES 65536
#define NAMES_MAX 4096

/* Fields of a header that are no signals. */
static bool is_of_sample(const char *field)
{
	static const char *const names[] = { "secs", "nsecs", "offset", "sequence" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(field, names[i]))
			return true;
	return !strncmp(field, "seconds", strlen("seconds"));
}

/* "voltage[V]", which is changed. */
static bool set_signal(struct signal *s, char *field)
{
	size_t n = strlen(field);
	char *bracket = n && field[n - 1] == ']' ? strrchr(field, '[') : NULL;

	if (bracket) {
		field[n - 1] = '\0';
		*bracket = '\0';
		s->unit = strdup(bracket + 1);
		if (!s->unit)
			return false;
	}
	free(s->name);
	s->name = strdup(field);
	return s->name;
}

/* Of the line "# secs,nsecs,offset,sequence,voltage[V]" that text formats write; NULL: the
 * text begins with something else. */
static struct signal_list *of_comment(char *text, char separator)
{
	char *line = text, end[] = { separator, '\0' }, *field, *names[NAMES_MAX];
	struct signal_list *l;
	unsigned count = 0;
	bool ok = true;

	if (*line != '#' || !strchr(line, '\n'))
		return NULL;
	line[strcspn(line, "\r\n")] = '\0';
	line += 1 + strspn(line + 1, " ");
	while (count < NAMES_MAX && (field = strsep(&line, end)))
		if (!is_of_sample(field))
			names[count++] = field;
	l = count ? signal_list_new(count, SIGNAL_FLOAT) : NULL;
	for (unsigned i = 0; l && i < count && ok; i++)
		ok = set_signal(&l->signals[i], names[i]);
	if (ok)
		return l;
	signal_list_put(l);
	return NULL;
}

struct signal_list *recording_names(const char *path, struct format *format)
{
	char *text = calloc(1, HEADER_BYTES + 1);
	struct signal_list *l = NULL;
	int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd >= 0 ? read(fd, text, HEADER_BYTES) : -1;

	if (n > 0 && format->type->names)
		l = format->type->names(format, text, (size_t)n);
	if (n > 0 && !l && format->type->lines)
		l = of_comment(text, format->separator);
	if (fd >= 0)
		close(fd);
	free(text);
	if (format->type->reset)
		format->type->reset(format);
	return l;
}
