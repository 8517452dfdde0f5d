/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries below /sys and /dev for busbar's devices, and answers of RDMA netlink about them; see
 * exec_dir.h. */
#include "cli/exec_dir.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/log.h"

/* ---- answers of RDMA netlink, for libbusbar-paths.so (src/paths/netlink.c): files of netlink
 * attributes below `root`/netlink, named by the index of the device, a dot, and the number of
 * the port, which is 0 for the device itself ---- */

struct attributes {
	uint8_t bytes[1024];
	size_t length;
};

static void add(struct attributes *m, uint16_t type, const void *value, size_t size)
{
	const struct nlattr a = { .nla_len = (uint16_t)(NLA_HDRLEN + size), .nla_type = type };

	if ((size_t)NLA_ALIGN(a.nla_len) > sizeof(m->bytes) - m->length)
		return;
	memcpy(m->bytes + m->length, &a, sizeof(a));
	memcpy(m->bytes + m->length + NLA_HDRLEN, value, size);
	m->length += (size_t)NLA_ALIGN(a.nla_len);
}

#define ADD(m, attribute, type, value) \
	add(m, RDMA_NLDEV_ATTR_##attribute, &(type){ (value) }, sizeof(type))

static void add_text(struct attributes *m, uint16_t type, const char *text)
{
	add(m, type, text, strlen(text) + 1);
}

/* What each message begins with. */
static void add_device(struct attributes *m, const struct ibv_context *ctx)
{
	ADD(m, DEV_INDEX, uint32_t, (uint32_t)ibv_get_device_index(ctx->device));
	add_text(m, RDMA_NLDEV_ATTR_DEV_NAME, ibv_get_device_name(ctx->device));
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
	add_device(&m, ctx);
	ADD(&m, PORT_INDEX, uint32_t, port);
	if (a.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		ADD(&m, CAP_FLAGS, uint64_t, a.port_cap_flags);
		ADD(&m, LID, uint32_t, a.lid);
		ADD(&m, SM_LID, uint32_t, a.sm_lid);
		ADD(&m, LMC, uint8_t, a.lmc);
	}
	ADD(&m, PORT_STATE, uint8_t, (uint8_t)a.state);
	ADD(&m, PORT_PHYS_STATE, uint8_t, a.phys_state);
	/* A port of Ethernet has one interface: that of the first address. */
	if (a.link_layer != IBV_LINK_LAYER_INFINIBAND &&
	    !ibv_query_gid_ex(ctx, port, 0, &gid, 0) && if_indextoname(gid.ndev_ifindex, name)) {
		ADD(&m, NDEV_INDEX, uint32_t, gid.ndev_ifindex);
		add_text(&m, RDMA_NLDEV_ATTR_NDEV_NAME, name);
	}
	return write_file(root, ctx, port, &m);
}

/* 0 or a negative errno, which is logged. */
static int write_answers(const char *root, struct ibv_context *ctx)
{
	struct attributes m = { .length = 0 };
	struct ibv_device_attr_ex ex;
	const struct ibv_device_attr *a = &ex.orig_attr;
	int ret;

	if (ibv_query_device_ex(ctx, NULL, &ex))
		return -errno;
	add_device(&m, ctx);
	ADD(&m, PORT_INDEX, uint32_t, a->phys_port_cnt);
	ADD(&m, CAP_FLAGS, uint64_t, ex.device_cap_flags_ex);
	add_text(&m, RDMA_NLDEV_ATTR_FW_VERSION, a->fw_ver);
	ADD(&m, NODE_GUID, uint64_t, be64toh(a->node_guid));
	ADD(&m, SYS_IMAGE_GUID, uint64_t, be64toh(a->sys_image_guid));
	ADD(&m, DEV_NODE_TYPE, uint8_t, (uint8_t)ctx->device->node_type);
	add_text(&m, RDMA_NLDEV_ATTR_DEV_PROTOCOL,
		 ctx->device->transport_type == IBV_TRANSPORT_IWARP ? "iw" : "roce");
	ret = write_file(root, ctx, 0, &m);
	for (unsigned port = 1; !ret && port <= a->phys_port_cnt; port++)
		ret = write_port(root, ctx, port);
	return ret;
}

/* ---- entries ---- */

/* The values of the kernel. */
#define VERBS_ABI 6
#define RATES 8

/* Where files are written, and the first error. */
struct tree {
	const char *root;
	char dir[PATH_MAX / 2]; /* the device's folder */
	int err;
};

static void fail(struct tree *t, const char *path)
{
	if (t->err)
		return;
	t->err = -errno;
	log_error("%s: %m", path);
}

/* Makes the parent folders of `path`. */
static void make_folders(struct tree *t, char *path)
{
	for (char *at = path + strlen(t->root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			fail(t, path);
		*at = '/';
	}
}

/* The name of a file, in the buffer `name` of the function that needs it. */
#define NAME(...) (snprintf(name, sizeof(name), __VA_ARGS__), name)

/* Writes a file of one line; `name` is relative to the device's folder, or the root. */
__attribute__((format(printf, 3, 4))) static void
put(struct tree *t, const char *name, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", name[0] == '/' ? t->root : t->dir,
		 name + (name[0] == '/'));
	f = fopen(path, "we");
	if (!f && errno == ENOENT) {
		make_folders(t, path);
		f = fopen(path, "we");
	}
	if (!f) {
		fail(t, path);
		return;
	}
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	putc('\n', f);
	if (fclose(f))
		fail(t, path);
}

static void put_link(struct tree *t, const char *name, const char *to,
		     bool may_exist)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", name[0] == '/' ? t->root : t->dir,
		 name + (name[0] == '/'));
	if (!symlink(to, path))
		return;
	if (errno == ENOENT) {
		make_folders(t, path);
		if (!symlink(to, path))
			return;
	}
	if (!may_exist || errno != EEXIST)
		fail(t, path);
}

