/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a description node by node and link by link, and finding its nodes. See topology.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology/lookup.h"
#include "fabric/topology/say.h"
#include "fabric/topology/topology.h"
#include "util/plain_text.h"

/* EUI-64s with the bit of local administration; 256 for each node. */
#define FIRST_GUID UINT64_C(0x0200000000000100)
#define VENDOR_MAX 0xffffff

struct topology *topology_new(void)
{
	struct topology *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->index = calloc(1, sizeof(*t->index));
	if (!t->index) {
		free(t);
		return NULL;
	}
	t->index->next_guid = FIRST_GUID;
	return t;
}

void topology_free(struct topology *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->node_count; i++)
		free(t->nodes[i].ports);
	topology_table_free(&t->index->ids);
	topology_table_free(&t->index->names);
	topology_table_free(&t->index->guids);
	topology_table_free(&t->index->port_guids);
	free(t->index);
	free(t->nodes);
	free(t->links);
	free(t);
}

/* Grows an array of `count` elements so that it has room for one more: doubled at powers of two. */
static int make_room(void **array, uint32_t count, size_t bytes)
{
	void *larger;

	if (count & (count - 1))
		return 0;
	larger = reallocarray(*array, count ? 2 * (size_t)count : 1, bytes);
	if (!larger)
		return -ENOMEM;
	*array = larger;
	return 0;
}

/* ---- nodes ---- */

/* NULL, or what is wrong with an id or name. */
static const char *name_fault(const char *name)
{
	size_t bytes = strnlen(name, TOPOLOGY_NAME_MAX + 1);

	if (bytes > TOPOLOGY_NAME_MAX)
		return "is longer than 64 bytes";
	for (size_t i = 0; i < bytes; i++)
		if (plain_text_control(name + i) || name[i] == '"')
			return "contains a quotation mark or a control character";
	return NULL;
}

static int check_node(const struct topology *t, const struct topology_node *n, char *why, size_t why_bytes)
{
	const char *fault = name_fault(n->id);

	if (t->node_count >= TOPOLOGY_NODES_MAX)
		return topology_say(why, why_bytes, -ENOSPC, "more than %d nodes", TOPOLOGY_NODES_MAX);
	if (!fault && !n->id[0])
		fault = "is empty";
	if (!fault && strpbrk(n->id, "#@"))
		fault = "contains # or @, which ibsim reserves";
	if (fault)
		return topology_say(why, why_bytes, -EINVAL, "the name of a node %s", fault);
	fault = name_fault(n->name);
	if (fault)
		return topology_say(why, why_bytes, -EINVAL, "the description of '%s' %s", n->id, fault);
	if (n->kind != TOPOLOGY_HCA && n->kind != TOPOLOGY_SWITCH)
		return topology_say(why, why_bytes, -EINVAL,
				    "'%s' is neither a switch nor a host adapter: a description is one subnet, "
				    "without routers",
				    n->id);
	if (n->port_count < 1 || n->port_count > TOPOLOGY_PORTS_MAX)
		return topology_say(why, why_bytes, -EINVAL, "'%s' has %u ports, a node can have 1 to %d",
				    n->id, n->port_count, TOPOLOGY_PORTS_MAX);
	if (n->guid > UINT64_MAX - TOPOLOGY_PORTS_MAX)
		return topology_say(why, why_bytes, -EINVAL,
				    "the GUID of '%s' leaves no room for those of its ports", n->id);
	if (n->vendor_id > VENDOR_MAX)
		return topology_say(why, why_bytes, -EINVAL, "the vendor of '%s' has more than 24 bits", n->id);
	if (topology_find_id(t, n->id) != TOPOLOGY_NONE)
		return topology_say(why, why_bytes, -EEXIST, "there are two nodes '%s'", n->id);
	return 0;
}

static bool port_guid_is_used(const struct topology *t, uint64_t guid)
{
	return topology_table_find(&t->index->port_guids, guid) != TOPOLOGY_NONE;
}

