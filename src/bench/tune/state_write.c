/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing the state file; see state.h. */
#define LOG_ROOM "tune"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
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

/* NULL: no memory, or a text that is no UTF-8. */
static json_t *describe(const char *root, const struct tune_plan *p)
{
	json_t *changes = json_array();

	for (size_t i = 0; i < p->count; i++) {
		const struct tune_change *c = &p->changes[i];

		if (c->progress == TUNE_DROPPED)
			continue;
		if (json_array_append_new(changes, json_pack(
			    "{s:s, s:s, s:s, s:s, s:s, s:s}", "setting", c->setting, "progress",
			    tune_state_progress[c->progress], "kind", tune_state_kinds[c->kind],
			    "path", c->path, "former", c->former, "now", c->now))) {
			json_decref(changes);
			return NULL;
		}
	}
	return json_pack("{s:i, s:s, s:o}", "busbar tune", 1, "root", root, "changes", changes);
}

/* Writes a file beside `file`; its name is in *made, malloc()ed, also to be freed after an
 * error. */
static int write_beside(const char *file, const char *root, const struct tune_plan *p,
			char **made)
{
	json_t *state = describe(root, p);
	FILE *out;
	int fd, err = 0;

	if (!state) {
		*made = NULL;
		return -EILSEQ;
	}
	if (asprintf(made, "%s.XXXXXX", file) < 0) {
		*made = NULL;
		err = -ENOMEM;
		goto out_state;
	}
	fd = mkostemp(*made, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		free(*made);
		*made = NULL;
		goto out_state;
	}
	out = fdopen(fd, "w");
	if (!out) {
		err = -errno;
		close(fd);
		goto out_state;
	}
	if (json_dumpf(state, out, JSON_INDENT(1)) || fputc('\n', out) == EOF)
		err = errno ? -errno : -EIO;
	/* On a disk, the former values must be there before the first is changed. */
	if (!err && (fflush(out) || (fsync(fd) && errno != EINVAL && errno != EROFS)))
		err = -errno;
	if (fclose(out) && !err)
		err = -errno;
out_state:
	json_decref(state);
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
