/* SPDX-License-Identifier: BSD-2-Clause */
/* Instances of formats and their common options. */
#define LOG_ROOM "gateway/format"
#include "gateway/plugin/format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/keys.h"
#include "gateway/sample/signals.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/nearest.h"

struct format_options {
	const char *type, *delimiter, *separator, *comment_prefix;
	bool header, skip_first_line, ts_origin, ts_received, sequence, data,
		offset;
	int64_t real_precision;
};

#define REFUSED \
	"the signal '%s' is %s, which the format '%s'%s cannot hold; turn it into another type with the hook cast, or use busbar.binary or json"
#define REFUSED_ARGS(f, l, i)                                          \
	(l)->signals[i].name, signal_type_name((l)->signals[i].type),  \
		(f)->type->name,                                       \
		(f)->types != (f)->type->carries.types ?               \
			" with these options" : ""

#define OPTION(field) offsetof(struct format_options, field)

static const struct config_key option_keys[] = {
	{ "type", CONFIG_STRING, OPTION(type), .required = true,
	  .help = "Name of the format" },
	{ "real_precision", CONFIG_INT, OPTION(real_precision), "17",
	  .min = 0, .max = 30,
	  .help = "Digits of real numbers; 17 and 0 both mean exact" },
	{ "ts_origin", CONFIG_BOOL, OPTION(ts_origin), "true",
	  .help = "Carry the origin timestamp" },
	{ "ts_received", CONFIG_BOOL, OPTION(ts_received), "true",
	  .help = "Carry the receive timestamp" },
	{ "sequence", CONFIG_BOOL, OPTION(sequence), "true",
	  .help = "Carry the sequence number" },
	{ "data", CONFIG_BOOL, OPTION(data), "true",
	  .help = "Carry the values" },
	{ "offset", CONFIG_BOOL, OPTION(offset), "true",
	  .help = "Carry the delay between origin and receive timestamp" },
	{ "delimiter", CONFIG_STRING, OPTION(delimiter), "\n",
	  .help = "Character behind each sample" },
	{ "comment_prefix", CONFIG_STRING, OPTION(comment_prefix), "#",
	  .help = "Character that begins a comment line" },
	{ "header", CONFIG_BOOL, OPTION(header), "true",
	  .help = "Write a header line" },
	{ "skip_first_line", CONFIG_BOOL, OPTION(skip_first_line), "false",
	  .help = "Ignore the first line when reading" },
	{ "separator", CONFIG_STRING, OPTION(separator),
	  .help = "Character between columns; the format has a default" },
};

const struct key_table keys_format = { option_keys, ARRAY_SIZE(option_keys) };

/* One character from an option; false after reporting what is wrong. */
static bool take_char(struct config *c, json_t *cfg, const char *key,
		      const char *text, char *out)
{
	if (!text)
		return true;
	if (strlen(text) == 1) {
		*out = text[0];
		return true;
	}
	config_fail(c, cfg, key, "'%.20s' is not one character", text);
	return false;
}

static int apply(struct format *f, struct config *c, json_t *cfg,
		 const struct format_options *o)
{
	f->header = o->header;
	f->skip_first_line = o->skip_first_line;
	f->ts_origin = o->ts_origin;
	f->ts_received = o->ts_received;
	f->sequence = o->sequence;
	f->data = o->data;
	f->offset = o->offset;
	f->real_precision = o->real_precision;
	if (!take_char(c, cfg, "delimiter", o->delimiter, &f->delimiter) ||
	    !take_char(c, cfg, "separator", o->separator, &f->separator) ||
	    !take_char(c, cfg, "comment_prefix", o->comment_prefix,
		       &f->comment_prefix))
		return -EINVAL;
	return 0;
}

/* The common options but for those that the format has keys of its own for
 * (what its writers are used to may have another meaning). */
