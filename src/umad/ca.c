/* SPDX-License-Identifier: BSD-2-Clause */
/* Which channel adapters there are, and the state of their ports (umad_get_ca(3) and so on). */
#define LOG_ROOM "umad"
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "umad/plain.h"
#include "umad/system.h"
#include "umad/umad.h"
#include "util/container_of.h"
#include "util/log.h"
#include "verbs/private.h"

int umad_place(struct plug_place *place)
{
	return plug_place(place);
}

/* Is there an adapter of busbar's? A process that is plugged in has one. */
static bool is_present(void)
{
	struct plug_place place;
	int ret = umad_place(&place);

	return ret > 0 || (!ret && umad_plain_exists());
}

bool umad_is_ours(const char *ca_name)
{
	return (!ca_name || !*ca_name || !strcmp(ca_name, UMAD_CA)) && is_present();
}

/* Connects shortly to the fabric to read the state. 0 or a negative errno, logged. */
static int look(struct plug_welcome *welcome, struct plug_port *port)
{
	struct plug_place place;
	int fd = umad_place(&place);

	busbar_note_opened();
	if (fd <= 0)
		return fd ? fd : umad_plain_look(welcome, port);
	fd = plug_connect(&place, PLUG_MANAGEMENT, welcome, port);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

UMAD_EXPORT int umad_init(void)
{
	log_init(LOG_WARN);
	UMAD_SYSTEM(0, umad_init);
	return 0;
}

UMAD_EXPORT int umad_done(void)
{
	return UMAD_SYSTEM(0, umad_done);
}

UMAD_EXPORT int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	int n = 0, more;

	if (max > 0 && is_present())
		snprintf(cas[n++], UMAD_CA_NAME_LEN, "%s", UMAD_CA);
	more = max > n ? UMAD_SYSTEM(0, umad_get_cas_names, cas + n, max - n) : 0;
	return more > 0 ? n + more : n;
}

UMAD_EXPORT int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	struct plug_welcome welcome;
	struct plug_port port;
	int ret;

	if (!umad_is_ours(ca_name))
		return UMAD_SYSTEM(-ENODEV, umad_get_ca_portguids, ca_name, portguids, max);
	ret = look(&welcome, &port);
	if (ret)
		return ret;
	/* By port number; 0 is that of a switch. */
	for (int i = 0; i <= welcome.port && i < max; i++)
		portguids[i] = htobe64(i == welcome.port ? welcome.port_guid : 0);
	return MIN(welcome.port + 1, max);
}

/* Gb/s of a lane, times 10, as signalled. */
static unsigned lane_rate(const struct plug_port *p)
{
	switch (p->speed_extended) {
	case 1:
		return 140;
	case 2:
		return 250;
	case 4:
		return 500;
	case 8:
		return 1000;
	}
	return p->speed_active * 25u; /* 1, 2, 4: SDR, DDR, QDR */
}

static unsigned rate_of(const struct plug_port *p)
{
	static const struct {
		uint8_t code, lanes;
	} widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
	unsigned lanes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		if (p->width_active == widths[i].code)
			lanes = widths[i].lanes;
	return lane_rate(p) * lanes / 10;
}

static int fill_port(umad_port_t *to, const struct plug_welcome *w, const struct plug_port *p)
{
	uint16_t *pkeys = calloc(PLUG_PKEYS, sizeof(*pkeys));

	if (!pkeys)
		return -ENOMEM;
	memcpy(pkeys, p->pkeys, sizeof(p->pkeys));
	*to = (umad_port_t){
		.portnum = w->port,
		.base_lid = p->lid,
		.lmc = p->lmc,
		.sm_lid = p->sm_lid,
		.sm_sl = p->sm_sl,
		.state = p->state,
		.phys_state = p->physical_state,
		.rate = rate_of(p),
		.capmask = htobe32(p->capability_mask),
		.gid_prefix = htobe64(p->subnet_prefix),
		.port_guid = htobe64(w->port_guid),
		.pkeys_size = MIN(p->pkey_count, PLUG_PKEYS),
		.pkeys = pkeys,
	};
	snprintf(to->ca_name, sizeof(to->ca_name), "%s", UMAD_CA);
	snprintf(to->link_layer, sizeof(to->link_layer), "%s",
		 w->host_number ? "InfiniBand" : "Ethernet");
	return 0;
}

