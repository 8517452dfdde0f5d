/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar devices`: every RDMA device that a verbs program would see here, with
 * ports, states and addresses. Uses the public verbs only, so it shows real
 * adapters and busbar's own alike.
 */
#include "cli/cli.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hca/settings.h"
#include "util/log.h"

static void print_help(FILE *out)
{
	fputs("usage: busbar devices [-v] [DEVICE...]\n"
	      "       busbar devices --settings\n"
	      "\n"
	      "Lists RDMA devices, their ports and addresses (GIDs).\n"
	      "\n"
	      "  -v, --verbose  limits and capabilities as well\n"
	      "      --settings the software adapter's settings: environment\n"
	      "                 variables, defaults and meaning\n"
	      "  -h, --help     this text\n",
	      out);
}

static const char *gid_type_name(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_IB: return "InfiniBand";
	case IBV_GID_TYPE_ROCE_V1: return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2: return "RoCE v2";
	default: return "unknown";
	}
}

static const char *link_layer_name(uint8_t layer)
{
	switch (layer) {
	case IBV_LINK_LAYER_INFINIBAND: return "InfiniBand";
	case IBV_LINK_LAYER_ETHERNET: return "Ethernet";
	default: return "unknown link";
	}
}

static unsigned mtu_bytes(enum ibv_mtu mtu)
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
		char text[INET6_ADDRSTRLEN], name[IF_NAMESIZE] = "";

		/* An empty place in the table is -ENODATA, not an error. */
		if (ibv_query_gid_ex(ctx, port, (uint32_t)i, &e, 0))
			continue;
		inet_ntop(AF_INET6, e.gid.raw, text, sizeof(text));
		if (e.ndev_ifindex)
			if_indextoname(e.ndev_ifindex, name);
		printf("    gid %-3d %-10s %s%s%s\n", i,
		       gid_type_name(e.gid_type), text, *name ? " on " : "", name);
	}
}

static int print_port(struct ibv_context *ctx, unsigned port)
{
	struct ibv_port_attr a;
	int err = ibv_query_port(ctx, (uint8_t)port, &a);
	double gbit;

	if (err) {
		log_error("device %s port %u: query: %s", ctx->device->name,
			  port, strerror(err));
		return -err;
	}
	gbit = lane_gbit(a.active_speed) * lanes(a.active_width);
	printf("  port %u  %s, %s", port, ibv_port_state_str(a.state),
	       link_layer_name(a.link_layer));
	if (gbit > 0)
		printf(", %g Gbit/s", gbit);
	printf(", MTU %u (max %u)", mtu_bytes(a.active_mtu),
	       mtu_bytes(a.max_mtu));
	if (a.link_layer == IBV_LINK_LAYER_INFINIBAND)
		printf(", LID %u", a.lid);
	printf("\n");
	print_gids(ctx, port, a.gid_tbl_len);
	return 0;
}

static const char *atomic_name(enum ibv_atomic_cap cap)
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
	printf("    atomics              %s\n", atomic_name(a->atomic_cap));
	printf("    partition keys       %d\n", a->max_pkeys);
}

static int print_device(struct ibv_device *dev, bool verbose)
{
	const char *kind = dev->transport_type == IBV_TRANSPORT_IWARP
				   ? "iWARP" : "InfiniBand verbs";
	struct ibv_context *ctx = ibv_open_device(dev);
	struct ibv_device_attr a;
	uint64_t guid;
	int err;

	if (!ctx) {
		err = errno;
		log_error("device %s cannot be opened: %s",
			  ibv_get_device_name(dev), strerror(err));
		return -err;
	}
	err = ibv_query_device(ctx, &a);
	if (err) {
		log_error("device %s: query: %s", ibv_get_device_name(dev),
			  strerror(err));
		goto out_close;
	}
	guid = be64toh(a.node_guid);
	printf("%s  %s, GUID %04x:%04x:%04x:%04x, vendor 0x%06x, firmware %s\n",
	       ibv_get_device_name(dev), kind, (unsigned)(guid >> 48),
	       (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
	       (unsigned)guid & 0xffff, a.vendor_id,
	       a.fw_ver[0] ? a.fw_ver : "-");
	for (unsigned p = 1; p <= a.phys_port_cnt && !err; p++)
		err = -print_port(ctx, p);
	if (verbose && !err)
		print_limits(&a);
out_close:
	ibv_close_device(ctx);
	return -err;
}

static void print_library(void)
{
	Dl_info info;

	if (dladdr((void *)(uintptr_t)ibv_get_device_list, &info) &&
	    info.dli_fname)
		printf("library  %s\n", info.dli_fname);
}

/* Prints all devices, or those named; returns how many failed. */
static int print_devices(struct ibv_device **list, char **names, int count,
			 bool verbose)
{
	int failed = 0;

	if (count == 0) {
		for (; *list; list++)
			failed += print_device(*list, verbose) != 0;
		return failed;
	}
	for (int i = 0; i < count; i++) {
		struct ibv_device **d = list;

		while (*d && strcmp(ibv_get_device_name(*d), names[i]))
			d++;
		if (*d) {
			failed += print_device(*d, verbose) != 0;
		} else {
			log_error("no device '%s', 'busbar devices' lists all",
				  names[i]);
			failed++;
		}
	}
	return failed;
}

int cli_devices(int argc, char **argv)
{
	static const struct option options[] = {
		{ "verbose", no_argument, NULL, 'v' },
		{ "settings", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct ibv_device **list;
	bool verbose = false;
	int opt, count, failed;

	while ((opt = getopt_long(argc, argv, "vh", options, NULL)) != -1) {
		if (opt == 'h') {
			print_help(stdout);
			return CLI_OK;
		}
		if (opt == 's') {
			settings_print(hca_setting_table, hca_setting_count,
				       stdout);
			return CLI_OK;
		}
		if (opt != 'v')
			return CLI_USAGE;
		verbose = true;
	}
	list = ibv_get_device_list(&count);
	if (!list) {
		log_error("the devices cannot be listed: %s", strerror(errno));
		return CLI_FAILED;
	}
	if (verbose)
		print_library();
	if (count == 0)
		log_error("there is no RDMA device; busbar's own adapter (soft0) should be here, see 'busbar version'");
	failed = print_devices(list, argv + optind, argc - optind, verbose);
	ibv_free_device_list(list);
	return failed || count == 0 ? CLI_FAILED : CLI_OK;
}
