/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a run's folder: its cases and their descriptions. What stands there may be damaged,
 * or be made by another program. */
#define LOG_ROOM "bench/result"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/files.h"
#include "bench/result/result.h"
#include "util/log.h"

#define CASES_MAX 100000

/* Ids of the cases, as they are found. */
struct names {
	char **name;
	size_t count;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int is_case(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return *e->d_name != '.' && (len <= 5 || strcmp(e->d_name + len - 5, ".part"));
}

/* The folders cases/ID, alphabetically. */
static int list_folders(const char *dir, struct names *n)
{
	char *cases = files_path(dir, "cases");
	struct dirent **list = NULL;
	int count = cases ? scandir(cases, &list, is_case, NULL) : -1;
	int ret = count >= 0 || errno == ENOENT ? 0 : -errno;

	n->name = calloc(count > 0 ? (size_t)count : 1, sizeof(*n->name));
	if (!ret && (!n->name || count > CASES_MAX))
		ret = -ENOMEM;
	for (int i = 0; i < count; i++) {
		char *path = files_path(cases, list[i]->d_name);

		if (!path || (!ret && files_is_dir(path) &&
			      !(n->name[n->count++] = strdup(list[i]->d_name))))
			ret = -ENOMEM;
		free(path);
		free(list[i]);
	}
	free(list);
	if (ret)
		log_error("folder %s/cases cannot be read: %s", dir, strerror(-ret));
	else if (n->count)
		qsort(n->name, n->count, sizeof(*n->name), by_name);
	free(cases);
	return ret;
}

/* Moves those that run.json names to the front, in its order. */
static void order_names(struct names *n, const json_t *run)
{
	const json_t *list = json_object_get(run, "cases"), *id;
	size_t done = 0, i, sorted = n->count;
	char **in_order = calloc(n->count + 1, sizeof(*in_order));

	if (!in_order)
		return; /* alphabetical is an order, too */
	json_array_foreach(list, i, id) {
		const char *text = json_string_value(id);
		char **at = text && sorted ? bsearch(&text, n->name, sorted, sizeof(text),
						     by_name) : NULL;

		if (at) {
			in_order[done++] = *at;
			sorted--;
			memmove(at, at + 1, (size_t)(n->name + sorted - at) * sizeof(*at));
		}
	}
	if (sorted)
		memcpy(in_order + done, n->name, sorted * sizeof(*in_order));
	free(n->name);
	n->name = in_order;
}

static int read_case(const char *dir, const char *id, struct result_read *c)
{
	char *folder = NULL;
	int ret;

	c->id = strdup(id);
	if (!c->id || asprintf(&folder, "%s/cases/%s", dir, id) < 0)
		return -ENOMEM;
	ret = files_read_json(folder, "case.json", &c->description) ?:
	      files_read_json(folder, "summary.json", &c->summary);
	if (ret == -ENOENT) {
		log_error("case %s is damaged: it has no %s", folder,
			  c->description ? "summary.json" : "case.json");
		ret = -EBADMSG;
	}
	if (!ret && (!json_is_string(json_object_get(c->description, "kind")) ||
		     !json_is_object(json_object_get(c->description, "parameters")) ||
		     !json_is_object(json_object_get(c->summary, "latencies")) ||
		     !json_is_object(json_object_get(c->summary, "figures")))) {
		log_error("case %s is damaged: it lacks its kind, parameters, latencies or "
			  "figures", folder);
		ret = -EBADMSG;
	}
	free(folder);
	return ret;
}

static int read_cases(struct result_folder *f)
{
	struct names n = { .name = NULL };
	int ret = list_folders(f->dir, &n);

	if (!ret) {
		order_names(&n, f->run);
		f->cases = calloc(n.count + 1, sizeof(*f->cases));
		ret = f->cases ? 0 : -ENOMEM;
	}
	while (!ret && f->count < n.count) {
		ret = read_case(f->dir, n.name[f->count], &f->cases[f->count]);
		f->count++;
	}
	for (size_t i = 0; i < n.count; i++)
		free(n.name[i]);
	free(n.name);
	return ret;
}

static int read_run(const char *dir, json_t **run)
{
	int ret = files_read_json(dir, "run.json", run);
	json_int_t layout = json_integer_value(json_object_get(*run, "layout"));

	if (ret == -ENOENT)
		log_error("%s has no results of a benchmark: there is no run.json", dir);
	if (!ret && layout != RESULT_LAYOUT) {
		log_error("%s/run.json has layout %lld, this program reads layout %d", dir,
			  (long long)layout, RESULT_LAYOUT);
		ret = -EBADMSG;
	}
	return ret;
}

int result_folder_open(const char *dir, struct result_folder *f)
{
	int ret;

	*f = (struct result_folder){ .dir = dir };
	ret = read_run(dir, &f->run);
	if (ret)
		return ret;
	ret = files_read_json(dir, "machine.json", &f->machine);
	/* It may have been ended while it measured the floor. */
	return ret && ret != -ENOENT ? ret : read_cases(f);
}

void result_folder_close(struct result_folder *f)
{
	for (size_t i = 0; i < f->count; i++) {
		struct result_read *c = &f->cases[i];

		result_drop_rows(c);
		json_decref(c->description);
		json_decref(c->summary);
		free(c->id);
	}
	free(f->cases);
	json_decref(f->run);
	json_decref(f->machine);
	*f = (struct result_folder){ .dir = NULL };
}

struct result_read *result_folder_find(const struct result_folder *f, const char *id)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->cases[i].id, id))
			return &f->cases[i];
	return NULL;
}
