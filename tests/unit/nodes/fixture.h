/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One node by its configuration, without a super-node: what the core does in
 * the life of a node is done here in a few lines, so that a test of a node-type
 * depends on that type alone.
 */
#ifndef TESTS_NODES_FIXTURE_H
#define TESTS_NODES_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gateway/base/memory.h"
#include "gateway/plugin/node.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"

extern const struct node_type node_signal, node_signal_v2, node_file,
	node_loopback, node_test_rtt;

struct made_node {
	struct config *config;
	struct node node;
};

static inline int take_direction(struct made_node *m, struct node_direction *d,
				 const char *name, const struct config_key *keys,
				 size_t count)
{
	json_t *cfg = json_object_get(config_root(m->config), name);

	d->cfg = cfg;
	d->present = d->enabled = cfg != NULL;
	d->vectorize = 1;
	if (signal_list_parse(&d->signals, m->config,
			      cfg ? cfg : config_root(m->config), "signals") ||
	    signal_list_check(m->config, cfg ? cfg : config_root(m->config),
			      "signals", m->node.type->signal_keys,
			      m->node.type->signal_key_count))
		return -EINVAL;
	return config_unpack_part(m->config, cfg, keys, count,
				  m->node.private_data);
}

/* Up to and with check; 0 or a negative errno. */
static inline int try_node(struct made_node *m, const struct node_type *type,
			   const char *text)
{
	json_t *cfg;
	int ret;

	clock_init();
	memset(m, 0, sizeof(*m));
	m->node.type = type;
	m->node.name = (char *)"test";
	m->node.private_data = calloc(1, type->size);
	if (type->init)
		type->init(&m->node);
	ret = config_load_text("test", text, strlen(text), &m->config);
	if (ret)
		return ret;
	cfg = config_root(m->config);
	ret = config_unpack_part(m->config, cfg, type->keys, type->key_count,
				 m->node.private_data);
	if (!ret)
		ret = take_direction(m, &m->node.in, "in", type->in_keys,
				     type->in_key_count);
	if (!ret)
		ret = take_direction(m, &m->node.out, "out", type->out_keys,
				     type->out_key_count);
	if (!ret && type->parse)
		ret = type->parse(&m->node, m->config, cfg);
	if (!ret && type->check)
		ret = type->check(&m->node, m->config, cfg);
	return ret;
}

static inline void make_node(struct made_node *m, const struct node_type *type,
			     const char *text)
{
	assert_int_equal(try_node(m, type, text), 0);
}

static inline void drop_node(struct made_node *m)
{
	if (m->node.type->destroy)
		m->node.type->destroy(&m->node);
	signal_list_put(m->node.in.signals);
	signal_list_put(m->node.out.signals);
	free(m->node.private_data);
	config_destroy(m->config);
}

static inline int node_read_one(struct made_node *m, struct sample *s)
{
	unsigned release = 1;

	s->signals = NULL;
	s->length = 0;
	s->flags = 0;
	return node_read(&m->node, &s, 1, &release);
}

/* How often threads of this name have gone to sleep; -1: there is none. */
static inline long thread_sleeps(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	long total = -1, sleeps;

	while (tasks && (task = readdir(tasks))) {
		char path[300], line[200];
		bool is = false;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			 task->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f)) {
			line[strcspn(line, "\n")] = '\0';
			if (!strncmp(line, "Name:\t", 6))
				is = !strcmp(line + 6, name);
			if (is && sscanf(line, "voluntary_ctxt_switches: %ld",
					 &sleeps) == 1)
				total = MAX(total, 0) + sleeps;
		}
		if (f)
			fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return total;
}

/* A folder of the test's own under the system's place for temporary files. */
static inline const char *scratch(const char *name)
{
	static char folder[64], path[4][256];
	static unsigned turn;

	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "/tmp/busbar-test-XXXXXX");
		assert_non_null(mkdtemp(folder));
	}
	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[0]), "%s/%s", folder, name);
	return path[turn];
}

/* Removes it, and the files in it. */
static inline void clear_scratch(void)
{
	char folder[256];
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s", scratch(""));
	dir = opendir(folder);
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));)
		unlinkat(dirfd(dir), d->d_name, 0); /* not . and .. */
	closedir(dir);
	assert_int_equal(rmdir(folder), 0);
}

#endif
