/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptions of subnets for the scripts beside it.
 *
 *	fabric-describe generate TEXT          prints the subnet as a topology file
 *	fabric-describe copy FILE              prints what was read
 *	fabric-describe discovered FILE FOUND  whether both are the same to a subnet manager: nodes are
 *	                                       compared by GUID, and delays and bit error rates not at all
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology/generate.h"

static int complain(const char *what, const char *which)
{
	fprintf(stderr, "failed: %s: %s\n", which, what);
	return 1;
}

static int print(struct topology *t)
{
	char *text;
	size_t bytes;

	if (topology_write(t, &text, &bytes))
		return complain("cannot be written", "subnet");
	fwrite(text, 1, bytes, stdout);
	free(text);
	topology_free(t);
	return fflush(stdout) ? 1 : 0;
}

static bool same_rate(const struct topology_link *a, const struct topology_link *b)
{
	return a->width == b->width && a->speed == b->speed;
}

static int compare_node(const struct topology *file, uint32_t at, const struct topology *found)
{
	const struct topology_node *n = &file->nodes[at], *other;
	uint32_t node = topology_find_guid(found, n->guid);
	struct topology_end a, b;

	if (node == TOPOLOGY_NONE)
		return complain("was not discovered", n->id);
	other = &found->nodes[node];
	if (other->kind != n->kind || other->port_count != n->port_count || strcmp(other->name, n->name))
		return complain("has another kind, name or number of ports", n->id);
	for (unsigned port = 1; port <= n->port_count; port++) {
		bool linked = topology_peer(file, at, (uint8_t)port, &a);

		if (topology_peer(found, node, (uint8_t)port, &b) != linked ||
		    (linked && (a.port != b.port || file->nodes[a.node].guid != found->nodes[b.node].guid)))
			return complain("has other links", n->id);
		if (!linked)
			continue;
		if (other->ports[port].guid != n->ports[port].guid)
			return complain("has another GUID of a port", n->id);
		if (!same_rate(&file->links[n->ports[port].link], &found->links[other->ports[port].link]))
			return complain("has a link of another width or speed", n->id);
	}
	return 0;
}

static int compare(const struct topology *file, const struct topology *found)
{
	int failed = 0;

	if (file->node_count != found->node_count || file->link_count != found->link_count)
		failed = complain("another number of nodes or links", "discovered");
	for (uint32_t i = 0; i < file->node_count; i++)
		failed |= compare_node(file, i, found);
	return failed;
}

int main(int argc, char **argv)
{
	struct topology *t, *found;
	char why[300];
	int failed;

	if (argc == 3 && !strcmp(argv[1], "generate"))
		return topology_generate(argv[2], &t, why, sizeof(why)) ? complain(why, argv[2]) : print(t);
	if (argc < 3 || topology_read_file(argv[2], &t, why, sizeof(why)))
		return complain(argc < 3 ? "generate TEXT, copy FILE or discovered FILE FOUND" : why, argv[0]);
	if (argc == 3 && !strcmp(argv[1], "copy"))
		return print(t);
	if (argc != 4 || strcmp(argv[1], "discovered") ||
	    topology_read_file(argv[3], &found, why, sizeof(why)))
		return complain(why, argv[0]);
	failed = compare(t, found);
	topology_free(t);
	topology_free(found);
	return failed;
}
