/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of routed messages (R-GOOSE) of a node of type `iec61850-8-1`. */
#define LOG_ROOM "gateway/iec61850-8-1"
#include "gateway/node/iec61850-8-1/goose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Keys that say nothing without `routed`. */
static const char *const in_keys[] = { "local_address", "local_port", "multicast_groups" };
static const char *const out_keys[] = { "local_address", "local_port", "remote_address", "remote_port",
					"ttl", "session_version" };

static bool is_empty(const json_t *list)
{
	return json_is_array(list) && !json_array_size(list);
}

static int refuse_without(struct config *c, const json_t *at, bool routed, const char *const keys[],
			  size_t count)
{
	int ret = 0;

	for (size_t i = 0; i < count && !routed; i++)
		if (goose_is_given(at, keys[i]) && !is_empty(json_object_get(at, keys[i]))) {
			config_fail(c, at, keys[i], "is of R-GOOSE (over UDP), which `routed` = true turns on");
			ret = -EINVAL;
		}
	return ret;
}

static int refuse_security(struct config *c, const json_t *at, const char *key)
{
	if (!goose_is_given(at, key))
		return 0;
	config_fail(c, at, key, "is of signed or encrypted messages of R-GOOSE, which are not supported; without it they have neither");
	return -EINVAL;
}

static int parse_local(struct goose_routed *r, struct config *c, const json_t *at)
{
	if (routed_parse(r->local_address, (uint16_t)r->local_port, &r->local))
		return 0;
	config_fail(c, at, "local_address", "'%.60s' is no address of IPv4 or IPv6 in numbers", r->local_address);
	return -EINVAL;
}

static int add_group(struct goose_routed *r, const struct socket_address *group)
{
	struct socket_address *more = reallocarray(r->groups, r->group_count + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	r->groups = more;
	r->groups[r->group_count++] = *group;
	return 0;
}

static int parse_group(struct goose_routed *r, struct config *c, const json_t *at, const json_t *text)
{
	struct socket_address group;

	if (json_is_string(text) && routed_parse(json_string_value(text), 0, &group) &&
	    socket_address_is_multicast(&group) && group.sa.sa_family == r->local.sa.sa_family)
		return add_group(r, &group);
	config_fail(c, at, "multicast_groups", "are addresses of groups in numbers, such as \"239.1.2.3\", of the same family as local_address");
	return -EINVAL;
}

static int parse_groups(struct goose_routed *r, struct config *c, const json_t *at)
{
	json_t *text;
	size_t i;
	int ret = 0;

	if (!r->groups_cfg || json_is_null(r->groups_cfg))
		return 0;
	if (!json_is_array(r->groups_cfg))
		return parse_group(r, c, at, r->groups_cfg);
	json_array_foreach(r->groups_cfg, i, text)
		ret = parse_group(r, c, at, text) ?: ret;
	return ret;
}

int goose_routing_join(struct goose_node *g, const char *text)
{
	struct goose_routed *r = &g->in.routed;
	struct socket_address group;

	if (!text || !routed_parse(text, 0, &group) || !socket_address_is_multicast(&group) ||
	    group.sa.sa_family != r->local.sa.sa_family)
		return 0;
	for (unsigned i = 0; i < r->group_count; i++)
		if (socket_address_equal(&r->groups[i], &group, false))
			return 0;
	return add_group(r, &group);
}

int goose_routing_parse(struct goose_node *g, struct config *c, const json_t *cfg)
{
	struct goose_routed *in = &g->in.routed, *out = &g->out.routed;
	const json_t *in_cfg = g->node->in.cfg, *out_cfg = g->node->out.cfg;
	int ret = refuse_security(c, cfg, "keys");

	ret = refuse_security(c, out_cfg, "key_id") ?: ret;
	ret = refuse_without(c, in_cfg, in->enabled, in_keys, ARRAY_SIZE(in_keys)) ?: ret;
	ret = refuse_without(c, out_cfg, out->enabled, out_keys, ARRAY_SIZE(out_keys)) ?: ret;
	if (!ret && in->enabled)
		ret = parse_local(in, c, in_cfg) ?: parse_groups(in, c, in_cfg);
	if (!ret && out->enabled)
		ret = parse_local(out, c, out_cfg);
	if (out->enabled && goose_is_given(out_cfg, "vlan")) {
		config_fail(c, out_cfg, "vlan", "is of frames of Ethernet, and `routed` messages are sent over UDP");
		ret = -EINVAL;
	}
	return ret;
}

int goose_routing_parse_sink(struct goose_node *g, struct goose_sink *s, struct config *c,
			     const json_t *at)
{
	const struct goose_routed *r = &g->out.routed;
	const char *text = s->dst_text ? s->dst_text : r->remote_address;

	if (goose_is_given(at, "vlan")) {
		config_fail(c, at, "vlan", "is of frames of Ethernet, and `routed` messages are sent over UDP");
		return -EINVAL;
	}
	if (routed_parse(text, (uint16_t)r->remote_port, &s->to) &&
	    s->to.sa.sa_family == r->local.sa.sa_family)
		return 0;
	config_fail(c, s->dst_text ? at : g->node->out.cfg, s->dst_text ? "dst_address" : "remote_address",
		    "'%.60s' is no address in numbers of the same family (IPv4 or IPv6) as local_address", text);
	return -EINVAL;
}

struct routed_settings goose_routing_settings(const struct goose_routed *r, const json_t *cfg,
					      const char *interface, bool out)
{
	return (struct routed_settings){
		.local = r->local, .interface = goose_is_given(cfg, "interface") ? interface : NULL,
		.groups = r->groups, .group_count = r->group_count, .ttl = out ? (int)r->ttl : 0,
	};
}
