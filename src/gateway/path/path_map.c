/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a path takes from its sources: entries of `in`, their places in the
 * register, and the copying. The expressions themselves are in mapping.h.
 */
#define LOG_ROOM "gateway/path"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/path/path.h"
#include "gateway/sample/signals.h"
#include "util/log.h"

static int parse_entry(struct path_map *m, const struct services *services,
		       struct config *c, const json_t *cfg, const char *key,
		       const json_t *entry, bool listed)
{
	char problem[MAPPING_PROBLEM_MAX], *name;
	const char *text = json_string_value(entry);

	/* Only what is no string has no place of its own to point at. */
	m->at = listed && text ? entry : cfg;
	m->key = listed && text ? NULL : key;
	if (!text) {
		config_fail(c, cfg, key,
			    "expected the name of a node or a mapping such as \"node[0-3]\"");
		return -EINVAL;
	}
	if (mapping_parse(&m->mapping, text, problem, sizeof(problem))) {
		config_fail(c, m->at, m->key, "%s", problem);
		return -EINVAL;
	}
	name = strndup(m->mapping.node, m->mapping.node_len);
	if (!name)
		return -ENOMEM;
	m->node = path_find_node(services, c, m->at, m->key, name);
	free(name);
	return m->node ? 0 : -EINVAL;
}

int path_map_parse(struct path *p, const struct services *services, struct config *c,
		   const char *key)
{
	json_t *value = json_object_get(p->cfg, key);
	bool list = json_is_array(value);
	size_t n = list ? json_array_size(value) : (value ? 1 : 0);
	int ret = 0;

	p->maps = calloc(n ? n : 1, sizeof(*p->maps));
	if (!p->maps)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (parse_entry(&p->maps[i], services, c, p->cfg, key,
				list ? json_array_get(value, i) : value, list))
			ret = -EINVAL;
	p->map_count = (unsigned)n;
	p->mapped = n != 1 || p->maps[0].mapping.kind != MAPPING_NODE;
	return ret;
}

static int find_stats(struct path *p, struct path_map *m)
{
	if (!node_has_stats(m->node)) {
		config_fail(p->config, m->at, m->key,
			    "node '%s' has no hook `stats`, which makes these figures; add hooks = ( \"stats\" ) to its `in`",
			    m->node->name);
		return -EINVAL;
	}
	m->stats = node_stats_get(m->node->stats);
	m->count = 1;
	return 0;
}

/* What one entry takes; its `count` is the length in the register. */
static int resolve(struct path *p, struct path_map *m,
		   const struct signal_list *l)
{
	char problem[MAPPING_PROBLEM_MAX];

	switch (m->mapping.kind) {
	case MAPPING_NODE:
	case MAPPING_RANGE:
	case MAPPING_SIGNAL:
		if (!mapping_resolve(&m->mapping, l, &m->first, &m->count,
				     problem, sizeof(problem)))
			return 0;
		config_fail(p->config, m->at, m->key, "node '%s': %s",
			    m->node->name, problem);
		return -EINVAL;
	case MAPPING_SEQUENCE:
	case MAPPING_LENGTH:
		m->count = 1;
		return 0;
	case MAPPING_ORIGIN:
	case MAPPING_RECEIVED:
		m->count = 2;
		return 0;
	case MAPPING_STATS:
		return find_stats(p, m);
	}
	return -EINVAL;
}

static int name_stats(struct signal *s, const struct mapping *m)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.%s", stats_metric_names[m->metric],
		 stats_type_names[m->type]);
	return signal_set(s, name, stats_unit(m->metric, m->type),
			  m->type == STATS_TOTAL ? SIGNAL_INTEGER :
						   SIGNAL_FLOAT);
}

/* Names, units and types of what one entry takes. */
static int describe(const struct path_map *m, const struct signal_list *l,
		    struct signal *to)
{
	int ret = 0;

	switch (m->mapping.kind) {
	case MAPPING_NODE:
	case MAPPING_RANGE:
	case MAPPING_SIGNAL:
		for (unsigned i = 0; i < m->count && !ret; i++)
			ret = signal_copy(&to[i], &l->signals[m->first + i]);
		return ret;
	case MAPPING_SEQUENCE:
		return signal_set(to, "sequence", NULL, SIGNAL_INTEGER);
	case MAPPING_LENGTH:
		return signal_set(to, "length", NULL, SIGNAL_INTEGER);
	case MAPPING_ORIGIN:
		return signal_set(&to[0], "origin.sec", "s", SIGNAL_INTEGER) ?:
		       signal_set(&to[1], "origin.nsec", "ns", SIGNAL_INTEGER);
	case MAPPING_RECEIVED:
		return signal_set(&to[0], "received.sec", "s",
				  SIGNAL_INTEGER) ?:
		       signal_set(&to[1], "received.nsec", "ns",
				  SIGNAL_INTEGER);
	case MAPPING_STATS:
		return name_stats(to, &m->mapping);
	}
	return -EINVAL;
}

