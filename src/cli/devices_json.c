/* SPDX-License-Identifier: BSD-2-Clause */
/* A device with its ports and addresses as JSON. */
#include "cli/devices.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "util/log.h"

static void gids(struct json_out *j, struct ibv_context *ctx, unsigned port,
		 int table_len)
{
	json_out_open(j, "gids", '[');
	for (int i = 0; i < table_len; i++) {
		char text[INET6_ADDRSTRLEN], netdev[IF_NAMESIZE] = "";
		struct ibv_gid_entry e;

		if (ibv_query_gid_ex(ctx, port, (uint32_t)i, &e, 0))
			continue; /* an empty entry */
		inet_ntop(AF_INET6, e.gid.raw, text, sizeof(text));
		json_out_open(j, NULL, '{');
		json_out_uint(j, "index", (unsigned)i);
		json_out_string(j, "gid", text);
		json_out_string(j, "type", device_gid_type(e.gid_type));
		if (e.ndev_ifindex && if_indextoname(e.ndev_ifindex, netdev))
			json_out_string(j, "netdev", netdev);
		json_out_close(j, '}');
	}
	json_out_close(j, ']');
}

static int port_json(struct json_out *j, struct ibv_context *ctx, unsigned port)
{
	struct ibv_port_attr a;
	int err = ibv_query_port(ctx, (uint8_t)port, &a);

	if (err) {
		log_error("device %s port %u: query: %s", ctx->device->name,
			  port, strerror(err));
		return -err;
	}
	json_out_open(j, NULL, '{');
	json_out_uint(j, "port", port);
	json_out_string(j, "state", ibv_port_state_str(a.state));
	json_out_string(j, "link_layer", device_link_layer(a.link_layer));
	json_out_number(j, "gbit_per_second", device_port_gbit(&a));
	json_out_uint(j, "mtu", device_mtu_bytes(a.active_mtu));
	json_out_uint(j, "mtu_max", device_mtu_bytes(a.max_mtu));
	if (a.link_layer == IBV_LINK_LAYER_INFINIBAND)
		json_out_uint(j, "lid", a.lid);
	gids(j, ctx, port, a.gid_tbl_len);
	json_out_close(j, '}');
	return 0;
}

static void limits(struct json_out *j, const struct ibv_device_attr *a)
{
	const struct {
		const char *name;
		int value;
	} list[] = {
		{ "max_qp", a->max_qp },
		{ "max_qp_wr", a->max_qp_wr },
		{ "max_sge", a->max_sge },
		{ "max_cq", a->max_cq },
		{ "max_cqe", a->max_cqe },
		{ "max_mr", a->max_mr },
		{ "max_pd", a->max_pd },
		{ "max_srq", a->max_srq },
		{ "max_srq_wr", a->max_srq_wr },
		{ "max_srq_sge", a->max_srq_sge },
		{ "max_ah", a->max_ah },
		{ "max_mw", a->max_mw },
		{ "max_qp_rd_atom", a->max_qp_rd_atom },
		{ "max_qp_init_rd_atom", a->max_qp_init_rd_atom },
		{ "max_pkeys", a->max_pkeys },
	};

	json_out_open(j, "limits", '{');
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		json_out_number(j, list[i].name, list[i].value);
	json_out_uint(j, "max_mr_size", a->max_mr_size);
	json_out_string(j, "atomics", device_atomics(a->atomic_cap));
	json_out_close(j, '}');
}

int device_json(struct json_out *j, struct ibv_device *dev)
{
	struct ibv_context *ctx;
	struct ibv_device_attr a;
	char guid[DEVICE_GUID_TEXT];
	int err = -device_open(dev, &ctx, &a, guid);

	if (err)
		return -err;
	json_out_open(j, NULL, '{');
	json_out_string(j, "name", ibv_get_device_name(dev));
	json_out_string(j, "kind", device_kind(dev));
	json_out_string(j, "guid", guid);
	json_out_uint(j, "vendor_id", a.vendor_id);
	json_out_string(j, "firmware", a.fw_ver);
	json_out_open(j, "ports", '[');
	for (unsigned p = 1; p <= a.phys_port_cnt && !err; p++)
		err = -port_json(j, ctx, p);
	json_out_close(j, ']');
	limits(j, &a);
	json_out_close(j, '}');
	ibv_close_device(ctx);
	return -err;
}
