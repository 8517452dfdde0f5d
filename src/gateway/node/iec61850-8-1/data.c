/* SPDX-License-Identifier: BSD-2-Clause */
/* Data sets that a node of type `iec61850-8-1` writes: the list `data` of a publisher. */
#define LOG_ROOM "gateway/iec61850-8-1"
#include "gateway/node/iec61850-8-1/goose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct data_entry {
	const char *mms_type, *signal;
	json_t *value, *members;
	int64_t bits;
};

#define DATA(field) offsetof(struct data_entry, field)

static const struct config_key data_keys[] = {
	{ "mms_type", CONFIG_STRING, DATA(mms_type), .required = true, .help = "Its type" },
	{ "signal", CONFIG_STRING, DATA(signal), .help = "The signal that it holds" },
	{ "members", CONFIG_JSON, DATA(members), .form = "'type': ['array', 'null']",
	  .help = "Of the mms_type structure or array: its members, as in `data`" },
	{ "value", CONFIG_JSON, DATA(value),
	 .form = "'type': ['boolean', 'number', 'string', 'null']",
	  .help = "What it holds without a signal, or where a sample is too short" },
	{ "mms_bitstring_size", CONFIG_INT, DATA(bits), "32", .min = 1, .max = MMS_BITS_MAX,
	  .help = "Bits of a bit string" },
};

bool goose_is_given(const json_t *at, const char *key)
{
	const json_t *value = json_object_get(at, key);

	return value && !json_is_null(value);
}

const struct mms_type *goose_type_parse(struct config *c, const json_t *at, const char *name,
					 const char *more)
{
	const struct mms_type *t = mms_type_find(name);

	if (t && (*more || !mms_is_text(t)))
		return t;
	config_fail(c, at, "mms_type", "'%.40s' is no type of %s; there are " MMS_NAMES "%s", name,
		    *more ? "values" : "values that a signal can hold", more);
	return NULL;
}

static int parse_value(struct goose_entry *d, struct config *c, const json_t *at,
		       const json_t *value)
{
	union signal_data data = { .bits = 0 };
	enum signal_type type = d->type->signal;
	bool good = json_is_boolean(value) || json_is_number(value);

	if (type == SIGNAL_FLOAT) {
		good = json_is_number(value);
		data.f = json_number_value(value);
	} else {
		good = good && !json_is_real(value) &&
			(type == SIGNAL_BOOLEAN || !json_is_boolean(value));
		data.i = json_is_true(value) ? 1 : json_integer_value(value);
	}
	if (good && mms_from_signal(d->type, d->bits, data, type, &d->value))
		return 0;
	config_fail(c, at, "value", "is no value of type %s", d->type->name);
	return -EINVAL;
}

/* Bytes of a text that is constant. */
static int parse_text(struct goose_entry *d, struct config *c, const json_t *at,
		      const json_t *value)
{
	static const uint8_t zeros[6];

	d->value = (struct goose_value){ .type = d->type->tag };
	if (d->type->tag == GOOSE_BINARY_TIME)
		d->value.bytes = (struct ber){ zeros, sizeof(zeros) };
	else if (json_is_string(value))
		d->value.bytes = (struct ber){ (const uint8_t *)json_string_value(value),
					       json_string_length(value) };
	if (!d->signal && (json_is_string(value) || d->type->tag == GOOSE_BINARY_TIME))
		return 0;
	config_fail(c, at, d->signal ? "signal" : "value",
		    "of type %s is a constant text; no signal can hold it",
		    d->type->name);
	return -EINVAL;
}

static int parse_leaf(struct goose_entry *d, struct config *c, const json_t *at,
		      const struct data_entry *e)
{
	d->type = goose_type_parse(c, at, e->mms_type, ", " MMS_TEXT_NAMES ", structure, array");
	if (!d->type)
		return -EINVAL;
	d->bits = (unsigned)e->bits;
	d->signal = e->signal;
	if (goose_is_given(at, "members")) {
		config_fail(c, at, "members", "are of the types structure and array, not of %s",
			    d->type->name);
		return -EINVAL;
	}
	if (mms_is_text(d->type))
		return parse_text(d, c, at, e->value);
	if (goose_is_given(at, "value"))
		return parse_value(d, c, at, e->value);
	d->stamp = !d->signal && d->type->tag == GOOSE_UTC_TIME;
	d->value.type = d->stamp ? GOOSE_UTC_TIME : d->value.type;
	if (d->signal || d->stamp)
		return 0;
	config_fail(c, at, NULL, "`signal` or `value` is required");
	return -EINVAL;
}