/* Signals of a source's samples, the usual ones where nothing is known; a
 * reference. */
static struct signal_list *signals_of(const struct path_source *s)
{
	struct signal_list *l = s->node->in.hooked;

	return l ? signal_list_get(l) : signal_list_new(s->count, SIGNAL_FLOAT);
}

static int place(struct path *p)
{
	uint64_t length = 0;
	int ret = 0;

	for (unsigned i = 0; i < p->map_count; i++) {
		struct path_map *m = &p->maps[i];
		struct signal_list *l = signals_of(m->source);

		if (!l)
			return -ENOMEM;
		if (resolve(p, m, l))
			ret = -EINVAL;
		signal_list_put(l);
		m->offset = (unsigned)length;
		length += m->count;
		if (length <= SIGNALS_MAX)
			continue;
		config_fail(p->config, m->at, m->key,
			    "the path has more than %d values up to here",
			    SIGNALS_MAX);
		return -EINVAL;
	}
	p->register_length = (unsigned)length;
	return ret;
}

int path_map_resolve(struct path *p)
{
	int ret;

	if (!p->mapped) {
		struct path_source *s = &p->sources[0];

		p->register_length = s->count;
		p->signals = s->node->in.hooked ?
				     signal_list_get(s->node->in.hooked) : NULL;
		return 0;
	}
	ret = place(p);
	if (ret)
		return ret;
	p->signals = signal_list_alloc(p->register_length);
	if (!p->signals)
		return -ENOMEM;
	/* Behind each other in each source, in the order of the file. */
	for (unsigned i = p->map_count; i-- > 0;) {
		p->maps[i].next = p->maps[i].source->maps;
		p->maps[i].source->maps = &p->maps[i];
	}
	for (unsigned i = 0; i < p->map_count && !ret; i++) {
		struct path_map *m = &p->maps[i];
		struct signal_list *l = signals_of(m->source);

		ret = l ? describe(m, l, &p->signals->signals[m->offset]) :
			  -ENOMEM;
		signal_list_put(l);
	}
	return ret;
}

static void copy_time(union signal_data *to, struct timespec t, bool there)
{
	to[0].i = there ? t.tv_sec : 0;
	to[1].i = there ? t.tv_nsec : 0;
}

static void copy_figure(union signal_data *to, const struct path_map *m)
{
	double value = node_stats_figure(m->stats, m->mapping.metric,
					 m->mapping.type);

	if (m->mapping.type == STATS_TOTAL)
		to->i = (int64_t)value;
	else
		to->f = value;
}

static void deliver(struct path *p, struct path_source *s)
{
	s->delivered = true;
	for (const struct path_map *m = s->maps; m; m = m->next)
		p->delivered_length = MAX(p->delivered_length,
					  m->offset + m->count);
}

void path_map_copy(struct path *p, struct path_source *s,
		   const struct sample *smp)
{
	if (unlikely(!s->delivered))
		deliver(p, s);
	for (const struct path_map *m = s->maps; m; m = m->next) {
		union signal_data *to = p->last->data + m->offset;

		switch (m->mapping.kind) {
		case MAPPING_NODE:
		case MAPPING_RANGE:
		case MAPPING_SIGNAL:
			/* A shorter sample leaves the rest as it was. */
			if (smp->length > m->first)
				memcpy(to, smp->data + m->first,
				       MIN(m->count, smp->length - m->first) *
					       sizeof(to[0]));
			break;
		case MAPPING_SEQUENCE:
			to->i = (int64_t)smp->sequence;
			break;
		case MAPPING_LENGTH:
			to->i = smp->length;
			break;
		case MAPPING_ORIGIN:
			copy_time(to, smp->origin,
				  smp->flags & SAMPLE_HAS_ORIGIN);
			break;
		case MAPPING_RECEIVED:
			copy_time(to, smp->received,
				  smp->flags & SAMPLE_HAS_RECEIVED);
			break;
		case MAPPING_STATS:
			copy_figure(to, m);
			break;
		}
	}
}

void path_map_rewire(struct path *p)
{
	for (unsigned i = 0; i < p->map_count; i++) {
		struct path_map *m = &p->maps[i];

		if (!m->node->twin)
			continue;
		m->node = m->node->twin;
		if (!m->stats)
			continue;
		node_stats_put(m->stats);
		m->stats = node_stats_get(m->node->stats);
	}
}

void path_map_destroy(struct path *p)
{
	for (unsigned i = 0; i < p->map_count; i++)
		node_stats_put(p->maps[i].stats);
	free(p->maps);
}