UMAD_EXPORT int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	struct plug_welcome welcome;
	struct plug_port state;
	int ret;

	if (!umad_is_ours(ca_name))
		return UMAD_SYSTEM(-ENODEV, umad_get_port, ca_name, portnum, port);
	ret = look(&welcome, &state);
	if (ret)
		return ret;
	if (portnum && portnum != welcome.port)
		return -EINVAL;
	return fill_port(port, &welcome, &state);
}

UMAD_EXPORT int umad_release_port(umad_port_t *port)
{
	if (strcmp(port->ca_name, UMAD_CA) != 0)
		return UMAD_SYSTEM(-ENODEV, umad_release_port, port);
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
	return 0;
}

UMAD_EXPORT int umad_release_ca(umad_ca_t *ca)
{
	if (strcmp(ca->ca_name, UMAD_CA) != 0)
		return UMAD_SYSTEM(-ENODEV, umad_release_ca, ca);
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (!ca->ports[i])
			continue;
		umad_release_port(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
	return 0;
}

UMAD_EXPORT int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	struct plug_welcome w;
	struct plug_port state;
	umad_port_t *port;
	int ret;

	if (!umad_is_ours(ca_name))
		return UMAD_SYSTEM(-ENODEV, umad_get_ca, ca_name, ca);
	ret = look(&w, &state);
	if (ret)
		return ret;
	if (w.port >= UMAD_CA_MAX_PORTS)
		return -ENODEV;
	port = calloc(1, sizeof(*port));
	ret = port ? fill_port(port, &w, &state) : -ENOMEM;
	if (ret) {
		free(port);
		return ret;
	}
	*ca = (umad_ca_t){
		.node_type = 1, /* channel adapter */
		.numports = w.ports,
		.node_guid = htobe64(w.node_guid),
		.system_guid = htobe64(w.system_guid),
	};
	snprintf(ca->ca_name, sizeof(ca->ca_name), "%s", UMAD_CA);
	snprintf(ca->fw_ver, sizeof(ca->fw_ver), "busbar");
	snprintf(ca->hw_ver, sizeof(ca->hw_ver), "%u", w.revision);
	snprintf(ca->ca_type, sizeof(ca->ca_type), "%s", w.host_number ? "busbar fabric" : "busbar");
	ca->ports[w.port] = port;
	return 0;
}

/* ---- lists ---- */

UMAD_EXPORT struct umad_device_node *umad_get_ca_device_list(void)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	int n = umad_get_cas_names(names, UMAD_MAX_DEVICES);
	struct umad_device_node *head = NULL;

	errno = 0;
	for (int i = n - 1; i >= 0; i--) {
		struct umad_device_node *node = calloc(1, sizeof(*node));

		if (node)
			node->ca_name = strdup(names[i]);
		if (!node || !node->ca_name) {
			free(node);
			umad_free_ca_device_list(head);
			errno = ENOMEM;
			return NULL;
		}
		node->next = head;
		head = node;
	}
	return head;
}

UMAD_EXPORT void umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head) {
		struct umad_device_node *next = head->next;

		free((char *)head->ca_name);
		free(head);
		head = next;
	}
}

static int by_name(const void *a, const void *b)
{
	struct umad_device_node *const *x = a, *const *y = b;

	return strcmp((*x)->ca_name, (*y)->ca_name);
}

UMAD_EXPORT int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	struct umad_device_node **all;
	size_t count = 0;

	if (!head)
		return EINVAL;
	for (struct umad_device_node *n = *head; n; n = n->next)
		count++;
	if (size && size < count)
		count = size;
	if (count < 2)
		return 0;
	all = calloc(count, sizeof(*all));
	if (!all)
		return ENOMEM;
	struct umad_device_node *n = *head;

	for (size_t i = 0; i < count; i++, n = n->next)
		all[i] = n;
	qsort(all, count, sizeof(*all), by_name);
	for (size_t i = 0; i < count; i++)
		all[i]->next = i + 1 < count ? all[i + 1] : n;
	*head = all[0];
	free(all);
	return 0;
}
