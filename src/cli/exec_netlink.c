/* SPDX-License-Identifier: BSD-2-Clause */
/* See exec_netlink.h. */
#include "cli/exec_netlink.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/log.h"

struct attributes {
	uint8_t bytes[1024];
	size_t length;
};

static void put(struct attributes *m, uint16_t type, const void *value, size_t size)
{
	const struct nlattr a = { .nla_len = (uint16_t)(NLA_HDRLEN + size), .nla_type = type };

	if ((size_t)NLA_ALIGN(a.nla_len) > sizeof(m->bytes) - m->length)
		return;
	memcpy(m->bytes + m->length, &a, sizeof(a));
	memcpy(m->bytes + m->length + NLA_HDRLEN, value, size);
	m->length += (size_t)NLA_ALIGN(a.nla_len);
}

static void put_u8(struct attributes *m, uint16_t type, uint8_t value)
{
	put(m, type, &value, sizeof(value));
}

static void put_u32(struct attributes *m, uint16_t type, uint32_t value)
{
	put(m, type, &value, sizeof(value));
}

static void put_u64(struct attributes *m, uint16_t type, uint64_t value)
{
	put(m, type, &value, sizeof(value));
}

static void put_text(struct attributes *m, uint16_t type, const char *text)
{
	put(m, type, text, strlen(text) + 1);
}

/* What each message begins with. */
static void put_device(struct attributes *m, const struct ibv_context *ctx)
{
	put_u32(m, RDMA_NLDEV_ATTR_DEV_INDEX, (uint32_t)ibv_get_device_index(ctx->device));
	put_text(m, RDMA_NLDEV_ATTR_DEV_NAME, ibv_get_device_name(ctx->device));
}

/* 0 or a negative errno. */
static int write_file(const char *root, const struct ibv_context *ctx, unsigned port,
		      const struct attributes *m)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/netlink", root);
	if (mkdir(path, 0755) && errno != EEXIST) {
		int ret = -errno;

		log_error("%s: %m", path);
		return ret;
	}
	snprintf(path, sizeof(path), "%s/netlink/%d.%u", root,
		 ibv_get_device_index(ctx->device), port);
	f = fopen(path, "we");
	if (f) {
		fwrite(m->bytes, 1, m->length, f);
		if (!fclose(f))
			return 0;
	}
	log_error("%s: %m", path);
	return -EIO;
}

static int write_port(const char *root, struct ibv_context *ctx, unsigned port)
{
	struct attributes m = { .length = 0 };
	struct ibv_gid_entry gid;
	char name[IF_NAMESIZE];
	struct ibv_port_attr a;

	if (ibv_query_port(ctx, (uint8_t)port, &a))
		return -errno;
	put_device(&m, ctx);
	put_u32(&m, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	if (a.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		put_u64(&m, RDMA_NLDEV_ATTR_CAP_FLAGS, a.port_cap_flags);
		put_u32(&m, RDMA_NLDEV_ATTR_LID, a.lid);
		put_u32(&m, RDMA_NLDEV_ATTR_SM_LID, a.sm_lid);
		put_u8(&m, RDMA_NLDEV_ATTR_LMC, a.lmc);
	}
	put_u8(&m, RDMA_NLDEV_ATTR_PORT_STATE, (uint8_t)a.state);
	put_u8(&m, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, a.phys_state);
	/* A port of Ethernet has one interface: that of the first address. */
	if (a.link_layer != IBV_LINK_LAYER_INFINIBAND &&
	    !ibv_query_gid_ex(ctx, port, 0, &gid, 0) && if_indextoname(gid.ndev_ifindex, name)) {
		put_u32(&m, RDMA_NLDEV_ATTR_NDEV_INDEX, gid.ndev_ifindex);
		put_text(&m, RDMA_NLDEV_ATTR_NDEV_NAME, name);
	}
	return write_file(root, ctx, port, &m);
}

int cli_exec_netlink(const char *root, struct ibv_context *ctx)
{
	struct attributes m = { .length = 0 };
	struct ibv_device_attr_ex ex;
	const struct ibv_device_attr *a = &ex.orig_attr;
	int ret;

	if (ibv_query_device_ex(ctx, NULL, &ex))
		return -errno;
	put_device(&m, ctx);
	put_u32(&m, RDMA_NLDEV_ATTR_PORT_INDEX, a->phys_port_cnt);
	put_u64(&m, RDMA_NLDEV_ATTR_CAP_FLAGS, ex.device_cap_flags_ex);
	put_text(&m, RDMA_NLDEV_ATTR_FW_VERSION, a->fw_ver);
	put_u64(&m, RDMA_NLDEV_ATTR_NODE_GUID, be64toh(a->node_guid));
	put_u64(&m, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, be64toh(a->sys_image_guid));
	put_u8(&m, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, (uint8_t)ctx->device->node_type);
	put_text(&m, RDMA_NLDEV_ATTR_DEV_PROTOCOL,
		 ctx->device->transport_type == IBV_TRANSPORT_IWARP ? "iw" : "roce");
	ret = write_file(root, ctx, 0, &m);
	for (unsigned port = 1; !ret && port <= a->phys_port_cnt; port++)
		ret = write_port(root, ctx, port);
	return ret;
}
