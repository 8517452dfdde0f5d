/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of a node of type `iec61850-9-2` from engineering files (SCL); see sampled_values.h. */
#define LOG_ROOM "gateway/iec61850-9-2"
#include "gateway/node/iec61850-9-2/sampled_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRIORITY_DEFAULT 4

/* One direction, while it is filled. */
struct filling {
	struct config *c;
	const json_t *at, *cfg; /* the direction, and the node */
	const struct scl_choice *scl;
	unsigned address_line;
};

static bool is_given(const json_t *at, const char *key)
{
	const json_t *value = json_object_get(at, key);

	return value && !json_is_null(value);
}

/* `former`: an older name of the key, or NULL. */
static bool is_own(const struct filling *f, const char *key, const char *former)
{
	return is_given(f->at, key) || (former && is_given(f->at, former));
}

static void take_text(const struct filling *f, const char *key, const char *former, const char *own,
		      const char *said, const char **to)
{
	if (!is_own(f, key, former))
		*to = said;
	else if (strcmp(own ? own : "", said))
		scl_say_overruled(f->c, f->at, is_given(f->at, key) ? key : former, f->scl,
				  f->scl->control->line, "'%.150s'", said);
}

static void take_number(const struct filling *f, const char *key, const char *former, int64_t own,
			int64_t said, int64_t *to)
{
	if (!is_own(f, key, former))
		*to = said;
	else if (own != said)
		scl_say_overruled(f->c, f->at, is_given(f->at, key) ? key : former, f->scl,
				  f->scl->control->line, "%jd", (intmax_t)said);
}

/* Of the node, for both directions. */
static void take_address(const struct filling *f, struct sv_node *v)
{
	const char *said = f->scl->control->mac;
	uint8_t a[ETHERNET_MAC], b[ETHERNET_MAC];

	if (!said)
		return;
	if (!is_given(f->cfg, "dst_address"))
		v->dst_text = said;
	else if (ethernet_parse(v->dst_text, a) && ethernet_parse(said, b) &&
		 memcmp(a, b, sizeof(a)))
		scl_say_overruled(f->c, f->cfg, "dst_address", f->scl, f->address_line, "'%s'",
				  said);
}

static void take_app_id(const struct filling *f, const json_t *at, int64_t *to)
{
	const struct scl_control *said = f->scl->control;

	if (!said->has_appid)
		return;
	if (!is_given(at, "app_id"))
		*to = said->appid;
	else if (*to != said->appid)
		scl_say_overruled(f->c, at, "app_id", f->scl, f->address_line, "0x%04x",
				  said->appid);
}

static void fill_in(const struct filling *f, struct sv_node *v)
{
	const struct scl_control *said = f->scl->control;
	struct sv_in_settings *i = &v->in;

	take_text(f, "sv_id", NULL, i->sv_id, said->id, &i->sv_id);
	if (said->has_revision) {
		take_number(f, "conf_rev", NULL, i->conf_rev, said->revision, &i->conf_rev);
		i->has_conf_rev = true;
	}
	if (said->mode == SV_PER_SECOND)
		take_number(f, "smp_rate", NULL, i->smp_rate, said->rate, &i->smp_rate);
	if (!v->in.routing.enabled)
		take_address(f, v);
	take_app_id(f, is_given(f->at, "app_id") ? f->at : f->cfg, &i->app_id);
}

static void fill_options(const struct filling *f, struct sv_node *v)
{
	const struct scl_control *said = f->scl->control;
	struct sv_out_settings *o = &v->out;

	if (!is_own(f, "smp_mod", "smpmod")) {
		o->smp_mod = said->mode;
		o->has_smp_mod = true;
	} else if ((is_given(f->at, "smp_mod") ? o->smp_mod : o->smpmod) != said->mode) {
		scl_say_overruled(f->c, f->at, is_given(f->at, "smp_mod") ? "smp_mod" : "smpmod",
				  f->scl,
				  said->line, "smpMod");
	}
	if (!is_given(f->at, "refr_tm"))
		o->refr_tm = said->with_time;
	if (!is_given(f->at, "announce"))
		o->announce = said->with_rate;
	if ((said->has_vlan_id || said->has_vlan_priority) && !is_given(f->at, "vlan") &&
	    !is_given(f->at, "vlan_id") && !is_given(f->at, "vlan_priority"))
		v->vlan = (struct sv_vlan){ true, said->vlan_id,
					    said->has_vlan_priority ? said->vlan_priority :
					    PRIORITY_DEFAULT };
}