/* A GUID that no node has and that is followed by `ports` ones that no port has. */
static uint64_t free_guid(struct topology *t, unsigned ports)
{
	for (;;) {
		uint64_t guid = t->index->next_guid;
		bool used = topology_find_guid(t, guid) != TOPOLOGY_NONE;

		t->index->next_guid += 256;
		for (unsigned i = 0; i <= ports && !used; i++)
			used = port_guid_is_used(t, guid + i);
		if (!used)
			return guid;
	}
}

static bool is_given(const struct topology_node *n, uint64_t guid)
{
	for (unsigned i = 0; n->ports && n->kind == TOPOLOGY_HCA && i <= n->port_count; i++)
		if (n->ports[i].guid == guid)
			return true;
	return false;
}

/* The GUIDs of the ports of `n` into `ports`; those that `from` gives, or what follows the node's. */
static void fill_ports(struct topology *t, const struct topology_node *n, const struct topology_node *from,
		       struct topology_port *ports)
{
	bool is_switch = n->kind == TOPOLOGY_SWITCH;

	for (unsigned i = 0; i <= n->port_count; i++) {
		uint64_t given = from->ports ? from->ports[i].guid : 0;

		ports[i] = (struct topology_port){ 0, TOPOLOGY_NONE };
		if (is_switch == (i > 0))
			continue;
		ports[i].guid = given ? given : n->guid + i;
		/* Some adapters number their ports from the node's GUID on. */
		if (!given && is_given(from, ports[i].guid))
			ports[i].guid = free_guid(t, 0);
	}
}

static int check_guids(const struct topology *t, const struct topology_node *n, char *why, size_t why_bytes)
{
	uint32_t other = topology_find_guid(t, n->guid);

	if (other != TOPOLOGY_NONE)
		return topology_say(why, why_bytes, -EEXIST,
				    "'%s' and '%s' have the same GUID 0x%016" PRIx64, t->nodes[other].id, n->id,
				    n->guid);
	for (unsigned i = 0; i <= n->port_count; i++) {
		struct topology_end end;

		if (!n->ports[i].guid)
			continue;
		for (unsigned k = 0; k < i; k++)
			if (n->ports[k].guid == n->ports[i].guid)
				return topology_say(why, why_bytes, -EEXIST,
						    "ports %u and %u of '%s' have the same GUID 0x%016" PRIx64,
						    k, i, n->id, n->ports[i].guid);
		if (topology_find_port_guid(t, n->ports[i].guid, &end))
			return topology_say(why, why_bytes, -EEXIST,
					    "port %u of '%s' and port %u of '%s' have the same GUID 0x%016" PRIx64,
					    end.port, t->nodes[end.node].id, i, n->id, n->ports[i].guid);
	}
	return 0;
}

/* Room in all arrays and tables for one more node. */
static int reserve_node(struct topology *t, const struct topology_node *n)
{
	struct topology_index *x = t->index;

	if (topology_table_reserve(&x->ids, 1) || topology_table_reserve(&x->names, 1) ||
	    topology_table_reserve(&x->guids, 1) ||
	    topology_table_reserve(&x->port_guids, n->port_count + 1U))
		return -ENOMEM;
	return make_room((void **)&t->nodes, t->node_count, sizeof(*t->nodes));
}

static uint32_t insert_node(struct topology *t, const struct topology_node *n)
{
	uint32_t node = t->node_count++;

	t->nodes[node] = *n;
	topology_table_add(&t->index->ids, topology_name_key(n->id), node);
	topology_table_add(&t->index->names, topology_name_key(n->name), node);
	topology_table_add(&t->index->guids, n->guid, node);
	for (unsigned i = 0; i <= n->port_count; i++)
		if (n->ports[i].guid)
			topology_table_add(&t->index->port_guids, n->ports[i].guid, node * 256 + i);
	return node;
}

int topology_add_node(struct topology *t, const struct topology_node *from, uint32_t *node, char *why,
		      size_t why_bytes)
{
	struct topology_node n = *from;
	int err = check_node(t, from, why, why_bytes);

	if (err)
		return err;
	if (!n.name[0])
		memcpy(n.name, n.id, sizeof(n.name));
	if (!n.guid)
		n.guid = free_guid(t, n.port_count);
	if (!n.system_guid)
		n.system_guid = n.guid;
	n.ports = calloc(n.port_count + 1U, sizeof(*n.ports));
	if (!n.ports || reserve_node(t, &n)) {
		err = topology_say(why, why_bytes, -ENOMEM, "no memory for '%s'", n.id);
		goto err_ports;
	}
	fill_ports(t, &n, from, n.ports);
	err = check_guids(t, &n, why, why_bytes);
	if (err)
		goto err_ports;
	*node = insert_node(t, &n);
	return 0;
err_ports:
	free(n.ports);
	return err;
}

