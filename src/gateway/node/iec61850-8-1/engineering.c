/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of a node of type `iec61850-8-1` from engineering files (SCL): the key `scl` of
 * subscribers and publishers. Keys that the configuration gives come before the file. */
#define LOG_ROOM "gateway/iec61850-8-1"
#include "gateway/node/iec61850-8-1/goose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PRIORITY_DEFAULT 4

/* Where a message about the address points to. */
static unsigned address_line(const struct scl_control *f)
{
	return f->address_line ? f->address_line : f->line;
}

static void take_text(struct config *c, const json_t *at, const char *key,
		      const struct scl_choice *from,
		      unsigned line, const char *said, const char **to)
{
	if (!*to)
		*to = said;
	else if (said && strcmp(*to, said))
		scl_say_overruled(c, at, key, from, line, "'%.150s'", said);
}

/* Two addresses may be spelled differently. */
static void take_address(struct config *c, const json_t *at, const struct scl_choice *from,
			 const char **to)
{
	const struct scl_control *f = from->control;
	uint8_t a[ETHERNET_MAC], b[ETHERNET_MAC];

	if (!*to)
		*to = f->mac;
	else if (f->mac && ethernet_parse(*to, a) && ethernet_parse(f->mac, b) &&
		 memcmp(a, b, sizeof(a)))
		scl_say_overruled(c, at, "dst_address", from, address_line(f), "'%s'", f->mac);
}

/* Frames of Ethernet and datagrams of UDP have different addresses. */
static void say_protocol(struct config *c, const json_t *at, const struct scl_choice *from,
			 bool routed)
{
	const char *protocol = from->control->protocol;

	if (protocol && !strcmp(protocol, "R-GOOSE") && !routed)
		scl_say_overruled(c, at, "scl", from, from->control->line,
				  "the protocol R-GOOSE, without `routed` = true,");
}

static void take_number(struct config *c, const json_t *at, const char *key,
			const struct scl_choice *from,
			unsigned line, bool has, int64_t said, int64_t *to)
{
	if (has && !goose_is_given(at, key))
		*to = said;
	else if (has && *to != said)
		scl_say_overruled(c, at, key, from, line, strcmp(key, "app_id") ? "%jd" : "0x%04jx",
				  (intmax_t)said);
}

int goose_source_from_scl(struct goose_node *g, struct goose_source *s, struct config *c,
			  const json_t *at)
{
	const struct scl_control *f;
	int ret = scl_choose(&g->files, c, at, s->scl_cfg, SCL_GOOSE, scl_read_keys, SCL_KEYS,
			     &s->scl);

	f = s->scl.control;
	if (ret || !f)
		return ret;
	take_text(c, at, "go_cb_ref", &s->scl, f->line, f->reference, &s->reference);
	say_protocol(c, at, &s->scl, g->in.routing.enabled);
	if (!g->in.routing.enabled)
		take_address(c, at, &s->scl, &s->dst_text);
	else if (routing_join(&g->in.routing, f->ip))
		return -ENOMEM;
	take_number(c, at, "app_id", &s->scl, address_line(f), f->has_appid, f->appid, &s->app_id);
	take_number(c, at, "conf_rev", &s->scl, f->line, f->has_revision, f->revision,
		    &s->revision);
	s->has_revision = f->has_revision;
	return 0;
}

int goose_sink_from_scl(struct goose_node *g, struct goose_sink *s, struct config *c,
			const json_t *at)
{
	const struct scl_control *f;
	int ret = scl_choose(&g->files, c, at, s->scl_cfg, SCL_GOOSE, scl_write_keys, SCL_KEYS,
			     &s->scl);

	f = s->scl.control;
	if (ret || !f)
		return ret;
	take_text(c, at, "go_id", &s->scl, f->line, f->id, &s->id);
	take_text(c, at, "go_cb_ref", &s->scl, f->line, f->reference, &s->reference);
	take_text(c, at, "data_set_ref", &s->scl, f->line, f->dataset, &s->dataset);
	say_protocol(c, at, &s->scl, g->out.routing.enabled);
	if (f->fixed_offsets)
		config_warn(c, at, "scl", "%s:%u: fixedOffs is not supported: lengths in messages depend on the values",
			    scl_name(s->scl.scl), f->line);
	if (g->out.routing.enabled)
		take_text(c, at, "dst_address", &s->scl, address_line(f), f->ip, &s->dst_text);
	else
		take_address(c, at, &s->scl, &s->dst_text);
	take_number(c, at, "app_id", &s->scl, address_line(f), f->has_appid, f->appid, &s->app_id);
	take_number(c, at, "conf_rev", &s->scl, f->line, f->has_revision, f->revision,
		    &s->revision);
	return 0;
}