static void put_guid(struct tree *t, const char *name, __be64 guid)
{
	uint64_t g = be64toh(guid);

	put(t, name, "%04x:%04x:%04x:%04x", (unsigned)(g >> 48),
	    (unsigned)(g >> 32) & 0xffff, (unsigned)(g >> 16) & 0xffff,
	    (unsigned)g & 0xffff);
}

static const char *state_name(enum ibv_port_state state)
{
	static const char *const names[] = { "NOP", "DOWN", "INIT", "ARMED",
					     "ACTIVE", "ACTIVE_DEFER" };

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] :
								     "NOP";
}

static const char *phys_state_name(unsigned state)
{
	static const char *const names[] = { "<unknown>", "Sleep", "Polling", "Disabled",
					     "PortConfigurationTraining", "LinkUp",
					     "LinkErrorRecovery", "Phy Test" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "<unknown>";
}

static const char *node_name(enum ibv_node_type type)
{
	return type == IBV_NODE_CA   ? "CA" :
	       type == IBV_NODE_RNIC ? "RNIC" :
				       "<unknown>";
}

static void put_rate(struct tree *t, const char *name,
		     const struct ibv_port_attr *a)
{
	/* Index: the number of the bit in active_speed. */
	static const struct {
		double gbit;
		const char *name;
	} lanes[RATES] = { { 2.5, " SDR" }, { 5, " DDR" },   { 10, " QDR" },
			   { 10, " FDR10" }, { 14, " FDR" }, { 25, " EDR" },
			   { 50, " HDR" },  { 100, " NDR" } };
	unsigned width = a->active_width == 16 ? 2 :
			 a->active_width == 8  ? 12 :
			 a->active_width == 4  ? 8 :
			 a->active_width == 2  ? 4 :
						 1;
	unsigned lane = 0;

	while (lane + 1 < RATES && a->active_speed > 1U << lane)
		lane++;
	put(t, name, "%g Gb/sec (%uX%s)", width * lanes[lane].gbit, width,
	    lanes[lane].name);
}

static void put_gids(struct tree *t, struct ibv_context *ctx, unsigned port)
{
	struct ibv_gid_entry list[256];
	ssize_t count = ibv_query_gid_table(ctx, list, 256, 0);

	for (ssize_t i = 0; i < count; i++) {
		const struct ibv_gid_entry *e = &list[i];
		char name[64], gid[8 * 5 + 1], net[IF_NAMESIZE], link[64];

		if (e->port_num != port)
			continue;
		for (unsigned w = 0; w < 8; w++)
			snprintf(gid + 5 * w, 6, "%02x%02x:", e->gid.raw[2 * w],
				 e->gid.raw[2 * w + 1]);
		gid[8 * 5 - 1] = '\0'; /* without the last colon */
		put(t, NAME("ports/%u/gids/%u", port, e->gid_index), "%s", gid);
		put(t, NAME("ports/%u/gid_attrs/types/%u", port, e->gid_index), "%s",
		    e->gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
		if (!if_indextoname(e->ndev_ifindex, net))
			continue;
		put(t, NAME("ports/%u/gid_attrs/ndevs/%u", port, e->gid_index), "%s", net);
		snprintf(link, sizeof(link), "/sys/class/net/%s", net);
		/* The loopback interface only if there is no other one. */
		if (strcmp(net, "lo") != 0 || i == 0)
			put_link(t, NAME("device/net/%s", net), link, true);
	}
}

static void put_port(struct tree *t, struct ibv_context *ctx, unsigned port)
{
	struct ibv_port_attr a;
	char name[64];
	__be16 pkey;

#define PORT(file) NAME("ports/%u/" file, port)
	if (ibv_query_port(ctx, (uint8_t)port, &a))
		return;
	put(t, PORT("state"), "%d: %s", a.state, state_name(a.state));
	put(t, PORT("phys_state"), "%d: %s", a.phys_state, phys_state_name(a.phys_state));
	put_rate(t, PORT("rate"), &a);
	put(t, PORT("link_layer"), "%s",
	    a.link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet");
	put(t, PORT("lid"), "0x%x", a.lid);
	put(t, PORT("lid_mask_count"), "%u", a.lmc);
	put(t, PORT("sm_lid"), "0x%x", a.sm_lid);
	put(t, PORT("sm_sl"), "%u", a.sm_sl);
	put(t, PORT("cap_mask"), "0x%08x", a.port_cap_flags);
	for (int i = 0; i < a.pkey_tbl_len; i++) {
		if (ibv_query_pkey(ctx, (uint8_t)port, i, &pkey))
			break;
		put(t, NAME("ports/%u/pkeys/%d", port, i), "0x%04x", be16toh(pkey));
	}
	put_gids(t, ctx, port);
#undef PORT
}

/*
 * The node in /dev is a link to /dev/full: programs expect a character device that they
 * can open, and commands to this one fail.
 */
static void put_node(struct tree *t, const struct ibv_device *dev)
{
	char name[2 * IBV_SYSFS_NAME_MAX + 64];
	struct stat st;

	put_link(t, NAME("/dev/infiniband/%s", dev->dev_name), "/dev/full", false);
	put(t, NAME("/sys/class/infiniband_verbs/%s/ibdev", dev->dev_name), "%s", dev->name);
	put(t, NAME("/sys/class/infiniband_verbs/%s/abi_version", dev->dev_name), "1");
	if (!stat("/dev/full", &st))
		put(t, NAME("/sys/class/infiniband_verbs/%s/dev", dev->dev_name), "%u:%u",
		    major(st.st_rdev), minor(st.st_rdev));
}

static int put_device(const char *root, struct ibv_device *dev)
{
	struct tree t = { .root = root };
	struct ibv_context *ctx = ibv_open_device(dev);
	struct ibv_device_attr attr;

	if (!ctx)
		return -errno;
	snprintf(t.dir, sizeof(t.dir), "%s%s", root, dev->ibdev_path);
	if (!ibv_query_device(ctx, &attr)) {
		put(&t, "node_type", "%d: %s", dev->node_type, node_name(dev->node_type));
		put_guid(&t, "node_guid", attr.node_guid);
		put_guid(&t, "sys_image_guid", attr.sys_image_guid);
		put(&t, "node_desc", "%s", dev->name);
		put(&t, "fw_ver", "%s", attr.fw_ver);
		put(&t, "hw_rev", "%x", attr.hw_ver);
		put(&t, "hca_type", "busbar");
		put(&t, "device/numa_node", "-1");
		put_link(&t, "device/driver", "../../../../bus/busbar/drivers/busbar",
			 false);
		put(&t, "/sys/bus/busbar/drivers/busbar/module", "busbar");
		for (unsigned port = 1; port <= attr.phys_port_cnt; port++)
			put_port(&t, ctx, port);
		put_node(&t, dev);
		if (!t.err)
			t.err = write_answers(root, ctx);
	}
	ibv_close_device(ctx);
	return t.err;
}

int cli_exec_tree(const char *root)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct tree t = { .root = root };

	if (!list)
		return -errno;
	for (struct ibv_device **d = list; *d && !t.err; d++)
		if (access((*d)->ibdev_path, F_OK))
			t.err = put_device(root, *d);
	ibv_free_device_list(list);
	if (!t.err && access("/sys/class/infiniband_verbs/abi_version", F_OK))
		put(&t, "/sys/class/infiniband_verbs/abi_version", "%d", VERBS_ABI);
	return t.err;
}
