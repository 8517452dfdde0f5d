/* SPDX-License-Identifier: BSD-2-Clause */
/* Signal lists: life time and parsing; see signals.h. */
#include "gateway/sample/signals.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/keys.h"
#include "util/container_of.h"

static const char *const type_names[] = {
	[SIGNAL_FLOAT] = "float",
	[SIGNAL_INTEGER] = "integer",
	[SIGNAL_BOOLEAN] = "boolean",
	[SIGNAL_COMPLEX] = "complex",
	NULL,
};

int signal_type_parse(const char *name)
{
	for (int i = 0; type_names[i]; i++)
		if (!strcmp(name, type_names[i]))
			return i;
	return -EINVAL;
}

const char *signal_type_name(enum signal_type type)
{
	return type_names[type];
}

int64_t signal_type_to_integer(long double v)
{
	if (v >= 0x1p63L)
		return INT64_MAX;
	/* Also true for what is no number. */
	if (!(v >= -0x1p63L))
		return v < 0 ? INT64_MIN : 0;
	return (int64_t)v;
}

struct signal_list *signal_list_alloc(unsigned count)
{
	struct signal_list *l =
		calloc(1, sizeof(*l) + count * sizeof(l->signals[0]));

	if (!l)
		return NULL;
	atomic_init(&l->refcnt, 1);
	l->count = count;
	return l;
}

static char *indexed_name(const char *prefix, unsigned index)
{
	char *name;

	return asprintf(&name, "%s%u", prefix, index) < 0 ? NULL : name;
}

/* Fills one entry; false on no memory. */
static bool set_signal(struct signal *s, char *name, const char *unit,
		       enum signal_type type)
{
	s->name = name;
	s->unit = unit ? strdup(unit) : NULL;
	s->type = type;
	return name && (!unit || s->unit);
}

struct signal_list *signal_list_new(unsigned count, enum signal_type type)
{
	struct signal_list *l = signal_list_alloc(count);

	for (unsigned i = 0; l && i < count; i++) {
		if (!set_signal(&l->signals[i], indexed_name("signal", i), NULL,
				type)) {
			signal_list_put(l);
			return NULL;
		}
	}
	return l;
}

struct signal_list *signal_list_get(struct signal_list *l)
{
	atomic_fetch_add_explicit(&l->refcnt, 1, memory_order_relaxed);
	return l;
}

void signal_list_put(struct signal_list *l)
{
	if (!l || atomic_fetch_sub_explicit(&l->refcnt, 1,
					    memory_order_acq_rel) != 1)
		return;
	for (unsigned i = 0; i < l->count; i++) {
		free(l->signals[i].name);
		free(l->signals[i].unit);
	}
	free(l);
}

int signal_set(struct signal *s, const char *name, const char *unit,
	       enum signal_type type)
{
	return set_signal(s, strdup(name), unit && *unit ? unit : NULL, type) ?
		       0 : -ENOMEM;
}

int signal_copy(struct signal *s, const struct signal *from)
{
	s->init = from->init;
	return signal_set(s, from->name, from->unit, from->type);
}

/* "12f3i": counts and type letters; a letter alone counts once. */
static int parse_letters(struct signal_list **out, struct config *c,
			 const json_t *at, const char *key, const char *text)
{
	static const char letters[] = "fibc";
	enum signal_type types[64];
	unsigned counts[64], runs = 0, total = 0, i = 0;

	for (const char *p = text; *p; p++) {
		unsigned long n = 1;
		const char *letter;
		char *end = (char *)p;

		if (isdigit((unsigned char)*p))
			n = strtoul(p, &end, 10);
		p = end;
		letter = *p ? strchr(letters, *p) : NULL;
		if (!letter || runs == 64 || n > SIGNALS_MAX ||
		    total + n > SIGNALS_MAX)
			goto err_text;
		types[runs] = (enum signal_type)(letter - letters);
		counts[runs++] = (unsigned)n;
		total += (unsigned)n;
	}
	if (!total)
		goto err_text;

	*out = signal_list_alloc(total);
	for (unsigned r = 0; *out && r < runs; r++) {
		for (unsigned k = 0; k < counts[r]; k++, i++) {
			if (!set_signal(&(*out)->signals[i],
					indexed_name("signal", i), NULL,
					types[r])) {
				signal_list_put(*out);
				*out = NULL;
				break;
			}
		}
	}
	return *out ? 0 : -ENOMEM;

err_text:
	config_fail(c, at, key,
		    "'%s' is not a list of signals; write for example \"12f3i\" (f float, i integer, b boolean, c complex; at most %d)",
		    text, SIGNALS_MAX);
	return -EINVAL;
}

