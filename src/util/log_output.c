/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of a gateway's `logging` group: levels of rooms, a file, the system's log,
 * the form of a line.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/bounded_write.h"
#include "util/container_of.h"
#include "util/log_private.h"

struct log_output {
	struct log_output *older; /* not freed: a thread may be using it */
	int fd;                   /* -1: no file */
	bool syslog;
	char *file, *pattern;     /* NULL: none */
	size_t rule_count;
	struct log_rule rules[];
};

static struct log_output *_Atomic current;
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

struct log_output *log_output_current(void)
{
	return atomic_load_explicit(&current, memory_order_acquire);
}

static bool equal_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool is_same(const struct log_output *o, const struct log_settings *s)
{
	if (!o || o->syslog != s->syslog || !equal_text(o->file, s->file) ||
	    !equal_text(o->pattern, s->pattern) ||
	    o->rule_count != s->rule_count)
		return false;
	for (size_t i = 0; i < s->rule_count; i++)
		if (strcmp(o->rules[i].room, s->rules[i].room) ||
		    o->rules[i].level != s->rules[i].level)
			return false;
	return true;
}

static void destroy(struct log_output *o)
{
	for (size_t i = 0; i < o->rule_count; i++)
		free((char *)o->rules[i].room);
	if (o->fd >= 0)
		close(o->fd);
	free(o->file);
	free(o->pattern);
	free(o);
}

static int make(struct log_output **out, const struct log_settings *s)
{
	struct log_output *o =
		calloc(1, sizeof(*o) + s->rule_count * sizeof(o->rules[0]));
	int ret = -ENOMEM;

	if (!o)
		return -ENOMEM;
	o->fd = -1;
	o->syslog = s->syslog;
	o->rule_count = s->rule_count;
	for (size_t i = 0; i < s->rule_count; i++) {
		o->rules[i].level = s->rules[i].level;
		o->rules[i].room = strdup(s->rules[i].room);
		if (!o->rules[i].room)
			goto err;
	}
	o->file = s->file ? strdup(s->file) : NULL;
	o->pattern = s->pattern ? strdup(s->pattern) : NULL;
	if ((s->file && !o->file) || (s->pattern && !o->pattern))
		goto err;
	if (s->file) {
		o->fd = open(s->file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			     0644);
		ret = -errno;
		if (o->fd < 0)
			goto err;
	}
	*out = o;
	return 0;
err:
	destroy(o);
	return ret;
}

int log_configure(const struct log_settings *s)
{
	static const struct log_settings none;
	struct log_output *old, *o = NULL;
	int ret = 0;

	if (!s)
		s = &none;
	pthread_mutex_lock(&change);
	old = atomic_load(&current);
	if (is_same(old, s) || (!old && is_same(&(struct log_output){ .fd = -1 }, s)))
		goto out;
	ret = make(&o, s);
	if (ret)
		goto out;
	o->older = old;
	atomic_store_explicit(&current, o, memory_order_release);
	log_level_update();
out:
	pthread_mutex_unlock(&change);
	return ret;
}

static bool matches(const char *glob, const char *room)
{
	const char *slash = strrchr(room, '/');

	return !fnmatch(glob, room, 0) || (slash && !fnmatch(glob, slash + 1, 0));
}

int log_output_level(const struct log_output *o, const char *room, int base)
{
	for (size_t i = o ? o->rule_count : 0; i-- > 0;)
		if (matches(o->rules[i].room, room))
			return (int)o->rules[i].level;
	return base;
}

int log_output_level_max(const struct log_output *o)
{
	int most = LOG_OFF;

	for (size_t i = 0; o && i < o->rule_count; i++)
		most = MAX(most, (int)o->rules[i].level);
	return most;
}

const char *log_pattern_check(const char *pattern)
{
	for (const char *p = pattern; (p = strchr(p, '%')); p += 2)
		if (!p[1] || !strchr("vnlLYmdHMSTefFPt^$%", p[1]))
			return p;
	return NULL;
}

static size_t format_item(char item, enum log_level level, const char *room,
			  const char *message, const struct timespec *now,
			  char *to, size_t size)
{
	const char *name = log_level_names[level];
	const char form[] = { '%', item, '\0' };
	struct tm tm;
	int n = 0;

	switch (item) {
	case 'v': n = snprintf(to, size, "%s", message); break;
	case 'n': n = snprintf(to, size, "%s", room); break;
	case 'l': n = snprintf(to, size, "%s", name); break;
	case 'L': n = snprintf(to, size, "%c", name[0] - 'a' + 'A'); break;
	case 'e': n = snprintf(to, size, "%03ld", now->tv_nsec / 1000000); break;
	case 'f': n = snprintf(to, size, "%06ld", now->tv_nsec / 1000); break;
	case 'F': n = snprintf(to, size, "%09ld", now->tv_nsec); break;
	case 'P': n = snprintf(to, size, "%d", (int)getpid()); break;
	case 't': n = snprintf(to, size, "%ld", (long)syscall(SYS_gettid)); break;
	case '%': n = snprintf(to, size, "%%"); break;
	case '^':
	case '$': break;
	default:
		localtime_r(&now->tv_sec, &tm);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* one of a few letters */
		return strftime(to, size, form, &tm);
#pragma GCC diagnostic pop
	}
	return MIN((size_t)n, size - 1);
}

bool log_output_format(const struct log_output *o, enum log_level level,
		       const char *room, const char *message,
		       const struct timespec *now, char *line, size_t size)
{
	const char *p = o ? o->pattern : NULL;
	size_t len = 0;

	if (!p)
		return false;
	for (; *p && len + 1 < size; p++) {
		if (*p == '%' && p[1])
			len += format_item(*++p, level, room, message, now,
					   line + len, size - len);
		else
			line[len++] = *p;
	}
	line[len] = '\0';
	return true;
}

void log_output_write(const struct log_output *o, enum log_level level,
		      const char *line, size_t len)
{
	if (!o)
		return;
	/* Does not wait: neither a full disk nor a pipe without a reader may stop a gateway. */
	if (o->fd >= 0)
		bounded_write(o->fd, line, len, 0);
	if (o->syslog) {
		char text[1024];

		snprintf(text, sizeof(text), "%.*s", (int)len - 1, line);
		log_syslog_write((int)level, text);
	}
}
