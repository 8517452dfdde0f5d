/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter's settings; see settings.h. */
#define LOG_ROOM "settings"
#include "hca/host/settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#include "util/container_of.h"
#include "util/log.h"

static const char *const peers_names[] = { "user", "group", "any", NULL };
static const char *const memory_names[] = { "target", "regions", "ptrace", "all",
					    NULL };
#define PEERS_ENV "BUSBAR_PEERS"
#define MEMORY_ENV "BUSBAR_MEMORY"
#define WITHOUT_ENV "BUSBAR_WITHOUT"

static const char *const access_names[] = { "auto", "process_vm", "procmem",
					    "target", NULL };

static const char *const link_layer_names[] = { "ethernet", "infiniband", NULL };

/* By enum ibv_mtu. */
static const char *const mtu_names[] = { "auto", "256", "512", "1024", "2048", "4096", NULL };

static const char *const devices_names[] = { "both", "soft", "system", "iwarp", "all", NULL };
static const uint8_t devices_bits[] = {
	HCA_DEVICES_SOFT0 | HCA_DEVICES_SYSTEM,
	HCA_DEVICES_SOFT0,
	HCA_DEVICES_SYSTEM,
	HCA_DEVICES_SOFT1,
	HCA_DEVICES_SOFT0 | HCA_DEVICES_SOFT1 | HCA_DEVICES_SYSTEM,
};