struct signal_entry {
	const char *name, *unit;
	int type;
	int64_t count;
	bool enabled;
	json_t *init;
	union signal_data initial;
};

static const struct config_key entry_keys[] = {
	{ "name", CONFIG_STRING, offsetof(struct signal_entry, name),
	  .help = "Name of the signal" },
	{ "unit", CONFIG_STRING, offsetof(struct signal_entry, unit),
	  .help = "Unit, for people" },
	{ "type", CONFIG_ENUM, offsetof(struct signal_entry, type), "float",
	  .names = type_names, .help = "Type of the values" },
	{ "count", CONFIG_INT, offsetof(struct signal_entry, count), "1",
	  .min = 1, .max = SIGNALS_MAX,
	  .help = "This many signals; names get a running number" },
	{ "enabled", CONFIG_BOOL, offsetof(struct signal_entry, enabled),
	  "true", .help = "Only true: every signal has its place in every sample" },
	{ "init", CONFIG_JSON, offsetof(struct signal_entry, init),
	  .help = "Value before the first sample, where a path joins several sources" },
};

const struct key_table keys_signal = { entry_keys, ARRAY_SIZE(entry_keys) };

/* VILLASnode takes the key and uses the signal all the same. */
static int refuse_disabled(struct config *c, const json_t *at,
			   const struct signal_entry *e)
{
	if (e->enabled)
		return 0;
	config_fail(c, at, "enabled",
		    "a signal cannot be switched off, as others find theirs by position; take the signal out here, or leave it out in `in` of the path");
	return -EINVAL;
}

/* A number, a boolean, or for a complex one { real, imag }. */
static int parse_init(struct config *c, const json_t *at,
		      const struct signal_entry *e, union signal_data *out)
{
	bool number = json_is_number(e->init), boolean = json_is_boolean(e->init);
	double v = boolean ? json_is_true(e->init) : json_number_value(e->init);

	*out = (union signal_data){ .bits = 0 };
	if (!e->init || json_is_null(e->init))
		return 0;
	switch (e->type) {
	case SIGNAL_FLOAT:
		out->f = v;
		break;
	case SIGNAL_INTEGER:
		if (json_is_real(e->init) && !(v >= -0x1p63 && v < 0x1p63))
			number = false;
		else
			out->i = json_is_integer(e->init) ?
					 json_integer_value(e->init) :
					 (int64_t)v;
		break;
	case SIGNAL_BOOLEAN:
		out->i = v != 0;
		break;
	case SIGNAL_COMPLEX:
		out->z.re = (float)v;
		if (!json_is_object(e->init))
			break;
		out->z.re = (float)json_number_value(
			json_object_get(e->init, "real"));
		out->z.im = (float)json_number_value(
			json_object_get(e->init, "imag"));
		return 0;
	}
	if (number || boolean)
		return 0;
	config_fail(c, at, "init", "expected a value of type %s",
		    type_names[e->type]);
	return -EINVAL;
}

/* Appends the signals of one object at *at_index; total known to fit. */
static bool fill_entry(struct signal_list *l, unsigned *index,
		       const struct signal_entry *e, bool numbered)
{
	for (int64_t k = 0; k < e->count; k++, (*index)++) {
		char *name;

		l->signals[*index].init = e->initial;
		if (e->name && !numbered && e->count == 1)
			name = strdup(e->name);
		else
			name = indexed_name(e->name ? e->name : "signal",
					    e->name ? (unsigned)k : *index);
		if (!set_signal(&l->signals[*index], name, e->unit,
				(enum signal_type)e->type))
			return false;
	}
	return true;
}

