/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing the state file; see state.h. */
#define LOG_ROOM "tune"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/tune/state.h"
#include "bench/tune/state_words.h"
#include "util/log.h"

const char *const tune_state_kinds[TUNE_KINDS] = {
	[TUNE_VALUE] = "value", [TUNE_CHOICE] = "choice", [TUNE_FLAG] = "flag",
	[TUNE_DIRECTORY] = "directory", [TUNE_NEW] = "new",
};

const char *const tune_state_progress[TUNE_DROPPED] = {
	[TUNE_PLANNED] = "planned", [TUNE_DONE] = "done",
};

void tune_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s == '\n')
			fputs("\\n", out);
		else if (*s == '\t')
			fputs("\\t", out);
		else if (*s < ' ')
			fprintf(out, "\\u%04x", *s);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}

static void print_member(FILE *out, const char *key, const char *value)
{
	fprintf(out, "%s\"%s\": ", strcmp(key, "setting") ? ", " : "{", key);
	tune_json_string(out, value);
}

static void print_state(FILE *out, const char *root, const struct tune_plan *p)
{
	bool any = false;

	fputs("{\"busbar tune\": 1, \"root\": ", out);
	tune_json_string(out, root);
	fputs(", \"changes\": [\n", out);
	for (size_t i = 0; i < p->count; i++) {
		const struct tune_change *c = &p->changes[i];

		if (c->progress == TUNE_DROPPED)
			continue;
		fputs(any ? ",\n" : "", out);
		any = true;
		print_member(out, "setting", c->setting);
		print_member(out, "progress", tune_state_progress[c->progress]);
		print_member(out, "kind", tune_state_kinds[c->kind]);
		print_member(out, "path", c->path);
		print_member(out, "former", c->former);
		print_member(out, "now", c->now);
		fputc('}', out);
	}
	fputs("\n]}\n", out);
}

/* Writes a file beside `file`; its name is in *made, malloc()ed, also to be freed after an
 * error. */
static int write_beside(const char *file, const char *root, const struct tune_plan *p,
			char **made)
{
	FILE *out;
	int fd, err = 0;

	if (asprintf(made, "%s.XXXXXX", file) < 0) {
		*made = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(*made, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		free(*made);
		*made = NULL;
		return err;
	}
	out = fdopen(fd, "w");
	if (!out) {
		err = -errno;
		close(fd);
		return err;
	}
	print_state(out, root, p);
	/* On a disk, the former values must be there before the first is changed. */
	if (fflush(out) || (fsync(fd) && errno != EINVAL && errno != EROFS))
		err = -errno;
	if (fclose(out) && !err)
		err = -errno;
	return err;
}

static void make_directory(const char *file)
{
	char *copy = strdup(file);

	/* If this fails, so does making the file, which is reported. */
	if (copy) {
		char *dir = dirname(copy), *above = strdup(dir);

		if (above)
			mkdir(dirname(above), 0755);
		mkdir(dir, 0755);
		free(above);
	}
	free(copy);
}

static int put(const char *file, const char *root, const struct tune_plan *p, bool create)
{
	char *made = NULL;
	int err;

	if (create)
		make_directory(file);
	err = write_beside(file, root, p, &made);
	/* link() does not replace a file, rename() does; both are atomic. */
	if (!err && (create ? link(made, file) : rename(made, file)))
		err = -errno;
	if (made && (create || err))
		unlink(made);
	free(made);
	if (err == -EEXIST)
		log_error("%s is there: settings were applied before. Take these back with 'busbar tune undo', or give another --state",
			  file);
	else if (err)
		log_error("writing the state file %s: %s", file, strerror(-err));
	return err;
}

int tune_state_create(const char *file, const char *root, const struct tune_plan *p)
{
	return put(file, root, p, true);
}

int tune_state_replace(const char *file, const char *root, const struct tune_plan *p)
{
	return put(file, root, p, false);
}

int tune_state_remove(const char *file)
{
	int err = unlink(file) ? -errno : 0;

	if (err)
		log_error("removing the state file %s: %s", file, strerror(-err));
	return err;
}