const struct setting hca_setting_table[] = {
	{ .env = "BUSBAR_DEVICES",
	  .fallback = "both",
	  .type = SETTING_ENUM,
	  .names = devices_names,
	  .offset = offsetof(struct hca_settings, devices_named),
	  .help = "which devices programs see: soft (soft0, which speaks RoCE v2), system (those of the system's own libibverbs.so.1), both of these, iwarp (soft1, which speaks iWARP), or all three" },
	{ .env = "BUSBAR_SYSTEM_LIBIBVERBS",
	  .fallback = "auto",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct hca_settings, system_libibverbs),
	  .help = "the system's own libibverbs.so.1 by its absolute path, auto to look for it, or off" },
	{ .env = "BUSBAR_LINK_LAYER",
	  .fallback = "ethernet",
	  .type = SETTING_ENUM,
	  .names = link_layer_names,
	  .offset = offsetof(struct hca_settings, link_layer),
	  .help = "the network that the port of soft0 says it belongs to: ethernet (RoCE v2), or infiniband, for programs that use no other" },
	{ .env = "BUSBAR_MTU",
	  .fallback = "auto",
	  .type = SETTING_ENUM,
	  .names = mtu_names,
	  .offset = offsetof(struct hca_settings, mtu),
	  .help = "the MTU of the port of soft0, which most programs take as path MTU: 256, 512, 1024, 2048, 4096, or auto: the longest whose packets all interfaces take whole that lead out of this host" },
	{ .env = WITHOUT_ENV,
	  .fallback = "",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct hca_settings, without_text),
	  .help = "what soft0 does not have, to try programs as on an adapter without it, separated by commas: ud (datagrams, and with them multicast), uc, xrc, multicast, srq (shared receive queues), windows (memory windows), atomics, immediate (immediate data); all but srq are what soft1 does not have in any case (but see BUSBAR_IWARP_EXTENSIONS); empty for nothing" },
	{ .env = PEERS_ENV,
	  .fallback = "user",
	  .type = SETTING_ENUM,
	  .names = peers_names,
	  .offset = offsetof(struct hca_settings, peers),
	  .help = "whose processes on this host may exchange messages with this one: those of the same user and root, those of the same group too, or any" },
	{ .env = MEMORY_ENV,
	  .fallback = "ptrace",
	  .type = SETTING_ENUM,
	  .names = memory_names,
	  .offset = offsetof(struct hca_settings, memory),
	  .help = "how peers of the same user may reach this process's memory: target (it carries all operations out itself), regions (they map what lies in memory files), ptrace (and by process_vm system calls, where the kernel lets them), or all (and by a descriptor of all of its memory)" },
	{ .env = "BUSBAR_TRANSPORTS",
	  .fallback = "shm,roce",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct hca_settings, transports),
	  .help = "which transports carry messages, separated by commas: shm (shared memory, for processes of one host), roce (RoCE v2 over UDP, to other hosts and within this one), loop (packets inside of one process, for tests; with shm, as it leads nowhere else); where several lead to a peer, the one that is quickest is taken: loop, shm, roce" },
	{ .env = "BUSBAR_FABRIC",
	  .fallback = "",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct hca_settings, fabric),
	  .help = "NAME/HOST: soft0 is the InfiniBand port of this host of a fabric that `busbar fabric run` simulates, all messages go over that fabric, and BUSBAR_TRANSPORTS, BUSBAR_LINK_LAYER and BUSBAR_MTU have no effect; empty for none" },
	{ .env = "BUSBAR_FAULTS",
	  .fallback = "",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct hca_settings, faults),
	  .help = "what the transports roce and loop do to their packets, for tests, for example loss=1%,dup=1%,reorder=5%,delay=20us,seed=7, and events=FILE: drops, delays, marks, corrupts and duplicates single packets by their number, as the file says (busbar-adapter(7)); shm offers loss, partition, in.delay and in.jitter of messages, iwarp delay, jitter, rate, corrupt, partition, cut, reset and stall of streams; empty for nothing" },
	{ .env = "BUSBAR_PAGING",
	  .fallback = "",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct hca_settings, paging),
	  .help = "the adapter that soft0 behaves like where pages of regions on demand are missing, and after timeouts: connectx4, connectx5, connectx6, ideal, or a file with such a profile; transport shm is not used then; empty for none: pages are there at once" },
	{ .env = "BUSBAR_IWARP_EXTENSIONS",
	  .fallback = "off",
	  .type = SETTING_BOOL,
	  .offset = offsetof(struct hca_settings, rnic_extensions),
	  .help = "whether soft1 has atomics and RDMA WRITE with immediate data (RFC 7306), which no set-up agrees on: both ends of each connection must have it on, and no other adapter knows them" },
	{ .env = "BUSBAR_NETWORK",
	  .fallback = "all",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct hca_settings, network),
	  .help = "the addresses of this host by which it exchanges packets with other hosts: all, off (none: no UDP port is opened), or a list separated by commas; transport roce uses these alone, and those of the loopback interface" },
	{ .env = "BUSBAR_ROCE_PORT",
	  .fallback = "4791",
	  .type = SETTING_UINT,
	  .min = 1, .max = 65535,
	  .offset = offsetof(struct hca_settings, udp_port),
	  .help = "the UDP port of transport roce here and at all peers; 4791 is that of RoCE v2, another one is for peers with the same setting only" },
	{ .env = "BUSBAR_CAPTURE",
	  .fallback = "",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct hca_settings, capture),
	  .help = "file or pipe (FIFO) for all packets, for Wireshark (pcapng); %p is the process id; empty for none" },
	{ .env = "BUSBAR_CAPTURE_SIZE",
	  .fallback = "0",
	  .type = SETTING_SIZE,
	  .max = UINT64_C(1) << 50,
	  .offset = offsetof(struct hca_settings, capture_bytes),
	  .help = "how large such a file may become, at least 64k; 0 for no limit" },
	{ .env = "BUSBAR_CAPTURE_FILES",
	  .fallback = "1",
	  .type = SETTING_UINT,
	  .min = 1,
	  .max = 10000,
	  .offset = offsetof(struct hca_settings, capture_files),
	  .help = "how many files of that size are kept, the latest ones; with 1 the capture ends when the file is full" },
	{ .env = "BUSBAR_CAPTURE_SNAP",
	  .fallback = "0",
	  .type = SETTING_SIZE,
	  .max = 65536,
	  .offset = offsetof(struct hca_settings, capture_snap),
	  .help = "how many bytes of each packet are kept; 0 for all" },
	{ .env = "BUSBAR_SHM_EAGER",
	  .fallback = "1g",
	  .type = SETTING_SIZE,
	  .max = 1 << 30,
	  .offset = offsetof(struct hca_settings, eager_bytes),
	  .help = "messages up to this size are copied through shared memory, larger ones are pulled by the receiver" },
	{ .env = "BUSBAR_SHM_ACCESS",
	  .fallback = "auto",
	  .type = SETTING_ENUM,
	  .names = access_names,
	  .offset = offsetof(struct hca_settings, copy_access),
	  .help = "how a peer's memory is reached, as far as its BUSBAR_MEMORY allows: process_vm (system calls), procmem (a descriptor that the peer passes), target (the peer carries the operation out), or auto: the first of these that works" },
	{ .env = "BUSBAR_POLL_YIELD",
	  .fallback = "on",
	  .type = SETTING_BOOL,
	  .offset = offsetof(struct hca_settings, poll_yields),
	  .help = "whether a thread that has polled in vain for some microseconds lets others run on its processor" },
	{ .env = "BUSBAR_MAP_MEMORY",
	  .fallback = "off",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct hca_settings, map_memory_text),
	  .help = "move registered memory where peers can map it: off, on, or on from a size (k, m, g); changes what fork does to it" },
};
const size_t hca_setting_count = ARRAY_SIZE(hca_setting_table);