static int parse_objects(struct signal_list **out, struct config *c,
			 const json_t *at, const char *key, json_t *value)
{
	bool single = json_is_object(value);
	size_t n = single ? 1 : json_array_size(value);
	struct signal_entry *entries = calloc(n ? n : 1, sizeof(*entries));
	uint64_t total = 0;
	unsigned index = 0;
	int ret = 0;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		json_t *e = single ? value : json_array_get(value, i);

		if (!json_is_object(e)) {
			config_fail(c, json_is_string(e) ? e : value, NULL,
				    "a signal is an object such as { name = \"u\", type = \"float\" }");
			ret = -EINVAL;
			continue;
		}
		/* Node-types and hooks put keys of their own beside these
		 * (signal.v2, modbus): signal_list_check() knows them. */
		if (config_unpack_part(c, e, entry_keys,
				       ARRAY_SIZE(entry_keys), &entries[i]))
			ret = -EINVAL;
		else if (refuse_disabled(c, e, &entries[i]) ||
			 parse_init(c, e, &entries[i], &entries[i].initial))
			ret = -EINVAL;
		total += (uint64_t)entries[i].count;
	}
	if (!ret && (!total || total > SIGNALS_MAX)) {
		config_fail(c, at, key, "%llu signals, possible are 1 to %d",
			    (unsigned long long)total, SIGNALS_MAX);
		ret = -EINVAL;
	}
	if (ret)
		goto out;

	*out = signal_list_alloc((unsigned)total);
	for (size_t i = 0; *out && i < n; i++) {
		if (!fill_entry(*out, &index, &entries[i],
				single && json_object_get(value, "count"))) {
			signal_list_put(*out);
			*out = NULL;
		}
	}
	ret = *out ? 0 : -ENOMEM;
out:
	free(entries);
	return ret;
}

bool signal_list_is_given(const json_t *at, const char *key)
{
	const json_t *value = json_object_get(at, key);

	return value && !json_is_null(value) &&
	       !(json_is_array(value) && !json_array_size(value));
}

const json_t *signal_entry(const json_t *at, unsigned i)
{
	const json_t *list = json_object_get(at, "signals");

	return json_is_object(list) ? list : json_array_get(list, i);
}

int signal_entries(struct config *c, const json_t *at, const char *what)
{
	const json_t *list = json_object_get(at, "signals");
	size_t count = json_is_object(list) ? 1 : json_array_size(list);

	if (!signal_list_is_given(at, "signals"))
		return 0;
	if (!count) {
		config_fail(c, at, "signals", "%s", what);
		return -EINVAL;
	}
	for (unsigned i = 0; i < count; i++)
		if (json_object_get(signal_entry(at, i), "count")) {
			config_fail(c, signal_entry(at, i), "count",
				    "each signal needs an entry of its own");
			return -EINVAL;
		}
	return (int)count;
}

int signal_list_parse(struct signal_list **out, struct config *c,
		      const json_t *at, const char *key)
{
	json_t *value = json_object_get(at, key);

	*out = NULL;
	if (!signal_list_is_given(at, key))
		return 0;
	if (json_is_string(value))
		return parse_letters(out, c, at, key, json_string_value(value));
	if (json_is_object(value) || json_is_array(value))
		return parse_objects(out, c, at, key, value);
	config_fail(c, at, key,
		    "expected a list of signals, an object with `count` or a text such as \"8f\"");
	return -EINVAL;
}

static bool equal_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool signal_list_equal(const struct signal_list *a, const struct signal_list *b)
{
	if (a == b)
		return true;
	if (!a || !b || a->count != b->count)
		return false;
	for (unsigned i = 0; i < a->count; i++)
		if (a->signals[i].type != b->signals[i].type ||
		    a->signals[i].init.bits != b->signals[i].init.bits ||
		    !equal_text(a->signals[i].name, b->signals[i].name) ||
		    !equal_text(a->signals[i].unit, b->signals[i].unit))
			return false;
	return true;
}

