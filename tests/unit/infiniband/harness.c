/* SPDX-License-Identifier: BSD-2-Clause */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "gateway/super_node/super_node.h"
#include "util/clock.h"
#include "util/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[200][400];
static unsigned line_count;

atomic_uint harness_stops, harness_failures;

/* The super-node is not part of these tests. */
static void request_stop(struct services *s)
{
	atomic_fetch_add(&harness_stops, 1);
}

static void note_failure(struct services *s)
{
	atomic_fetch_add(&harness_failures, 1);
}

struct services harness_services = { .request_stop = request_stop,
				     .note_failure = note_failure };

static bool keep_line(enum log_level level, const char *line)
{
	pthread_mutex_lock(&lock);
	if (line_count < ARRAY_SIZE(lines))
		strncpy(lines[line_count++], line, sizeof(lines[0]) - 1);
	pthread_mutex_unlock(&lock);
	return true;
}

unsigned harness_logged(const char *text)
{
	unsigned n = 0;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < line_count; i++)
		n += strstr(lines[i], text) != NULL;
	pthread_mutex_unlock(&lock);
	return n;
}

void harness_log_clear(void)
{
	pthread_mutex_lock(&lock);
	memset(lines, 0, sizeof(lines));
	line_count = 0;
	pthread_mutex_unlock(&lock);
}

void harness_pause(void)
{
	const struct timespec t = { .tv_nsec = 500000 };

	nanosleep(&t, NULL);
}

int harness_open(struct harness *h, const char *text)
{
	const struct node_type *t = &node_infiniband;
	struct node *n = &h->node;

	clock_init();
	atomic_store(&harness_stops, 0);
	atomic_store(&harness_failures, 0);
	harness_log_clear();
	log_set_level(LOG_INFO);
	log_set_sink(keep_line);
	memset(h, 0, sizeof(*h));
	assert_int_equal(config_load_text("test", text, strlen(text),
					  &h->config), 0);
	n->type = t;
	n->name = "ib";
	n->cfg = config_root(h->config);
	n->in.cfg = json_object_get(n->cfg, "in");
	n->out.cfg = json_object_get(n->cfg, "out");
	n->in.enabled = n->in.present = n->in.cfg;
	n->out.enabled = n->out.present = n->out.cfg;
	n->in.vectorize = n->out.vectorize = 1;
	if (n->in.cfg && json_object_get(n->in.cfg, "vectorize"))
		n->in.vectorize = (unsigned)json_integer_value(
			json_object_get(n->in.cfg, "vectorize"));
	n->private_data = calloc(1, t->size);
	assert_int_equal(t->init(n), 0);
	if (config_unpack_part(h->config, n->cfg, t->keys, t->key_count,
			       n->private_data))
		return -EINVAL;
	config_unpack_part(h->config, n->in.cfg, t->in_keys, t->in_key_count,
			   n->private_data);
	config_unpack_part(h->config, n->out.cfg, t->out_keys,
			   t->out_key_count, n->private_data);
	int err = t->parse(n, h->config, n->cfg);

	return err ? err : t->check(n, h->config, n->cfg);
}

int harness_start(struct harness *h)
{
	struct node *n = &h->node;
	int err = n->type->prepare(n);

	if (err)
		return err;
	if (!h->pool.block)
		assert_int_equal(pool_init(&h->pool, 1024, 8,
					   n->type->memory_type(n,
								&memory_heap)),
				 0);
	err = n->type->start(n);
	if (err)
		return err;
	node_set_state(n, NODE_STARTED);
	h->started = true;
	return 0;
}

void harness_stop(struct harness *h)
{
	if (!h->started)
		return;
	assert_int_equal(h->node.type->stop(&h->node), 0);
	node_set_state(&h->node, NODE_STOPPED);
	h->started = false;
	assert_int_equal(h->pool.available, h->pool.count);
}

void harness_close(struct harness *h)
{
	harness_stop(h);
	if (h->pool.block)
		assert_int_equal(pool_destroy(&h->pool), 0);
	h->node.type->destroy(&h->node);
	free(h->node.private_data);
	config_destroy(h->config);
	log_set_sink(NULL);
}