static int parse_list(struct goose_sink *s, struct config *c, const json_t *list, unsigned first,
		      unsigned depth);

static int parse_group(struct goose_sink *s, struct goose_entry *d, struct config *c,
		       const json_t *at, const struct data_entry *e, unsigned depth)
{
	if (!json_is_array(e->members) || !json_array_size(e->members) ||
	    goose_is_given(at, "signal") ||
	    goose_is_given(at, "value")) {
		config_fail(c, at, "members",
			    "are required: a list as `data` of the publisher, in place of a signal or value");
		return -EINVAL;
	}
	if (depth == GOOSE_GROUPS_MAX) {
		config_fail(c, at, "members", "stand in each other more than %d deep",
			    GOOSE_GROUPS_MAX);
		return -EINVAL;
	}
	d->group = strcmp(e->mms_type, "array") ? GOOSE_STRUCTURE : GOOSE_ARRAY;
	d->first = s->total;
	d->part_count = (unsigned)json_array_size(e->members);
	return parse_list(s, c, e->members, d->first, depth + 1);
}

static int parse_entry(struct goose_sink *s, struct goose_entry *d, struct config *c,
		       const json_t *at, unsigned depth)
{
	struct data_entry e = { 0 };

	if (!json_is_object(at)) {
		config_fail(c, at, NULL,
			    "is a group such as { mms_type = \"boolean\"; signal = \"trip\"; }");
		return -EINVAL;
	}
	if (config_unpack(c, at, data_keys, ARRAY_SIZE(data_keys), &e, NULL, 0))
		return -EINVAL;
	d->cfg = at;
	if (!strcmp(e.mms_type, "structure") || !strcmp(e.mms_type, "array"))
		return parse_group(s, d, c, at, &e, depth);
	return parse_leaf(d, c, at, &e);
}

/* The entries of a list become those from `first` on, for which there is room; their members
 * come behind all others. */
static int parse_list(struct goose_sink *s, struct config *c, const json_t *list, unsigned first,
		      unsigned depth)
{
	json_t *e;
	size_t i;
	int ret = 0;

	s->total += (unsigned)json_array_size(list);
	json_array_foreach(list, i, e)
		ret = parse_entry(s, &s->data[first + i], c, e, depth) ?: ret;
	return ret;
}

/* How many entries a list has, with members. */
static size_t count_entries(const json_t *list, unsigned depth)
{
	size_t i, count = json_array_size(list);
	json_t *e;

	if (depth < GOOSE_DEPTH_MAX)
		json_array_foreach(list, i, e)
			count += count_entries(json_object_get(e, "members"), depth + 1);
	return count;
}

int goose_data_allocate(struct goose_sink *s, size_t count)
{
	s->data = calloc(count, sizeof(*s->data));
	s->values = calloc(count, sizeof(*s->values));
	s->next = calloc(count, sizeof(*s->next));
	return s->data && s->values && s->next ? 0 : -ENOMEM;
}

int goose_data_parse(struct goose_sink *s, struct config *c, const json_t *at)
{
	size_t count = count_entries(s->data_cfg, 0);
	int ret;

	if (!json_is_array(s->data_cfg) || !count || count > GOOSE_ENTRIES_MAX) {
		config_fail(c, at, "data",
			    "is a list of 1 to %d values, ( { mms_type = ...; signal = ...; } )",
			    GOOSE_ENTRIES_MAX);
		return -EINVAL;
	}
	ret = goose_data_allocate(s, count);
	if (ret)
		return ret;
	s->count = (unsigned)json_array_size(s->data_cfg);
	return parse_list(s, c, s->data_cfg, 0, 0);
}
