/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts that describe InfiniBand subnets: topology files, and the names of generated subnets. Each is
 * refused with a line that says why, or gives a description that is consistent, and that reads back equal
 * after it was written.
 *
 * usage: fuzz_topology [RUNS [SEED]]
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology/generate.h"

#define MUTATE_BYTES "0123456789[]()\"#=:xSHC,.-eE \t\n\r@kab"
#include "drive.h"

/* The first byte of an input. */
enum { FILE_TEXT, NAME_TEXT };

static void must(bool good)
{
	if (!good)
		abort();
}

static void must_be_consistent(const struct topology *t)
{
	uint32_t linked = 0;

	must(t->node_count >= 1 && t->node_count <= TOPOLOGY_NODES_MAX && t->link_count <= TOPOLOGY_LINKS_MAX);
	for (uint32_t i = 0; i < t->node_count; i++) {
		const struct topology_node *n = &t->nodes[i];
		struct topology_end end, back;

		must(topology_find_id(t, n->id) == i && topology_find_guid(t, n->guid) == i);
		must(n->port_count >= 1 && n->port_count <= TOPOLOGY_PORTS_MAX);
		for (unsigned port = 0; port <= n->port_count; port++) {
			must((n->ports[port].guid != 0) == (n->kind == TOPOLOGY_SWITCH ? port == 0 : port > 0));
			if (n->ports[port].guid)
				must(topology_find_port_guid(t, n->ports[port].guid, &end) && end.node == i &&
				     end.port == port);
			if (!topology_peer(t, i, (uint8_t)port, &end))
				continue;
			linked++;
			must(topology_peer(t, end.node, end.port, &back) && back.node == i && back.port == port);
		}
	}
	must(linked == 2 * t->link_count);
	for (uint32_t i = 0; i < t->link_count; i++)
		must(topology_link_bit_rate(&t->links[i]) > 0);
}

static void must_read_back(const struct topology *t)
{
	struct topology *again;
	char *text, why[300];
	size_t bytes;

	must(!topology_write(t, &text, &bytes));
	must(!topology_read(text, bytes, "written", &again, why, sizeof(why)));
	must(topology_equal(t, again));
	topology_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topology *t = NULL;
	char why[300] = "", *text;
	int err;

	if (!size)
		return 0;
	text = malloc(size);
	must(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] == FILE_TEXT)
		err = topology_read(text, size - 1, "fuzz", &t, why, sizeof(why));
	else
		err = topology_generate(text, &t, why, sizeof(why));
	free(text);
	if (err) {
		must(!t && why[0]);
		for (const char *c = why; *c; c++)
			must(!iscntrl((unsigned char)*c));
		return 0;
	}
	must_be_consistent(t);
	must_read_back(t);
	if (data[0] == NAME_TEXT)
		must(!topology_check_connected(t, why, sizeof(why)));
	topology_free(t);
	return 0;
}

static const char *const files[] = {
	("vendid=0x2c9\ndevid=0x1003\nsysimgguid=0x23\nswitchguid=0x20(21)\n"
	"Switch\t3 \"S-20\"\t\t# \"one\" enhanced port 0 lid 6 lmc 0\n"
	"[1]\t\"H-30\"[1](31) \t\t# \"two\" lid 4 4xFDR10\n"
	"[3][ext 2]\t\"S-40\"[2] \t\t# \"three\" lid 4 2xHDR\n\n"
	"caguid=0x30\nCa\t2 \"H-30\"\t\t# \"two\"\n[1](31)\t\"S-20\"[1] # lid 4 lmc 0 \"one\" lid 6 4xFDR10\n"
	"[2](32)\n\nswitchguid=0x40\nSwitch 8 \"S-40\"\n[2] \"S-20\"[3]\n[5] \"S-40\"[6]\n[6] \"S-40\"[5]\n"),
	("width=3\nspeed=7\nSwitch 4 \"a\"\n[1] \"b\"[1] w=2 s=1 delay:1.5us ber:1e-12\n[2] \"c\"\n"
	"Hca 1 \"b\"\n[1] \"a\"[1] 4xSDR\nHca 1 \"c\"\n[1] \"a\"[2]\n"),
	"Rt 2 \"r\"\nmodule=\"m\"\ninclude \"x\"\n@[1] \"y\"\nhcaguids=5\nspeed=HDR\nChassis 1\n",
};

static const char *const names[] = {
	"single:3", "line:5,hosts=2", "ring:8,speed=HDR,width=2x", "mesh:4x4,delay=300ns", "torus:4x4x2,ber=1e-12",
	"fat-tree:6x3,spines=3,links=1", "fat-tree:k=4", "fat-tree:2x4x4,cores=8", "dragonfly:4x2x2,groups=5",
};

static size_t make(uint8_t *bytes, size_t capacity)
{
	/* Generated subnets are larger, and their names shorter. */
	bool is_name = random_below(8) == 0;
	const char *from = is_name ? names[random_below(sizeof(names) / sizeof(names[0]))] :
				     files[random_below(sizeof(files) / sizeof(files[0]))];
	size_t size = strlen(from);

	bytes[0] = is_name ? NAME_TEXT : FILE_TEXT;
	memcpy(bytes + 1, from, size);
	return 1 + mutate_times(bytes + 1, size, capacity - 1, random_below(is_name ? 4 : 6));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 60000, 2000, make);
}
