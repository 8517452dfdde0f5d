/* SPDX-License-Identifier: BSD-2-Clause */
/* See routing.h. */
#include "gateway/part/routing.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/container_of.h"

/* Keys that say nothing without `routed`. */
static const char *const dependent[] = { "local_address", "local_port", "multicast_groups",
					 "remote_address", "remote_port", "ttl", "session_version" };

static bool is_given(const json_t *at, const char *key)
{
	const json_t *value = json_object_get(at, key);

	return value && !json_is_null(value) && !(json_is_array(value) && !json_array_size(value));
}

static int refuse_dependent(struct config *c, const json_t *at)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(dependent); i++)
		if (is_given(at, dependent[i])) {
			config_fail(c, at, dependent[i],
				    "is of routed messages (over UDP), which `routed` = true turns on");
			ret = -EINVAL;
		}
	return ret;
}

/* A socket can join a group once. */
static int add_group(struct routing *r, const struct socket_address *group)
{
	struct socket_address *more;

	for (unsigned i = 0; i < r->group_count; i++)
		if (socket_address_equal(&r->groups[i], group, false))
			return 0;
	more = reallocarray(r->groups, r->group_count + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	r->groups = more;
	r->groups[r->group_count++] = *group;
	return 0;
}

static bool parse_group(const struct routing *r, const char *text, struct socket_address *out)
{
	return text && routed_parse(text, 0, out) && socket_address_is_multicast(out) &&
	       out->sa.sa_family == r->local.sa.sa_family;
}

static int take_group(struct routing *r, struct config *c, const json_t *at, const json_t *text)
{
	struct socket_address group;

	if (parse_group(r, json_string_value(text), &group))
		return add_group(r, &group);
	config_fail(c, at, "multicast_groups",
		    "are addresses of groups in numbers, such as \"239.1.2.3\", of the same family as local_address");
	return -EINVAL;
}

/* A socket with an address of its own gets nothing that is sent to groups. */
static bool is_any(const struct socket_address *a)
{
	return a->sa.sa_family == AF_INET ? a->in4.sin_addr.s_addr == INADDR_ANY :
					    IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
}

static int take_groups(struct routing *r, struct config *c, const json_t *at)
{
	json_t *text;
	size_t i;
	int ret = 0;

	if (!r->groups_cfg || json_is_null(r->groups_cfg))
		return 0;
	if (!json_is_array(r->groups_cfg))
		return take_group(r, c, at, r->groups_cfg);
	json_array_foreach(r->groups_cfg, i, text)
		ret = take_group(r, c, at, text) ?: ret;
	return ret;
}

int routing_parse(struct routing *r, struct config *c, const json_t *at, bool out)
{
	if (!r->enabled)
		return refuse_dependent(c, at);
	if (!routed_parse(r->local_address, (uint16_t)r->local_port, &r->local)) {
		config_fail(c, at, "local_address",
			    "'%.60s' is no address of IPv4 or IPv6 in numbers",
			    r->local_address);
		return -EINVAL;
	}
	if (socket_address_is_multicast(&r->local)) {
		config_fail(c, at, "local_address",
			    "'%.60s' is the address of a group, which multicast_groups joins",
			    r->local_address);
		return -EINVAL;
	}
	if (out && is_given(at, "vlan")) {
		config_fail(c, at, "vlan",
			    "is of frames of Ethernet, and `routed` messages are sent over UDP");
		return -EINVAL;
	}
	if (out || take_groups(r, c, at))
		return out ? 0 : -EINVAL;
	if (!r->group_count || is_any(&r->local))
		return 0;
	config_fail(c, at, "local_address",
		    "'%.60s' gets nothing that is sent to multicast_groups; 0.0.0.0 or :: does",
		    r->local_address);
	return -EINVAL;
}

int routing_parse_to(const struct routing *r, struct config *c, const json_t *at, const char *key,
		     const char *text, struct socket_address *to)
{
	if (routed_parse(text, (uint16_t)r->remote_port, to) &&
	    to->sa.sa_family == r->local.sa.sa_family)
		return 0;
	config_fail(c, at, key,
		    "'%.60s' is no address in numbers of the same family (IPv4 or IPv6) as local_address",
		    text);
	return -EINVAL;
}

int routing_join(struct routing *r, const char *text)
{
	struct socket_address group;

	return parse_group(r, text, &group) ? add_group(r, &group) : 0;
}

void routing_free(struct routing *r)
{
	free(r->groups);
	r->groups = NULL;
	r->group_count = 0;
}

int routing_open(const struct routing *r, const char *interface, bool out, struct routed *socket,
		 char *why)
{
	const struct routed_settings s = {
		.local = r->local, .interface = interface, .groups = r->groups,
		.group_count = r->group_count, .ttl = out ? (int)r->ttl : 0,
	};

	if (!out && r->group_count && !is_any(&r->local)) {
		snprintf(why, SOCKET_WHY_MAX,
			 "local_address %.60s gets nothing that is sent to groups; 0.0.0.0 or :: does",
			 r->local_address);
		return -EINVAL;
	}
	return routed_open(socket, &s, why);
}
