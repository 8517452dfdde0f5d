/* SPDX-License-Identifier: BSD-2-Clause */
/* A device with its ports and addresses as JSON. */
#include "cli/devices.h"

#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "util/log.h"

static void gids(struct cli_json *j, struct ibv_context *ctx, unsigned port,
		 int table_len)
{
	cli_json_open(j, "gids", '[');
	for (int i = 0; i < table_len; i++) {
		char text[DEVICE_GID_TEXT], netdev[IF_NAMESIZE] = "";
		struct ibv_gid_entry e;

		if (ibv_query_gid_ex(ctx, port, (uint32_t)i, &e, 0))
			continue; /* an empty entry */
		cli_json_open(j, NULL, '{');
		cli_json_put(j, j_uint("index", (unsigned)i),
				j_text("gid", device_gid(ctx->device, &e, text)),
				j_text("type", device_gid_type(ctx->device, &e)));
		if (e.ndev_ifindex && if_indextoname(e.ndev_ifindex, netdev))
			cli_json_put(j, j_text("netdev", netdev));
		cli_json_close(j, '}');
	}
	cli_json_close(j, ']');
}

static int port_json(struct cli_json *j, struct ibv_context *ctx, unsigned port)
{
	struct ibv_port_attr a;
	int err = ibv_query_port(ctx, (uint8_t)port, &a);

	if (err) {
		log_error("device %s port %u: query: %s", ctx->device->name,
			  port, strerror(err));
		return -err;
	}
	cli_json_open(j, NULL, '{');
	cli_json_put(j, j_uint("port", port), j_text("state", ibv_port_state_str(a.state)),
			j_text("link_layer", device_link_layer(a.link_layer)),
			j_number("gbit_per_second", device_port_gbit(&a)),
			j_uint("mtu", device_mtu_bytes(a.active_mtu)),
			j_uint("mtu_max", device_mtu_bytes(a.max_mtu)));
	if (a.link_layer == IBV_LINK_LAYER_INFINIBAND)
		cli_json_put(j, j_uint("lid", a.lid));
	gids(j, ctx, port, a.gid_tbl_len);
	cli_json_close(j, '}');
	return 0;
}

static void limits(struct cli_json *j, const struct ibv_device_attr *a)
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

	cli_json_open(j, "limits", '{');
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		cli_json_put(j, j_number(list[i].name, list[i].value));
	cli_json_put(j, j_uint("max_mr_size", a->max_mr_size),
			j_text("atomics", device_atomics(a->atomic_cap)));
	cli_json_close(j, '}');
}

int device_json(struct cli_json *j, struct ibv_device *dev)
{
	struct ibv_context *ctx;
	struct ibv_device_attr a;
	char guid[DEVICE_GUID_TEXT];
	int err = -devices_open(dev, &ctx, &a, guid);

	if (err)
		return -err;
	cli_json_open(j, NULL, '{');
	cli_json_put(j, j_text("name", ibv_get_device_name(dev)), j_text("kind", device_kind(dev)),
			j_text("guid", guid), j_uint("vendor_id", a.vendor_id),
			j_text("firmware", a.fw_ver));
	cli_json_open(j, "ports", '[');
	for (unsigned p = 1; p <= a.phys_port_cnt && !err; p++)
		err = -port_json(j, ctx, p);
	cli_json_close(j, ']');
	limits(j, &a);
	cli_json_close(j, '}');
	ibv_close_device(ctx);
	return -err;
}