/* ---- links ---- */

static int check_end(const struct topology *t, const struct topology_end *end, char *why, size_t why_bytes)
{
	const struct topology_node *n;

	if (end->node >= t->node_count)
		return topology_say(why, why_bytes, -EINVAL, "a link to a node that is not there");
	n = &t->nodes[end->node];
	if (end->port < 1 || end->port > n->port_count)
		return topology_say(why, why_bytes, -EINVAL, "'%s' has no port %u, only 1 to %u", n->id, end->port,
				    n->port_count);
	if (n->ports[end->port].link != TOPOLOGY_NONE)
		return topology_say(why, why_bytes, -EEXIST, "port %u of '%s' has two links", end->port, n->id);
	return 0;
}

int topology_add_link(struct topology *t, const struct topology_link *l, char *why, size_t why_bytes)
{
	const char *id;
	int err = check_end(t, &l->end[0], why, why_bytes);

	if (!err)
		err = check_end(t, &l->end[1], why, why_bytes);
	if (err)
		return err;
	id = t->nodes[l->end[0].node].id;
	if (l->end[0].node == l->end[1].node && l->end[0].port == l->end[1].port)
		return topology_say(why, why_bytes, -EINVAL, "port %u of '%s' is linked to itself",
				    l->end[0].port, id);
	if (!topology_lanes(l->width) || l->speed >= TOPOLOGY_SPEEDS ||
	    l->delay_ns > TOPOLOGY_DELAY_NS_MAX || !(l->bit_error_rate >= 0 && l->bit_error_rate < 1))
		return topology_say(why, why_bytes, -EINVAL,
				    "port %u of '%s': a link has a width of 1x to 12x, a speed of SDR to NDR, a "
				    "delay of at most 1 s and a bit error rate below 1",
				    l->end[0].port, id);
	if (t->link_count >= TOPOLOGY_LINKS_MAX)
		return topology_say(why, why_bytes, -ENOSPC, "more than %d links", TOPOLOGY_LINKS_MAX);
	if (make_room((void **)&t->links, t->link_count, sizeof(*t->links)))
		return topology_say(why, why_bytes, -ENOMEM, "no memory for a link of '%s'", id);
	for (unsigned i = 0; i < 2; i++)
		t->nodes[l->end[i].node].ports[l->end[i].port].link = t->link_count;
	t->links[t->link_count++] = *l;
	return 0;
}

/* ---- looking up ---- */

uint32_t topology_find_id(const struct topology *t, const char *id)
{
	uint64_t key = topology_name_key(id);
	uint32_t at = 0, node;

	do
		node = topology_table_next(&t->index->ids, key, &at);
	while (node != TOPOLOGY_NONE && strcmp(t->nodes[node].id, id));
	return node;
}

uint32_t topology_find_name(const struct topology *t, const char *name)
{
	uint32_t found = topology_find_id(t, name), at = 0, node;
	uint64_t key = topology_name_key(name);

	if (found != TOPOLOGY_NONE)
		return found;
	while ((node = topology_table_next(&t->index->names, key, &at)) != TOPOLOGY_NONE) {
		if (strcmp(t->nodes[node].name, name))
			continue;
		if (found != TOPOLOGY_NONE)
			return TOPOLOGY_NONE;
		found = node;
	}
	return found;
}

uint32_t topology_find_guid(const struct topology *t, uint64_t node_guid)
{
	return topology_table_find(&t->index->guids, node_guid);
}

bool topology_find_port_guid(const struct topology *t, uint64_t port_guid, struct topology_end *end)
{
	uint32_t value = topology_table_find(&t->index->port_guids, port_guid);

	if (value == TOPOLOGY_NONE)
		return false;
	*end = (struct topology_end){ value / 256, (uint8_t)(value % 256) };
	return true;
}
