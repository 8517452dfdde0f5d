/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a description as a topology file, in the form of ibnetdiscover's output: see topology_write()
 * in topology.h. No line has more than the 254 bytes that ibsim reads, and what it does not know is
 * written with a colon, because older versions refuse words with = that they do not know.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology/topology.h"
#include "util/num.h"

/* Without the peer's name at its end. */
#define LINE_BYTES_MAX 250

/* Whether the reader would give the port this GUID if nothing is said. */
static bool is_usual(const struct topology_node *n, unsigned port)
{
	return n->ports[port].guid == n->guid + port;
}

static void write_options(FILE *out, const struct topology_link *l)
{
	char text[NUM_DOUBLE_MAX];

	/* For older versions of ibsim, which do not look into the comment: the bits of PortInfo. */
	if (l->width != TOPOLOGY_4X && l->width <= TOPOLOGY_12X)
		fprintf(out, " w=%d", l->width);
	if (l->speed == TOPOLOGY_DDR || l->speed == TOPOLOGY_QDR)
		fprintf(out, " s=%d", 1 << l->speed);
	if (l->delay_ns)
		fprintf(out, " delay:%" PRIu64 "ns", l->delay_ns);
	if (l->bit_error_rate > 0)
		fprintf(out, " ber:%.*s", (int)(num_print_double(text, l->bit_error_rate) - text), text);
}

static void write_port(FILE *out, const struct topology *t, uint32_t node, uint8_t port)
{
	const struct topology_node *n = &t->nodes[node], *other;
	const struct topology_link *l;
	struct topology_end peer;
	long start = ftell(out);
	char rate[16];

	if (!topology_peer(t, node, port, &peer)) {
		if (n->kind == TOPOLOGY_HCA && !is_usual(n, port))
			fprintf(out, "[%u](%" PRIx64 ")\n", port, n->ports[port].guid);
		return;
	}
	other = &t->nodes[peer.node];
	l = &t->links[n->ports[port].link];
	fprintf(out, "[%u]", port);
	if (n->kind == TOPOLOGY_HCA)
		fprintf(out, "(%" PRIx64 ")", n->ports[port].guid);
	fprintf(out, "\t\"%s\"[%u]", other->id, peer.port);
	if (other->kind == TOPOLOGY_HCA)
		fprintf(out, "(%" PRIx64 ")", other->ports[peer.port].guid);
	write_options(out, l);
	fprintf(out, "\t\t# %s", n->kind == TOPOLOGY_HCA ? "lid 0 lmc 0 " : "");
	snprintf(rate, sizeof(rate), "%ux%s", topology_lanes(l->width), topology_speed_name(l->speed));
	if (ftell(out) - start + (long)(strlen(other->name) + strlen(rate) + 10) <= LINE_BYTES_MAX)
		fprintf(out, "\"%s\" ", other->name);
	fprintf(out, "lid 0 %s\n", rate);
}

static void write_node(FILE *out, const struct topology *t, uint32_t node)
{
	const struct topology_node *n = &t->nodes[node];
	bool is_switch = n->kind == TOPOLOGY_SWITCH;

	if (node)
		fputc('\n', out);
	if (n->vendor_id)
		fprintf(out, "vendid=0x%" PRIx32 "\n", n->vendor_id);
	if (n->device_id)
		fprintf(out, "devid=0x%x\n", n->device_id);
	if (n->system_guid != n->guid)
		fprintf(out, "sysimgguid=0x%" PRIx64 "\n", n->system_guid);
	if (is_switch)
		fprintf(out, "switchguid=0x%" PRIx64 "(%" PRIx64 ")\n", n->guid, n->ports[0].guid);
	else
		fprintf(out, "caguid=0x%" PRIx64 "\n", n->guid);
	fprintf(out, "%s\t%u \"%s\"\t\t# \"%s\"", is_switch ? "Switch" : "Ca", n->port_count, n->id, n->name);
	if (is_switch)
		fprintf(out, " %s port 0 lid 0 lmc 0", n->enhanced_port_0 ? "enhanced" : "base");
	fputc('\n', out);
	for (unsigned port = 1; port <= n->port_count; port++)
		write_port(out, t, node, (uint8_t)port);
}

int topology_write(const struct topology *t, char **text, size_t *bytes)
{
	FILE *out = open_memstream(text, bytes);
	bool failed;

	if (!out)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->node_count; i++)
		write_node(out, t, i);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(*text);
		return -ENOMEM;
	}
	return 0;
}