void goose_sending_from_scl(struct goose_sink *s)
{
	const struct scl_control *f = s->scl.control;
	struct goose_retransmission *r = &s->retransmission;

	if (!f)
		return;
	if (f->has_vlan_id || f->has_vlan_priority)
		s->vlan = (struct goose_vlan){ true, f->vlan_id,
					       f->has_vlan_priority ? f->vlan_priority :
					       PRIORITY_DEFAULT };
	if (f->max_s > 0)
		r->max_s = f->max_s;
	if (f->min_s > 0)
		r->min_s = f->min_s;
	/* Where the file says only one of them. */
	if (f->min_s > 0 && f->max_s <= 0)
		r->max_s = MAX(r->max_s, r->min_s);
	else
		r->min_s = MIN(r->min_s, r->max_s);
}

/* ---- the data set ---- */

struct filling {
	struct goose_sink *s;
	const json_t *at;
	const json_t *names;  /* of signals, for the values that need one; NULL: their own */
	unsigned named;       /* so many have been used */
};

static bool needs_signal(const struct scl_data *d)
{
	return !scl_is_text(d) && !scl_is_quality(d) && !scl_is_time(d);
}

static int count_value(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth)
{
	unsigned *count = arg;

	*count += needs_signal(d);
	return 0;
}

static size_t count_all(const struct scl_data *list, unsigned count)
{
	size_t all = count;

	for (unsigned i = 0; i < count; i++)
		all += count_all(list[i].parts, list[i].count);
	return all;
}

/* A quality that is good, a time, or an empty text: what a value holds that no signal brings. */
static void fill_value(struct filling *f, const struct scl_data *d, struct goose_entry *e)
{
	static const uint8_t zeros[64];

	e->type = mms_type_find(d->basic->mms_type);
	e->bits = d->basic->bits;
	e->value = (struct goose_value){ .type = e->type->tag };
	if (scl_is_text(d)) {
		e->value.bytes = (struct ber){ zeros, MIN((size_t)d->basic->bits, sizeof(zeros)) };
		return;
	}
	if (e->type->tag == GOOSE_BIT_STRING)
		e->value.bits = e->bits;
	e->signal = d->name;
	e->optional = !needs_signal(d);
	if (e->optional)
		return;
	/* A sample that is too short for it is refused. */
	e->value.type = 0;
	if (f->names)
		e->signal = json_string_value(json_array_get(f->names, f->named++));
}

static void fill(struct filling *f, const struct scl_data *list, unsigned count, unsigned first)
{
	struct goose_sink *s = f->s;

	s->total += count;
	for (unsigned i = 0; i < count; i++) {
		struct goose_entry *e = &s->data[first + i];

		e->cfg = f->at;
		if (list[i].basic) {
			fill_value(f, &list[i], e);
			continue;
		}
		e->group = list[i].array ? GOOSE_ARRAY : GOOSE_STRUCTURE;
		e->first = s->total;
		e->part_count = list[i].count;
		fill(f, list[i].parts, list[i].count, e->first);
	}
}

static int check_signals(const struct goose_sink *s, struct config *c)
{
	const json_t *names = s->scl.settings.signals, *name;
	unsigned needed = 0;
	size_t i;

	if (!names || json_is_null(names))
		return 0;
	scl_each_value(s->scl.control, count_value, &needed);
	if (!json_is_array(names) || json_array_size(names) != needed) {
		config_fail(c, s->scl_cfg, "signals",
			    "is a list of %u names, as the data set has %u values besides qualities, times and texts",
			    needed, needed);
		return -EINVAL;
	}
	json_array_foreach(names, i, name)
		if (!json_is_string(name)) {
			config_fail(c, s->scl_cfg, "signals", "is a list of names of signals");
			return -EINVAL;
		}
	return 0;
}

int goose_data_from_scl(struct goose_sink *s, struct config *c, const json_t *at)
{
	const struct scl_control *control = s->scl.control;
	struct filling f = { .s = s, .at = at };
	int ret = check_signals(s, c);

	if (json_is_array(s->scl.settings.signals))
		f.names = s->scl.settings.signals;
	ret = ret ? ret : goose_data_allocate(s, count_all(control->data, control->count));
	if (ret)
		return ret;
	s->count = control->count;
	fill(&f, control->data, control->count, 0);
	return 0;
}