/* The list that stands where nothing is known: floats without units, signal0 and so on. */
static bool is_default(const struct signal_list *l)
{
	char name[24];

	if (l->count != SIGNALS_DEFAULT)
		return false;
	for (unsigned i = 0; i < l->count; i++) {
		snprintf(name, sizeof(name), "signal%u", i);
		if (l->signals[i].type != SIGNAL_FLOAT || l->signals[i].unit ||
		    strcmp(l->signals[i].name, name))
			return false;
	}
	return true;
}

unsigned signal_list_columns(const struct signal_list *l, unsigned length)
{
	return l && l->count > length && !is_default(l) ? l->count : length;
}

struct signal_list *signal_list_header(const struct signal_list *l, unsigned length)
{
	unsigned count = signal_list_columns(l, length);
	struct signal_list *h = signal_list_new(count, SIGNAL_FLOAT);

	for (unsigned i = 0; h && l && i < MIN(count, l->count); i++) {
		struct signal *s = &h->signals[i];

		free(s->name);
		s->name = NULL;
		if (!signal_copy(s, &l->signals[i]))
			continue;
		signal_list_put(h);
		return NULL;
	}
	return h;
}

/* All that configurations of this process knew, and the first of what peers told. */
static struct {
	pthread_mutex_t lock;
	struct signal_list **lists;
	size_t count;
	size_t told, told_bytes;
} interned = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t size_of(const struct signal_list *l)
{
	size_t size = sizeof(*l) + l->count * sizeof(l->signals[0]);

	for (unsigned i = 0; i < l->count; i++) {
		size += strlen(l->signals[i].name) + 1;
		size += l->signals[i].unit ? strlen(l->signals[i].unit) + 1 : 0;
	}
	return size;
}

/* Within what may be kept of peers; counts it. The lock is held. */
static bool may_keep_told(const struct signal_list *l)
{
	size_t size = size_of(l);

	if (interned.told == SIGNALS_TOLD_MAX ||
	    size > SIGNALS_TOLD_BYTES - interned.told_bytes)
		return false;
	interned.told++;
	interned.told_bytes += size;
	return true;
}

static struct signal_list *intern(struct signal_list *l, bool told)
{
	struct signal_list **more, *same = NULL;

	if (!l || atomic_load_explicit(&l->lasting, memory_order_relaxed))
		return l;
	pthread_mutex_lock(&interned.lock);
	for (size_t i = 0; i < interned.count && !same; i++)
		if (signal_list_equal(interned.lists[i], l))
			same = signal_list_get(interned.lists[i]);
	if (!same && (!told || may_keep_told(l))) {
		more = reallocarray(interned.lists, interned.count + 1,
				    sizeof(*more));
		if (more) {
			interned.lists = more;
			more[interned.count++] = signal_list_get(l);
			atomic_store_explicit(&l->lasting, true,
					      memory_order_relaxed);
		}
	}
	pthread_mutex_unlock(&interned.lock);
	if (!same)
		return l;
	signal_list_put(l);
	return same;
}

struct signal_list *signal_list_intern(struct signal_list *l)
{
	return intern(l, false);
}

struct signal_list *signal_list_intern_told(struct signal_list *l)
{
	return intern(l, true);
}

int signal_list_check(struct config *c, const json_t *at, const char *key,
		      const struct config_key *more, size_t more_count)
{
	json_t *value = json_object_get(at, key);
	bool single = json_is_object(value);
	size_t n = single ? 1 : json_array_size(value);
	struct signal_entry unused;
	int ret = 0;

	for (size_t i = 0; i < n; i++) {
		json_t *e = single ? value : json_array_get(value, i);

		if (config_unpack(c, e, entry_keys, ARRAY_SIZE(entry_keys),
				  &unused, more, more_count))
			ret = -EINVAL;
	}
	return ret;
}