static size_t common_keys(const struct format_type *type,
			  struct config_key keys[ARRAY_SIZE(option_keys)])
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(option_keys); i++) {
		size_t k = 0;

		while (type && k < type->key_count &&
		       strcmp(type->keys[k].name, option_keys[i].name))
			k++;
		if (!type || k == type->key_count)
			keys[count++] = option_keys[i];
	}
	return count;
}

static int fail_unknown(struct config *c, json_t *cfg, const char *name)
{
	struct nearest near = NEAREST(name);
	char hint[100], places[PLUGIN_PLACES_SIZE], text[PLUGIN_PLACES_SIZE + 300];

	for (const struct plugin *p = format_plugins; p->name; p++)
		nearest_try(&near, p->name);
	nearest_hint(&near, hint, sizeof(hint));
	if (plugin_is_there(format_plugins, name))
		snprintf(text, sizeof(text),
			 "the module of format '%s' cannot be loaded", name);
	else
		snprintf(text, sizeof(text), "no format '%s'%s%s", name, hint,
			 plugin_places(format_plugins, name, hint, places,
				       sizeof(places)));
	if (c && cfg)
		config_fail(c, cfg, json_is_object(cfg) ? "type" : NULL, "%s", text);
	else
		log_error("%s", text);
	return -EINVAL;
}

/* The name that `cfg` gives, NULL when it gives none or something wrong. */
static const char *name_of(const json_t *cfg, const char *fallback)
{
	if (json_is_string(cfg))
		return json_string_value(cfg);
	return cfg ? json_string_value(json_object_get(cfg, "type")) : fallback;
}

long format_refused_signal(const struct format *f,
			   const struct signal_list *signals)
{
	for (unsigned i = 0; f->types && signals && i < signals->count; i++)
		if (!(f->types & FORMAT_TYPE(signals->signals[i].type)))
			return (long)i;
	return -1;
}

int format_check_signals(const struct format *f, struct config *c, json_t *cfg,
			 const struct signal_list *signals)
{
	long i = format_refused_signal(f, signals);

	if (i < 0)
		return 0;
	if (c && cfg)
		config_fail(c, cfg, NULL, REFUSED, REFUSED_ARGS(f, signals, i));
	else
		log_error(REFUSED, REFUSED_ARGS(f, signals, i));
	return -EINVAL;
}

int format_check_use(const struct format *reader, const struct format *writer,
		     struct config *c, const json_t *cfg)
{
	bool read = !reader || reader->type->scan, written = !writer || writer->type->print;

	if (!read)
		config_fail(c, cfg, "format", "'%s' cannot be read", reader->type->name);
	if (!written)
		config_fail(c, cfg, "format", "'%s' cannot be written", writer->type->name);
	return read && written ? 0 : -EINVAL;
}