struct hca_settings hca_settings = { .transports = "shm,roce",
				     .network = "all",
				     .fabric = "",
				     .paging = "",
				     .faults = "",
				     .without_text = "",
				     .capture = "",
				     .eager_bytes = 1 << 30,
				     .memory = HCA_MEMORY_PTRACE,
				     .map_memory = HCA_MAP_NOTHING };

/* On, off, or a size. */
static void parse_map_memory(struct hca_settings *s)
{
	static const struct setting size = { .type = SETTING_SIZE,
					     .max = UINT64_MAX - 1 };
	static const struct setting boolean = { .type = SETTING_BOOL };
	bool on;

	if (!setting_parse(&boolean, s->map_memory_text, &on))
		s->map_memory = on ? 0 : HCA_MAP_NOTHING;
	else if (setting_parse(&size, s->map_memory_text, &s->map_memory))
		log_warn("BUSBAR_MAP_MEMORY=%s is none of off, on and a size (k, m, g): off",
			 s->map_memory_text);
}

/* By the bits of enum hca_without. */
static const char *const without_names[] = { "ud", "uc", "xrc", "multicast", "srq", "windows",
					     "atomics", "immediate" };

static unsigned without_bit(const char *name, size_t length)
{
	for (unsigned i = 0; i < ARRAY_SIZE(without_names); i++)
		if (strlen(without_names[i]) == length &&
		    !strncasecmp(without_names[i], name, length))
			return 1u << i;
	return 0;
}

static void parse_without(struct hca_settings *s)
{
	const char *at = s->without_text;

	s->without = 0;
	while (*at) {
		const size_t length = strcspn(at, ", ");
		const unsigned bit = without_bit(at, length);

		if (length && !bit) {
			log_warn(WITHOUT_ENV "='%.80s' not usable: '%.*s' is none of ud, uc, xrc, multicast, srq, windows, atomics and immediate; soft0 has everything",
				 s->without_text, (int)MIN(length, 40u), at);
			s->without = 0;
			return;
		}
		s->without |= bit;
		at += length;
		at += strspn(at, ", ");
	}
	/* Members of a group are queue pairs of datagrams. */
	if (s->without & HCA_WITHOUT_UD)
		s->without |= HCA_WITHOUT_MULTICAST;
}

/* The name and the value that earlier versions had for this setting. */
static void parse_old_peers(struct hca_settings *s)
{
	static const struct setting peers = { .type = SETTING_ENUM,
					      .names = peers_names };
	const char *text = getenv("BUSBAR_SHM_PEERS");

	if (!text || getenv(PEERS_ENV) || !strcasecmp(text, "same"))
		return;
	if (setting_parse(&peers, text, &s->peers))
		log_warn("BUSBAR_SHM_PEERS='%.80s' not usable, expected user, group or any, and " PEERS_ENV " is its name now; using user",
			 text);
}

/* In a set-user-id program environment variables must not open the process to other users. */
static void keep_closed(struct hca_settings *s)
{
	if (!getauxval(AT_SECURE))
		return;
	s->peers = HCA_PEERS_USER;
	s->memory = MIN(s->memory, HCA_MEMORY_PTRACE);
	s->capture = ""; /* nor replace files with its rights */
	s->paging = "";  /* nor read any */
}

/* What one side copies by itself, the other side does not see, and nothing of it is lost:
 * with a capture or faults each operation becomes a message. */
static void show_all(struct hca_settings *s)
{
	if (!s->capture[0] && !s->faults[0])
		return;
	s->memory = HCA_MEMORY_TARGET;
	s->copy_access = HCA_ACCESS_TARGET;
}

/* Nothing of an adapter's paging happens to messages of transport shm. */
static void leave_out_shm(struct hca_settings *s)
{
	if (s->paging[0] && strstr(s->transports, "shm"))
		s->transports = "roce";
}

/* A port of a simulated fabric has no other way to its peers than the fabric, and there is no other
 * device: what a program sends is to be seen by that fabric. */
static void plug_in(struct hca_settings *s)
{
	if (!s->fabric[0])
		return;
	s->transports = "fabric";
	s->link_layer = HCA_LINK_INFINIBAND;
	s->mtu = 0;
	if (s->devices & (HCA_DEVICES_SOFT0 | HCA_DEVICES_SOFT1))
		s->devices = (s->devices & HCA_DEVICES_SYSTEM) | HCA_DEVICES_SOFT0;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	log_init(LOG_WARN);
	settings_load(hca_setting_table, hca_setting_count, &hca_settings);
	hca_settings.devices = devices_bits[hca_settings.devices_named];
	parse_old_peers(&hca_settings);
	keep_closed(&hca_settings);
	show_all(&hca_settings);
	leave_out_shm(&hca_settings);
	plug_in(&hca_settings);
	parse_map_memory(&hca_settings);
	parse_without(&hca_settings);
}

void hca_settings_init(void)
{
	pthread_once(&once, load);
}
