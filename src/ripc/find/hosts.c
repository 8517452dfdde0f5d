/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/find/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ripc/wire/packet.h"
#include "util/same_file.h"

struct line {
	uint32_t id; /* 0: by name */
	char name[RIPC_NAME_MAX + 1];
	union address address;
};

struct table {
	struct line *lines;
	size_t count, room;
};

struct hosts {
	char *file;
	pthread_mutex_t lock;
	/* Under the lock. */
	struct table table;
	struct stat seen;
};

/* Cuts the next word off; NULL: no more. False in *ok: quotes without an end. */
static char *next_word(char **at, bool *quoted, bool *ok)
{
	char *s = *at, *word, *to;

	while (isspace((unsigned char)*s))
		s++;
	*quoted = *s == '"';
	if (!*s || *s == '#')
		return NULL;
	word = to = *quoted ? ++s : s;
	while (*s && (*quoted ? *s != '"' : !isspace((unsigned char)*s))) {
		if (*quoted && *s == '\\' && (s[1] == '"' || s[1] == '\\'))
			s++;
		*to++ = *s++;
	}
	*ok = *ok && (!*quoted || *s == '"');
	*at = *s ? s + 1 : s;
	*to = 0;
	return word;
}

static bool number(const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 0);
	return !*end && !errno && *out && *out <= max;
}

/* What is wrong with the line, or NULL. */
static const char *line_parse(char *text, struct line *line, bool *empty)
{
	bool quoted, unused, ok = true;
	char *who = next_word(&text, &quoted, &ok), *address, *port;
	uint64_t value;

	*empty = !who;
	if (!who)
		return NULL;
	address = next_word(&text, &unused, &ok);
	port = address ? next_word(&text, &unused, &ok) : NULL;
	if (!ok)
		return "no closing quotation mark";
	if (!port || next_word(&text, &unused, &ok))
		return "not of the form \"ID-or-name address port\"";
	*line = (struct line){ .id = 0 };
	if (!quoted && isdigit((unsigned char)*who)) {
		if (!number(who, UINT32_MAX, &value))
			return "the ID is not from 1 to 4294967295";
		line->id = (uint32_t)value;
	} else {
		if (!packet_name_valid(who, strlen(who)))
			return "the name is not 1 to 63 bytes of UTF-8 without control characters";
		memcpy(line->name, who, strlen(who) + 1);
	}
	if (!number(port, UINT16_MAX, &value))
		return "the port is not from 1 to 65535";
	if (!address_parse(address, (uint16_t)value, &line->address))
		return "not an IP address (names of hosts are not looked up)";
	return NULL;
}

static int table_add(struct table *t, const struct line *line)
{
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 16;
		struct line *more = reallocarray(t->lines, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->lines = more;
		t->room = room;
	}
	t->lines[t->count++] = *line;
	return 0;
}

static int lines_read(FILE *f, const char *file, struct table *t, char *why, size_t bytes)
{
	char *text = NULL;
	const char *wrong = NULL;
	size_t room = 0, number_of = 0;
	struct line line;
	bool empty;
	int ret = 0;
	ssize_t got;

	while (!ret && (got = getline(&text, &room, f)) >= 0) {
		number_of++;
		wrong = memchr(text, 0, (size_t)got) ? "a NUL byte" :
			line_parse(text, &line, &empty);
		if (!wrong && !empty && t->count == HOSTS_LINES_MAX)
			wrong = "too many lines";
		if (wrong) {
			snprintf(why, bytes, "%s:%zu: %s", file, number_of, wrong);
			ret = -EINVAL;
		} else if (!empty) {
			ret = table_add(t, &line);
		}
	}
	if (!ret && ferror(f))
		ret = -EIO;
	free(text);
	return ret;
}

static int table_read(const char *file, struct table *t, struct stat *seen, char *why,
		      size_t bytes)
{
	/* A pipe would be waited for. */
	const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	int ret = 0;

	*t = (struct table){ .lines = NULL };
	why[0] = 0;
	if (!f || fstat(fd, seen))
		ret = -errno;
	else if (!S_ISREG(seen->st_mode))
		ret = -EISDIR;
	else if (same_file_is_young(seen))
		seen->st_size = -1; /* read again at the next question */
	if (!ret)
		ret = lines_read(f, file, t, why, bytes);
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	if (ret) {
		free(t->lines);
		if (!why[0])
			snprintf(why, bytes, "%s: %s", file, ret == -EISDIR ?
				 "not a regular file" : strerrordesc_np(-ret));
	}
	return ret;
}

int hosts_open(struct hosts **out, const char *file, char *why, size_t why_bytes)
{
	struct hosts *h = calloc(1, sizeof(*h));
	int ret = -ENOMEM;

	if (!h)
		return ret;
	h->file = strdup(file);
	if (h->file)
		ret = table_read(file, &h->table, &h->seen, why, why_bytes);
	if (ret) {
		free(h->file);
		free(h);
		return ret;
	}
	pthread_mutex_init(&h->lock, NULL);
	*out = h;
	return 0;
}

void hosts_close(struct hosts *h)
{
	if (!h)
		return;
	pthread_mutex_destroy(&h->lock);
	free(h->table.lines);
	free(h->file);
	free(h);
}

/* Reads without the lock. Who changes the file in two steps may be met in between: the next
 * question sees the rest. */
static void refresh(struct hosts *h)
{
	struct stat now, seen;
	struct table fresh;
	char why[256];
	bool same;

	if (stat(h->file, &now))
		return;
	pthread_mutex_lock(&h->lock);
	same = same_file(&now, &h->seen);
	pthread_mutex_unlock(&h->lock);
	if (same || table_read(h->file, &fresh, &seen, why, sizeof(why)))
		return;
	pthread_mutex_lock(&h->lock);
	struct table old = h->table;
	h->table = fresh;
	h->seen = seen;
	pthread_mutex_unlock(&h->lock);
	free(old.lines);
}

static bool is_for(const struct line *l, uint32_t id, const char *name)
{
	return id ? l->id == id : l->name[0] && !strcmp(l->name, name);
}

static unsigned collect(const struct table *t, bool all, uint32_t id, const char *name,
			union address *out, unsigned max)
{
	unsigned count = 0, k;

	for (size_t i = 0; i < t->count && count < max; i++) {
		const struct line *l = &t->lines[i];

		if (!all && !is_for(l, id, name))
			continue;
		for (k = 0; k < count && !address_same(&out[k], &l->address, true); k++)
			;
		if (k == count)
			out[count++] = l->address;
	}
	return count;
}

unsigned hosts_find(struct hosts *h, uint32_t id, const char *name, bool exactly,
		    union address *out, unsigned max)
{
	unsigned count;

	refresh(h);
	pthread_mutex_lock(&h->lock);
	count = collect(&h->table, false, id, name, out, max);
	if (!count && !exactly)
		count = collect(&h->table, true, id, name, out, max);
	pthread_mutex_unlock(&h->lock);
	return count;
}

bool hosts_has(struct hosts *h, uint32_t id, const char *name, const union address *a)
{
	bool listed = false, here = false, anywhere = false;

	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < h->table.count; i++) {
		const struct line *l = &h->table.lines[i];
		bool same = address_same(&l->address, a, true);

		anywhere |= same;
		if (is_for(l, id, name)) {
			listed = true;
			here |= same;
		}
	}
	pthread_mutex_unlock(&h->lock);
	return listed ? here : anywhere;
}
