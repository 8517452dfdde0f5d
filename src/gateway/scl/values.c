/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of data sets of SCL files, as the node-types take them; see scl.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/scl/scl_file.h"
#include "util/container_of.h"

struct visit {
	int (*take)(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth);
	void *arg;
	unsigned place[SCL_DEPTH_MAX * 2 + 2];
};

static int each(struct visit *v, const struct scl_data *list, unsigned count, unsigned depth)
{
	int ret = 0;

	for (unsigned i = 0; i < count && !ret; i++) {
		v->place[depth] = i;
		ret = list[i].basic ? v->take(v->arg, &list[i], v->place, depth + 1) :
				      each(v, list[i].parts, list[i].count, depth + 1);
	}
	return ret;
}

int scl_each_value(const struct scl_control *c,
		   int (*take)(void *arg, const struct scl_data *d, const unsigned place[],
			       unsigned depth),
		   void *arg)
{
	struct visit v = { take, arg, { 0 } };

	return each(&v, c->data, c->count, 0);
}

bool scl_is_quality(const struct scl_data *d)
{
	return d->basic && !strcmp(d->basic->name, "Quality");
}

bool scl_is_time(const struct scl_data *d)
{
	return d->basic && !strcmp(d->basic->name, "Timestamp");
}

bool scl_is_text(const struct scl_data *d)
{
	static const char *const texts[] = { "visible_string", "mms_string", "octet_string",
					     "binary_time" };

	for (size_t i = 0; d->basic && i < ARRAY_SIZE(texts); i++)
		if (!strcmp(d->basic->mms_type, texts[i]))
			return true;
	return false;
}

/* ---- of sampled values ---- */

struct sampling {
	struct scl *s;
	struct scl_sampled *values;
	unsigned count;
};

static int count_value(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth)
{
	unsigned *count = arg;

	++*count;
	return 0;
}

/* Is `q` the quality of the data object that has `value`? */
static bool is_quality_of(const struct scl_data *q, const struct scl_data *value)
{
	const char *end = strrchr(q->name, '.');

	return end && !strncmp(q->name, value->name, (size_t)(end - q->name) + 1);
}

static int add_sampled(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth)
{
	struct sampling *a = arg;
	struct scl_sampled *last = a->count ? &a->values[a->count - 1] : NULL;

	if (!d->basic->iec_type)
		return scl_fail(a->s, d->line,
				"'%.150s' is of type %s, which sampled values cannot hold",
				d->name, d->basic->name);
	if (scl_is_quality(d) && last && !last->quality && !scl_is_quality(last->data) &&
	    !scl_is_time(last->data) && is_quality_of(d, last->data))
		last->quality = true;
	else
		a->values[a->count++] = (struct scl_sampled){ .data = d };
	return 0;
}

int scl_sampled_values(struct scl *s, const struct scl_control *c, struct scl_sampled **out,
		       unsigned *count, char why[SCL_WHY_MAX])
{
	struct sampling a = { .s = s };
	unsigned all = 0;
	int ret;

	s->why = why;
	scl_each_value(c, count_value, &all);
	a.values = scl_tree_alloc(&s->tree, (all + 1) * sizeof(*a.values));
	if (!a.values)
		return scl_fail_memory(s);
	ret = scl_each_value(c, add_sampled, &a);
	*out = a.values;
	*count = a.count;
	return ret;
}
