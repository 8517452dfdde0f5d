/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes of a port of a simulated subnet; see infiniband.h. */
#include "hca/device/infiniband.h"

#include <endian.h>
#include <errno.h>

#include "hca/host/subnet.h"
#include "hca/object/context.h"

/* ibv_port_attr.active_speed, which counts on where PortInfo has a field of its own for the
 * extended speeds (14.2.5.6): 16 is FDR, 32 EDR, 64 HDR, 128 NDR. */
#define SPEED_EXTENDED_SHIFT 4
#define SPEED_MOST 0x80

int hca_infiniband_init(struct hca_device *d)
{
	struct plug_welcome host;
	int ret = hca_subnet_learn();

	if (ret)
		return ret;
	hca_subnet_host(&host);
	d->guid = htobe64(host.node_guid);
	return 0;
}

void hca_infiniband_device(struct ibv_device_attr *a)
{
	struct plug_welcome host;
	struct plug_port port;

	hca_subnet_host(&host);
	hca_subnet_port(&port);
	a->node_guid = htobe64(host.node_guid);
	a->sys_image_guid = htobe64(host.system_guid);
	a->vendor_id = host.vendor_id;
	a->vendor_part_id = host.device_id;
	a->hw_ver = host.revision;
	a->max_pkeys = port.pkey_count;
}

static uint8_t speed_of(const struct plug_port *p)
{
	unsigned speed = (unsigned)p->speed_extended << SPEED_EXTENDED_SHIFT;

	return p->speed_extended && speed <= SPEED_MOST ? (uint8_t)speed : p->speed_active;
}

void hca_infiniband_port(struct ibv_port_attr *a)
{
	struct plug_port p;

	hca_subnet_port(&p);
	a->state = (enum ibv_port_state)p.state;
	a->max_mtu = (enum ibv_mtu)p.mtu_max;
	a->active_mtu = (enum ibv_mtu)p.mtu_active;
	a->gid_tbl_len = p.guid_count;
	a->port_cap_flags = p.capability_mask;
	a->bad_pkey_cntr = p.pkey_violations;
	a->qkey_viol_cntr = p.qkey_violations;
	a->pkey_tbl_len = p.pkey_count;
	a->lid = p.lid;
	a->sm_lid = p.sm_lid;
	a->lmc = p.lmc;
	a->max_vl_num = p.lanes;
	a->sm_sl = p.sm_sl;
	a->subnet_timeout = p.subnet_timeout;
	a->init_type_reply = p.init_type_reply;
	a->active_width = p.width_active;
	a->active_speed = speed_of(&p);
	a->phys_state = p.physical_state;
	a->link_layer = IBV_LINK_LAYER_INFINIBAND;
	a->flags = 0;
}

int hca_infiniband_pkey(int index, __be16 *pkey)
{
	struct plug_port p;

	hca_subnet_port(&p);
	if (index < 0 || index >= p.pkey_count)
		return -EINVAL;
	*pkey = htobe16(p.pkeys[index]);
	return 0;
}

int hca_infiniband_pkey_index(__be16 pkey)
{
	struct plug_port p;

	hca_subnet_port(&p);
	for (int i = 0; i < p.pkey_count; i++)
		if (p.pkeys[i] == be16toh(pkey))
			return i;
	return -EINVAL;
}
