/* SPDX-License-Identifier: BSD-2-Clause */
/* A device with its ports and addresses, as text or JSON. */
#include "cli/devices.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"

#define DEVICE_GUID_TEXT 20
/* The GID of an iWARP device is a hardware address, all others are of IPv6. */
#define DEVICE_GID_TEXT 46

static bool is_iwarp(const struct ibv_device *dev)
{
	return dev->transport_type == IBV_TRANSPORT_IWARP;
}

static const char *device_gid(const struct ibv_device *dev, const struct ibv_gid_entry *e,
		       char text[DEVICE_GID_TEXT])
{
	const uint8_t *b = e->gid.raw;

	if (is_iwarp(dev))
		snprintf(text, DEVICE_GID_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2],
			 b[3], b[4], b[5]);
	else
		inet_ntop(AF_INET6, b, text, DEVICE_GID_TEXT);
	return text;
}

static const char *device_gid_type(const struct ibv_device *dev, const struct ibv_gid_entry *e)
{
	if (is_iwarp(dev))
		return "hardware";
	switch (e->gid_type) {
	case IBV_GID_TYPE_IB: return "InfiniBand";
	case IBV_GID_TYPE_ROCE_V1: return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2: return "RoCE v2";
	default: return "unknown";
	}
}

static const char *device_link_layer(uint8_t layer)
{
	switch (layer) {
	case IBV_LINK_LAYER_INFINIBAND: return "InfiniBand";
	case IBV_LINK_LAYER_ETHERNET: return "Ethernet";
	default: return "unknown link";
	}
}

static unsigned device_mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

/* Gbit/s of one lane by the code of active_speed; 0 when unknown. */
static double lane_gbit(uint32_t code)
{
	switch (code) {
	case 1: return 2.5;
	case 2: return 5;
	case 4: case 8: return 10;
	case 16: return 14;
	case 32: return 25;
	case 64: return 50;
	case 128: return 100;
	default: return 0;
	}
}

static unsigned lanes(uint8_t code)
{
	switch (code) {
	case 1: return 1;
	case 2: return 4;
	case 4: return 8;
	case 8: return 12;
	case 16: return 2;
	default: return 0;
	}
}

static void print_gids(struct ibv_context *ctx, unsigned port, int table_len)
{
	for (int i = 0; i < table_len; i++) {
		struct ibv_gid_entry e;
		char text[DEVICE_GID_TEXT], name[IF_NAMESIZE] = "";

		/* For an empty entry ibv_query_gid_ex() fails with ENODATA. */
		if (ibv_query_gid_ex(ctx, port, (uint32_t)i, &e, 0))
			continue;
		if (e.ndev_ifindex)
			if_indextoname(e.ndev_ifindex, name);
		printf("    gid %-3d %-10s %s%s%s\n", i,
		       device_gid_type(ctx->device, &e), device_gid(ctx->device, &e, text),
		       *name ? " on " : "", name);
	}
}

/* 0 when unknown. */
static double device_port_gbit(const struct ibv_port_attr *a)
{
	return lane_gbit(a->active_speed) * lanes(a->active_width);
}

static void print_port(struct ibv_context *ctx, unsigned port, const struct ibv_port_attr *a)
{
	double gbit = device_port_gbit(a);

	printf("  port %u  %s, %s", port, ibv_port_state_str(a->state),
	       device_link_layer(a->link_layer));
	if (gbit > 0)
		printf(", %g Gbit/s", gbit);
	printf(", MTU %u (max %u)", device_mtu_bytes(a->active_mtu),
	       device_mtu_bytes(a->max_mtu));
	if (a->link_layer == IBV_LINK_LAYER_INFINIBAND)
		printf(", LID %u", a->lid);
	printf("\n");
	print_gids(ctx, port, a->gid_tbl_len);
}

static const char *device_atomics(enum ibv_atomic_cap cap)
{
	switch (cap) {
	case IBV_ATOMIC_NONE: return "none";
	case IBV_ATOMIC_HCA: return "among RDMA operations";
	case IBV_ATOMIC_GLOB: return "with the processor too";
	}
	return "unknown";
}

static void print_limits(const struct ibv_device_attr *a)
{
	printf("  limits\n");
	printf("    queue pairs          %d, %d work requests, %d gather entries\n",
	       a->max_qp, a->max_qp_wr, a->max_sge);
	printf("    completion queues    %d, %d entries\n", a->max_cq, a->max_cqe);
	printf("    memory regions       %d, up to %" PRIu64 " bytes\n",
	       a->max_mr, a->max_mr_size);
	printf("    protection domains   %d\n", a->max_pd);
	printf("    shared receive       %d queues, %d work requests, %d scatter entries\n",
	       a->max_srq, a->max_srq_wr, a->max_srq_sge);
	printf("    address handles      %d\n", a->max_ah);
	printf("    memory windows       %d\n", a->max_mw);
	printf("    reads and atomics    %d outstanding at the target, %d at the initiator\n",
	       a->max_qp_rd_atom, a->max_qp_init_rd_atom);
	printf("    atomics              %s\n", device_atomics(a->atomic_cap));
	printf("    partition keys       %d\n", a->max_pkeys);
}