static int make(struct format **out, struct config *c, json_t *cfg,
		const char *fallback, struct signal_list *signals)
{
	const char *name = name_of(cfg, fallback);
	const struct format_type *type = name ? format_type_find(name) : NULL;
	const json_t *group = json_is_string(cfg) ? NULL : cfg;
	struct config_key common[ARRAY_SIZE(option_keys)];
	struct format_options o;
	struct format *f;
	int ret;

	if (name && !type)
		return fail_unknown(c, cfg, name);
	ret = config_unpack_part(c, NULL, option_keys + 1,
				 ARRAY_SIZE(option_keys) - 1, &o);
	if (group) {
		ret = config_unpack(c, group, common, common_keys(type, common),
				    &o,
				    type ? type->keys : NULL,
				    type ? type->key_count : 0);
		if (ret || !type)
			return ret ? ret : -EINVAL;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->type = type;
	f->types = type->carries.types;
	ret = apply(f, c, cfg, &o);
	if (ret)
		goto err_free;
	ret = -ENOMEM;
	/* Samples that are scanned point at it, and outlive the format. */
	f->signals = signal_list_intern(signals ? signal_list_get(signals) :
					signal_list_new(0, SIGNAL_FLOAT));
	f->private_data = calloc(1, type->size ? type->size : 1);
	if (!f->signals || !f->private_data)
		goto err_parts;
	ret = config_unpack_part(c, group, type->keys, type->key_count,
				 f->private_data);
	if (!ret && type->init)
		ret = type->init(f);
	if (ret && !f->error[0])
		snprintf(f->error, sizeof(f->error),
			 "the format '%s' cannot be made ready: %s", name,
			 strerror(-ret));
	/* Always by config_fail(): what is only logged is no error of `check`. */
	if (ret && c)
		config_fail(c, cfg, NULL, "%s", f->error);
	else if (ret)
		log_error("format %s: %s", name, f->error);
	if (ret)
		goto err_parts;
	/* `separator` 0 until here lets init() put its own default. */
	if (!f->separator)
		f->separator = ',';
	if (!type->header)
		f->header = false;
	ret = format_check_signals(f, c, cfg, f->signals);
	if (ret)
		goto err_init;
	*out = f;
	return 0;

err_init:
	if (type->destroy)
		type->destroy(f);
err_parts:
	free(f->private_data);
	signal_list_put(f->signals);
err_free:
	free(f);
	return ret;
}

/* raw.32.be: bits and byte order stood in the name. */
static json_t *raw_settings(const char *name)
{
	char order[4] = "";
	int bits = 0, end = 0;

	if (sscanf(name, "raw.%2d%n.%3s%n", &bits, &end, order, &end) < 1 ||
	    name[end] || (bits != 8 && bits != 16 && bits != 32 && bits != 64) ||
	    (*order && strcmp(order, "be") && strcmp(order, "le")))
		return NULL;
	return json_pack("{sssiss}", "type", "raw", "bits", bits, "endianess",
			 !strcmp(order, "be") ? "big" : "little");
}

/* villas-human: a dash where a dot stands now. */
static json_t *dotted(const char *name)
{
	char text[64];

	if (strlen(name) >= sizeof(text) || !strchr(name, '-'))
		return NULL;
	strcpy(text, name);
	for (char *p = text; (p = strchr(p, '-'));)
		*p = '.';
	return format_type_find(text) ? json_pack("{ss}", "type", text) : NULL;
}

/* The settings that an older name of a format stands for, such as gtnet.fake, with
 * all others of `cfg` (a name or a group); a new reference, or NULL when the name is
 * none of those. */
static json_t *former_format(const json_t *cfg)
{
	const char *name = json_string_value(json_is_string(cfg) ? cfg :
					     json_object_get(cfg, "type"));
	json_t *settings;

	if (!name || format_type_find(name))
		return NULL;
	if (!strcmp(name, "gtnet.fake"))
		settings = json_pack("{sssb}", "type", "gtnet", "fake", 1);
	else if (!strncmp(name, "raw.", 4))
		settings = raw_settings(name);
	else
		settings = dotted(name);
	if (settings && json_is_object(cfg))
		json_object_update_missing(settings, (json_t *)cfg);
	return settings;
}

int format_new(struct format **out, struct config *c, json_t *cfg,
	       const char *fallback, struct signal_list *signals)
{
	json_t *settings = former_format(cfg);
	int ret = make(out, c, settings ? settings : cfg, fallback, signals);

	json_decref(settings);
	return ret;
}

void format_destroy(struct format *f)
{
	if (!f)
		return;
	if (f->type->destroy)
		f->type->destroy(f);
	signal_list_put(f->signals);
	free(f->private_data);
	free(f);
}

bool format_may_end(struct format *f, const char *buf, size_t len,
		    struct format_unfinished *u)
{
	size_t seen = MIN(u->seen, len);

	if (f->type->may_end)
		return f->type->may_end(f, buf, len, u);
	if (!f->type->lines || f->binary)
		return true;
	u->seen = len;
	return memchr(buf + seen, f->delimiter, len - seen) != NULL;
}