static void fill_out(const struct filling *f, struct sv_node *v)
{
	const struct scl_control *said = f->scl->control;
	struct sv_out_settings *o = &v->out;

	take_text(f, "sv_id", "svid", is_given(f->at, "sv_id") ? o->sv_id : o->svid, said->id,
		  &o->sv_id);
	if (said->with_dataset)
		take_text(f, "datset", NULL, o->datset, said->dataset, &o->datset);
	if (said->has_revision)
		take_number(f, "conf_rev", "confrev",
			    is_given(f->at, "conf_rev") ? o->conf_rev : o->confrev, said->revision,
			    &o->conf_rev);
	take_number(f, "smp_rate", "smprate",
		    is_given(f->at, "smp_rate") ? o->smp_rate : o->smprate, said->rate, &o->smp_rate);
	take_number(f, "asdus", NULL, o->asdus, said->asdus, &o->asdus);
	fill_options(f, v);
	if (v->out.routing.enabled && said->ip)
		take_text(f, "remote_address", NULL, v->out.routing.remote_address, said->ip,
			  &v->out.routing.remote_address);
	if (!v->out.routing.enabled)
		take_address(f, v);
	take_app_id(f, f->cfg, &v->app_id);
}

/* Both directions have one destination. */
static int check_address(const struct sv_node *v, struct config *c)
{
	const struct scl_control *in = v->in.scl.control, *out = v->out.scl.control;

	if (!in || !out || !in->mac || !out->mac || !v->in.check_dst_address ||
	    !strcasecmp(in->mac, out->mac))
		return 0;
	config_fail(c, v->node->in.cfg, "check_dst_address",
		    "the files send to %s and read from %s: two nodes are needed", out->mac, in->mac);
	return -EINVAL;
}

int sv_take_scl(struct sv_node *v, struct config *c, const json_t *cfg)
{
	struct node *n = v->node;
	struct filling f = { .c = c, .cfg = cfg };
	int ret = scl_choose(&v->files, c, n->in.cfg, v->in.scl_cfg, SCL_SAMPLED_VALUES,
			     scl_read_keys,
			     SCL_KEYS, &v->in.scl);

	ret = scl_choose(&v->files, c, n->out.cfg, v->out.scl_cfg, SCL_SAMPLED_VALUES,
			 scl_file_keys,
			 SCL_FILE_KEYS, &v->out.scl) ?: ret;
	if (ret)
		return ret;
	if (!is_given(n->in.cfg, "app_id"))
		v->in.app_id = v->app_id;
	if (v->in.scl.control) {
		f.at = n->in.cfg;
		f.scl = &v->in.scl;
		f.address_line = f.scl->control->address_line;
		fill_in(&f, v);
		if (v->in.routing.enabled)
			ret = routing_join(&v->in.routing, f.scl->control->ip);
	}
	if (v->out.scl.control) {
		f.at = n->out.cfg;
		f.scl = &v->out.scl;
		f.address_line = f.scl->control->address_line;
		fill_out(&f, v);
	}
	return ret ? ret : check_address(v, c);
}

/* ---- data sets ---- */

static struct signal_list *list_signals(const struct scl_sampled values[], unsigned count,
					const char *prefix)
{
	struct signal_list *l = signal_list_alloc(count);
	char name[2000];

	for (unsigned i = 0; l && i < count; i++) {
		snprintf(name, sizeof(name), "%s%s", prefix ? prefix : "", values[i].data->name);
		if (signal_set(&l->signals[i], name, NULL, SIGNAL_FLOAT)) {
			signal_list_put(l);
			return NULL;
		}
	}
	return l;
}

static size_t size_of(const struct data_set *d)
{
	return d ? d->size : 0;
}

/* Of a direction without signals in the configuration; or else warns if they are others. */
static int take_data(struct sv_node *v, struct config *c, struct node_direction *d,
		     const struct scl_choice *scl, struct data_set **set)
{
	struct scl_sampled *values;
	char why[SCL_WHY_MAX];
	struct data_set *said = NULL;
	struct signal_list *l;
	unsigned count;
	int ret = scl_sampled_values(scl->scl, scl->control, &values, &count, why);

	if (ret) {
		config_fail(c, d->cfg, "scl", "%s", why);
		return ret;
	}
	l = list_signals(values, count, scl->settings.prefix);
	ret = l ? data_set_from_scl(&said, values, l) : -ENOMEM;
	if (ret || d->signals) {
		if (!ret && size_of(*set) != said->size)
			scl_say_overruled(c, d->cfg, "signals", scl, scl->control->line,
					  "a data set of %zu bytes by one of %zu, instead of that", said->size,
					  size_of(*set));
		signal_list_put(l);
		free(said);
		return ret;
	}
	*set = said;
	if (d == &v->node->in)
		d->signals = l;
	else
		signal_list_put(l);
	return 0;
}

int sv_take_scl_data(struct sv_node *v, struct config *c)
{
	int ret = 0;

	if (v->in.scl.control)
		ret = take_data(v, c, &v->node->in, &v->in.scl, &v->in_set);
	if (v->out.scl.control)
		ret = take_data(v, c, &v->node->out, &v->out.scl, &v->out_set) ?: ret;
	return ret;
}