static const char *device_kind(const struct ibv_device *dev)
{
	return is_iwarp(dev) ? "iWARP" : "InfiniBand verbs";
}

/* Opens a device, queries its attributes and the text of its GUID; 0 or a negative errno, logged. */
static int devices_open(struct ibv_device *dev, struct ibv_context **ctx,
		struct ibv_device_attr *attr, char guid[DEVICE_GUID_TEXT])
{
	uint64_t g;
	int err;

	*ctx = ibv_open_device(dev);
	if (!*ctx) {
		err = errno;
		log_error("device %s cannot be opened: %s",
			  ibv_get_device_name(dev), strerror(err));
		return -err;
	}
	err = ibv_query_device(*ctx, attr);
	if (err) {
		log_error("device %s: query: %s", ibv_get_device_name(dev),
			  strerror(err));
		ibv_close_device(*ctx);
		return -err;
	}
	g = be64toh(attr->node_guid);
	snprintf(guid, DEVICE_GUID_TEXT, "%04x:%04x:%04x:%04x",
		 (unsigned)(g >> 48) & 0xffff, (unsigned)(g >> 32) & 0xffff,
		 (unsigned)(g >> 16) & 0xffff, (unsigned)g & 0xffff);
	return 0;
}

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

static void port_json(struct cli_json *j, struct ibv_context *ctx, unsigned port,
		      const struct ibv_port_attr *a)
{
	cli_json_open(j, NULL, '{');
	cli_json_put(j, j_uint("port", port), j_text("state", ibv_port_state_str(a->state)),
			j_text("link_layer", device_link_layer(a->link_layer)),
			j_number("gbit_per_second", device_port_gbit(a)),
			j_uint("mtu", device_mtu_bytes(a->active_mtu)),
			j_uint("mtu_max", device_mtu_bytes(a->max_mtu)));
	if (a->link_layer == IBV_LINK_LAYER_INFINIBAND)
		cli_json_put(j, j_uint("lid", a->lid));
	gids(j, ctx, port, a->gid_tbl_len);
	cli_json_close(j, '}');
}

/* 0 or a negative errno, logged. */
static int show_ports(struct cli_json *j, struct ibv_context *ctx, unsigned count)
{
	for (unsigned p = 1; p <= count; p++) {
		struct ibv_port_attr a;
		int err = ibv_query_port(ctx, (uint8_t)p, &a);

		if (err) {
			log_error("device %s port %u: query: %s", ctx->device->name, p,
				  strerror(err));
			return -err;
		}
		if (j)
			port_json(j, ctx, p, &a);
		else
			print_port(ctx, p, &a);
	}
	return 0;
}

static void limits(struct cli_json *j, const struct ibv_device_attr *a)
{
	cli_json_open(j, "limits", '{');
	cli_json_put(j, j_number("max_qp", a->max_qp), j_number("max_qp_wr", a->max_qp_wr),
			j_number("max_sge", a->max_sge), j_number("max_cq", a->max_cq),
			j_number("max_cqe", a->max_cqe), j_number("max_mr", a->max_mr),
			j_number("max_pd", a->max_pd), j_number("max_srq", a->max_srq),
			j_number("max_srq_wr", a->max_srq_wr), j_number("max_srq_sge", a->max_srq_sge),
			j_number("max_ah", a->max_ah), j_number("max_mw", a->max_mw),
			j_number("max_qp_rd_atom", a->max_qp_rd_atom),
			j_number("max_qp_init_rd_atom", a->max_qp_init_rd_atom),
			j_number("max_pkeys", a->max_pkeys));
	cli_json_put(j, j_uint("max_mr_size", a->max_mr_size),
			j_text("atomics", device_atomics(a->atomic_cap)));
	cli_json_close(j, '}');
}

int device_show(struct cli_json *j, struct ibv_device *dev, bool verbose)
{
	const char *name = ibv_get_device_name(dev);
	struct ibv_context *ctx;
	struct ibv_device_attr a;
	char guid[DEVICE_GUID_TEXT];
	int ret = devices_open(dev, &ctx, &a, guid);

	if (ret)
		return ret;
	if (j) {
		cli_json_open(j, NULL, '{');
		cli_json_put(j, j_text("name", name), j_text("kind", device_kind(dev)),
				j_text("guid", guid), j_uint("vendor_id", a.vendor_id),
				j_text("firmware", a.fw_ver));
		cli_json_open(j, "ports", '[');
	} else {
		printf("%s  %s, GUID %s, vendor 0x%06x, firmware %s\n", name, device_kind(dev), guid,
		       a.vendor_id, a.fw_ver[0] ? a.fw_ver : "-");
	}
	ret = show_ports(j, ctx, a.phys_port_cnt);
	if (j) {
		cli_json_close(j, ']');
		limits(j, &a);
		cli_json_close(j, '}');
	} else if (verbose && !ret) {
		print_limits(&a);
	}
	ibv_close_device(ctx);
	return ret;
}
