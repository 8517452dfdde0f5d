/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of each of the types, as VILLASnode has them, and what each needs. Beside the keys of
 * VILLASnode's present versions there are those of its published examples.
 */
#include <errno.h>
#include <string.h>

#include "gateway/node/devices/devices.h"
#include "util/container_of.h"

#define UINT32_LIMIT 4294967295.0

/* Key `i` of a type, stored in v[i]; what follows are members of struct config_key. Keys that are
 * told apart by their group alone have numbers of their own. */
#define KEY(i, name_, type_, ...) \
	{ .name = name_, .type = type_, .offset = offsetof(struct device_node, v[i]), __VA_ARGS__ }

#define WITH_EXEC "let a program that has it exchange samples by exec or shmem"

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

/* ---- ethercat ---- */

#define TERMINAL(first, position_, product_code_) \
	KEY(first, "num_channels", CONFIG_INT, .fallback = "8", .min = 1, .max = 1024, \
	    .help = "Channels of the terminal"), \
	KEY(first + 1, "range", CONFIG_REAL, .fallback = "10.0", .min = 1e-6, .max = 1e6, \
	    .help = "Volts of the highest code"), \
	KEY(first + 2, "position", CONFIG_INT, .fallback = position_, .min = 0, .max = 65535, \
	    .help = "Place of the terminal on the bus"), \
	KEY(first + 3, "product_code", CONFIG_INT, .fallback = product_code_, .min = 0, \
	    .max = UINT32_LIMIT, .help = "Product code of the terminal"), \
	KEY(first + 4, "vendor_id", CONFIG_INT, .fallback = "2", .min = 0, .max = UINT32_LIMIT, \
	    .help = "Vendor of the terminal; 2 is Beckhoff")

static const struct config_key ethercat_keys[] = {
	KEY(0, "rate", CONFIG_REAL, .fallback = "1000.0", .min = 1e-3, .max = 1e5,
	    .help = "Cycles of the bus per second"),
};
/* Product codes of an EL3008 and an EL4038. */
static const struct config_key ethercat_in_keys[] = { TERMINAL(1, "2", "196882514") };
static const struct config_key ethercat_out_keys[] = { TERMINAL(6, "1", "264646738") };

static const struct config_key coupler_keys[] = {
	KEY(0, "position", CONFIG_INT, .min = 0, .max = 65535, .help = "Place of the coupler on the bus"),
	KEY(1, "product_code", CONFIG_INT, .min = 0, .max = UINT32_LIMIT, .help = "Its product code"),
	KEY(2, "vendor_id", CONFIG_INT, .min = 0, .max = UINT32_LIMIT, .help = "Its vendor"),
};

const struct config_key device_ethercat_keys[DEVICE_ETHERCAT_KEYS] = {
	KEY(0, "master", CONFIG_INT, .min = 0, .max = 65535, .help = "Number of the master"),
	KEY(1, "alias", CONFIG_INT, .min = 0, .max = 65535, .help = "Alias that positions count from"),
	KEY(2, "coupler", CONFIG_JSON, .group = coupler_keys, .group_count = ARRAY_SIZE(coupler_keys),
	    .help = "The coupler in front of the terminals"),
};

void device_ethercat_check(struct config *c, const json_t *at, const json_t *value)
{
	struct device_node d = { 0 }, coupler = { 0 };

	if (!value || json_is_null(value))
		return;
	if (!json_is_object(value))
		config_fail(c, at, "ethercat", "is a group such as { master = 0; alias = 0; }");
	else if (!config_unpack(c, value, device_ethercat_keys, DEVICE_ETHERCAT_KEYS, &d, NULL, 0))
		config_unpack(c, d.v[2].json, coupler_keys, ARRAY_SIZE(coupler_keys), &coupler, NULL, 0);
}

/* ---- fpga ---- */

static const struct config_key fpga_keys[] = {
	KEY(0, "card", CONFIG_STRING, .help = "Name of the card in `fpgas`"),
	KEY(1, "fpga", CONFIG_STRING, .help = "Older name of card"),
	KEY(2, "interface", CONFIG_STRING, .help = "Name of the interface on the card"),
	KEY(3, "target", CONFIG_STRING, .help = "Older key of the interface"),
	KEY(4, "dma", CONFIG_STRING, .help = "Name of the DMA controller on the card"),
	KEY(5, "datamover", CONFIG_STRING, .help = "Older name of dma"),
	KEY(6, "connect", CONFIG_JSON, .form = CONFIG_TEXTS,
	    .help = "Connections that the switch of the card makes, \"0<->dma\""),
	KEY(7, "coalesce", CONFIG_INT, .fallback = "0", .min = 0, .max = 255,
	    .help = "Transfers for one interrupt"),
	KEY(8, "polling", CONFIG_BOOL, .fallback = "true", .help = "Poll, and use no interrupts"),
	KEY(9, "use_irqs", CONFIG_BOOL, .fallback = "false", .help = "Older opposite of polling"),
	KEY(10, "lowLatencyMode", CONFIG_BOOL, .fallback = "false",
	    .help = "Prepare one transfer of a fixed size"),
};

static bool is_texts(const json_t *value)
{
	size_t i;
	json_t *e;

	if (!value || json_is_null(value) || json_is_string(value))
		return true;
	if (!json_is_array(value))
		return false;
	json_array_foreach((json_t *)(uintptr_t)value, i, e)
		if (!json_is_string(e))
			return false;
	return true;
}

static int fpga_check(const struct device_node *d, struct config *c, const json_t *cfg)
{
	if (is_texts(d->v[6].json))
		return 0;
	return fail(c, cfg, "connect", "is a list such as [ \"0<->dma\" ]");
}

static const struct config_key card_keys[] = {
	KEY(0, "interface", CONFIG_STRING, .help = "pcie or platform"),
	KEY(1, "id", CONFIG_STRING, .help = "PCI vendor and device, \"10ee:7021\""),
	KEY(2, "slot", CONFIG_STRING, .help = "Its slot, \"88:00.0\""),
	KEY(3, "do_reset", CONFIG_BOOL, .help = "Reset the card at the start"),
	KEY(4, "polling", CONFIG_BOOL, .help = "Poll, and use no interrupts"),
	KEY(5, "ips", CONFIG_JSON, .help = "File that describes the design"),
	KEY(6, "ignore_ips", CONFIG_JSON, .help = "Parts of the design that are left alone"),
	KEY(7, "paths", CONFIG_JSON, .help = "Connections of the switch, { from, to, reverse }"),
};

const char device_fpgas_form[] = "'type': ['object', 'null'], 'additionalProperties': {'type': 'object', "
	"'additionalProperties': false, 'properties': {'interface': {'type': 'string'}, "
	"'id': {'type': 'string'}, 'slot': {'type': 'string'}, 'do_reset': {'type': 'boolean'}, "
	"'polling': {'type': 'boolean'}, 'ips': {}, 'ignore_ips': {}, 'paths': {}}}";

void device_fpgas_check(struct config *c, const json_t *at, const json_t *value)
{
	const char *name;
	json_t *card;

	if (!value || json_is_null(value))
		return;
	if (!json_is_object(value)) {
		config_fail(c, at, "fpgas", "is a group of cards, { vc707 = { id = \"10ee:7021\"; } }");
		return;
	}
	json_object_foreach((json_t *)(uintptr_t)value, name, card) {
		struct device_node d = { 0 };

		if (!json_is_object(card))
			config_fail(c, value, name, "is a group such as { id = \"10ee:7021\"; }");
		else
			config_unpack(c, card, card_keys, ARRAY_SIZE(card_keys), &d, NULL, 0);
	}
}

/* ---- opal.async ---- */

static const struct config_key opal_async_keys[] = {
	KEY(0, "id", CONFIG_INT, .required = true, .min = 0, .max = 65535,
	    .help = "Number of the blocks OpAsyncSend and OpAsyncRecv in the model"),
};
static const struct config_key opal_async_in_keys[] = {
	KEY(1, "reply", CONFIG_BOOL, .fallback = "true",
	    .help = "Tell the model that its values have been taken"),
};

/* ---- opal.orchestra ---- */

#define DURATION_FORM \
	"'anyOf': [{'type': 'number', 'minimum': 0}, {'type': 'null'}, " \
	"{'type': 'string', 'pattern': '^[0-9]+(ns|us|ms|s|m|h|d)$'}]"

enum {
	ORCHESTRA_CONNECTION = 4,
	ORCHESTRA_CONNECT_TIMEOUT = 5,
	ORCHESTRA_FLAG_DELAY = 6,
	ORCHESTRA_FLAG_DELAY_TOOL = 7,
};

static const char *const connection_types[] = { "local", "remote", "dolphin", NULL };
static const char *const communications[] = { "none", "udp", "tcp", NULL };

/* Published examples have other spellings of these keys. */
static const struct config_key connection_keys[] = {
	KEY(0, "type", CONFIG_ENUM, .required = true, .names = connection_types,
	    .help = "local, remote or dolphin"),
	KEY(1, "extcomm", CONFIG_ENUM, .fallback = "none", .names = communications,
	    .help = "local: protocol of the helper between two hosts"),
	KEY(2, "addr_framework", CONFIG_STRING, .help = "local: address of the framework"),
	KEY(3, "addrframework", CONFIG_STRING, .help = "The same"),
	KEY(4, "port_framework", CONFIG_INT, .min = 0, .max = 65535, .help = "local: its port"),
	KEY(5, "portframework", CONFIG_INT, .min = 0, .max = 65535, .help = "The same"),
	KEY(6, "nic_framework", CONFIG_STRING, .help = "local: its network interface"),
	KEY(7, "nicframework", CONFIG_STRING, .help = "The same"),
	KEY(8, "nic_client", CONFIG_STRING, .help = "local: our network interface"),
	KEY(9, "nicclient", CONFIG_STRING, .help = "The same"),
	KEY(10, "core_framework", CONFIG_INT, .min = 0, .max = 4095, .help = "local: its processor"),
	KEY(11, "coreframework", CONFIG_INT, .min = 0, .max = 4095, .help = "The same"),
	KEY(12, "core_client", CONFIG_INT, .min = 0, .max = 4095, .help = "local: our processor"),
	KEY(13, "coreclient", CONFIG_INT, .min = 0, .max = 4095, .help = "The same"),
	KEY(14, "card", CONFIG_STRING, .help = "remote: kind of the reflective memory card"),
	KEY(15, "pci_index", CONFIG_INT, .min = 0, .max = 255, .help = "remote: its number"),
	KEY(16, "pciindex", CONFIG_INT, .min = 0, .max = 255, .help = "The same"),
	KEY(17, "node_id_framework", CONFIG_INT, .min = 0, .max = 4096,
	    .help = "dolphin: node of the framework"),
	KEY(18, "nodeIdFramework", CONFIG_INT, .min = 0, .max = 4096, .help = "The same"),
	KEY(19, "segment_id", CONFIG_INT, .min = 0, .max = 65535, .help = "dolphin: segment"),
	KEY(20, "segmentId", CONFIG_INT, .min = 0, .max = 65535, .help = "The same"),
};

static const struct config_key orchestra_keys[] = {
	KEY(0, "domain", CONFIG_STRING, .required = true, .help = "Domain of Orchestra"),
	KEY(1, "ddf", CONFIG_STRING, .help = "File that describes the data of the domain"),
	KEY(2, "synchronous", CONFIG_BOOL, .fallback = "false",
	    .help = "Exchange data in the steps of the simulation"),
	KEY(3, "states", CONFIG_BOOL, .fallback = "false", .help = "For the file: with states"),
	KEY(ORCHESTRA_CONNECTION, "connection", CONFIG_JSON, .group = connection_keys,
	    .group_count = ARRAY_SIZE(connection_keys), .help = "The way to the framework"),
	KEY(ORCHESTRA_CONNECT_TIMEOUT, "connect_timeout", CONFIG_JSON, .form = DURATION_FORM,
	    .help = "Seconds, or a duration such as \"5s\""),
	KEY(ORCHESTRA_FLAG_DELAY, "flag_delay", CONFIG_JSON, .form = DURATION_FORM,
	    .help = "Microseconds between looks at a flag, or a duration"),
	KEY(ORCHESTRA_FLAG_DELAY_TOOL, "flag_delay_tool", CONFIG_JSON, .form = DURATION_FORM,
	    .help = "The same for the helper"),
	KEY(8, "use_flag_with_tool", CONFIG_BOOL, .fallback = "false",
	    .help = "Use flags in place of semaphores with the helper"),
	KEY(9, "skip_wait_to_go", CONFIG_BOOL, .fallback = "false",
	    .help = "Do not wait for the model at the start"),
	KEY(10, "ddf_overwrite", CONFIG_BOOL, .fallback = "false", .help = "Write the file ddf"),
	KEY(11, "ddf_overwrite_only", CONFIG_BOOL, .fallback = "false", .help = "Do nothing else"),
	KEY(12, "multiple_publish_allowed", CONFIG_BOOL, .fallback = "false",
	    .help = "For the file: several may publish"),
	KEY(13, "rate", CONFIG_REAL, .fallback = "1.0", .min = 1e-6, .max = 1e6,
	    .help = "Exchanges per second, unless synchronous"),
};

static const char *const orchestra_types[] = { "", "boolean", "unsigned int8", "unsigned int16",
	"unsigned int32", "unsigned int64", "int8", "int16", "int32", "int64", "float32", "float64",
	"bus", NULL };

static const struct config_key orchestra_signal_keys[] = {
	KEY(0, "orchestra_name", CONFIG_STRING, .help = "Name of the item, BUS/ITEM; default the signal's"),
	KEY(1, "orchestra_type", CONFIG_ENUM, .fallback = "", .names = orchestra_types,
	    .help = "Type of the item; default that of the signal"),
	KEY(2, "orchestra_index", CONFIG_INT, .min = 0, .max = 65535, .help = "Index in the item"),
};

static bool is_duration(const json_t *value)
{
	static const char *const units[] = { "ns", "us", "ms", "s", "m", "h", "d" };
	const char *text = json_string_value(value), *unit;

	if (!value || json_is_null(value))
		return true;
	if (!text)
		return json_is_number(value) && json_number_value(value) >= 0;
	unit = text + strspn(text, "0123456789");
	for (size_t i = 0; unit != text && i < ARRAY_SIZE(units); i++)
		if (!strcmp(unit, units[i]))
			return true;
	return false;
}

static int orchestra_check(const struct device_node *d, struct config *c, const json_t *cfg)
{
	struct device_node connection = { 0 };
	int ret = 0;

	for (size_t i = ORCHESTRA_CONNECT_TIMEOUT; i <= ORCHESTRA_FLAG_DELAY_TOOL; i++)
		if (!is_duration(d->v[i].json))
			ret = fail(c, cfg, orchestra_keys[i].name, "is a number, or a duration such as \"5s\"");
	if (d->v[ORCHESTRA_CONNECTION].json &&
	    config_unpack(c, d->v[ORCHESTRA_CONNECTION].json, connection_keys,
			  ARRAY_SIZE(connection_keys), &connection, NULL, 0))
		ret = -EINVAL;
	return ret;
}

/* ---- uldaq ---- */

static const char *const daq_interfaces[] = { "any", "usb", "bluetooth", "ethernet", NULL };
static const char *const daq_modes[] = { "", "differential", "single-ended", "pseudo-differential", NULL };
static const char *const daq_ranges[] = { "",
	"bipolar-60", "bipolar-30", "bipolar-20", "bipolar-15", "bipolar-10", "bipolar-5", "bipolar-4",
	"bipolar-2.5", "bipolar-2", "bipolar-1.25", "bipolar-1", "bipolar-0.625", "bipolar-0.5",
	"bipolar-0.25", "bipolar-0.2", "bipolar-0.125", "bipolar-0.1", "bipolar-0.078",
	"bipolar-0.05", "bipolar-0.01", "bipolar-0.005",
	"unipolar-60", "unipolar-30", "unipolar-20", "unipolar-15", "unipolar-10", "unipolar-5",
	"unipolar-4", "unipolar-2.5", "unipolar-2", "unipolar-1.25", "unipolar-1", "unipolar-0.625",
	"unipolar-0.5", "unipolar-0.25", "unipolar-0.2", "unipolar-0.125", "unipolar-0.1",
	"unipolar-0.078", "unipolar-0.05", "unipolar-0.01", "unipolar-0.005", NULL };

enum { ULDAQ_RANGE = 3, ULDAQ_MODE = 4 };

static const struct config_key uldaq_keys[] = {
	KEY(0, "interface_type", CONFIG_ENUM, .fallback = "any", .names = daq_interfaces,
	    .help = "usb, bluetooth, ethernet or any"),
	KEY(1, "device_id", CONFIG_STRING, .help = "Identifier of the device; default the first one"),
};
static const struct config_key uldaq_in_keys[] = {
	KEY(2, "sample_rate", CONFIG_REAL, .fallback = "1000.0", .min = 1e-3, .max = 1e7,
	    .help = "Samples per second"),
	KEY(ULDAQ_RANGE, "range", CONFIG_ENUM, .fallback = "", .names = daq_ranges,
	    .help = "Volts of signals without a range of their own, \"bipolar-10\""),
	KEY(ULDAQ_MODE, "input_mode", CONFIG_ENUM, .fallback = "", .names = daq_modes,
	    .help = "Of signals without one of their own: differential, single-ended or pseudo-differential"),
};
static const struct config_key uldaq_signal_keys[] = {
	KEY(0, "channel", CONFIG_INT, .fallback = "-1", .min = 0, .max = 1023,
	    .help = "Number of the channel; default that of the signal"),
	KEY(1, "range", CONFIG_ENUM, .fallback = "", .names = daq_ranges, .help = "Volts, \"bipolar-10\""),
	KEY(2, "input_mode", CONFIG_ENUM, .fallback = "", .names = daq_modes,
	    .help = "differential, single-ended or pseudo-differential"),
};

static int uldaq_check_signal(const struct device_node *d, const union device_value v[],
			      struct config *c, const json_t *entry)
{
	int ret = 0;

	if (!v[1].index && !d->v[ULDAQ_RANGE].index)
		ret = fail(c, entry, "range", "is missing, here or in the group in");
	if (!v[2].index && !d->v[ULDAQ_MODE].index)
		ret = fail(c, entry, "input_mode", "is missing, here or in the group in");
	return ret;
}

/* ---- the types ---- */

extern const struct node_type node_ethercat, node_fpga, node_opal_async, node_opal_orchestra,
	node_uldaq;

#define KEYS(member, table) .member##s = table, .member##_count = ARRAY_SIZE(table)

#define DEVICE(can, init_) \
	.flags = can, .size = sizeof(struct device_node), .init = init_, \
	.parse = device_node_parse, .prepare = device_node_prepare, .read = device_node_refuse, \
	.write = device_node_refuse, .print = device_node_print

static int be(struct node *n, const struct device *device)
{
	((struct device_node *)n->private_data)->device = device;
	return 0;
}

static int ethercat_init(struct node *n)
{
	static const struct device device = {
		.needs = "an EtherCAT master (IgH EtherCAT Master: the kernel module ec_master and libethercat)",
		.instead = WITH_EXEC,
	};

	return be(n, &device);
}

const struct node_type node_ethercat = {
	.name = "ethercat",
	.description = "Terminals on EtherCAT (needs IgH's master, which busbar cannot use: settings are checked only)",
	KEYS(key, ethercat_keys), KEYS(in_key, ethercat_in_keys), KEYS(out_key, ethercat_out_keys),
	.vectorize_max = 1,
	DEVICE(NODE_CAN_READ | NODE_CAN_WRITE, ethercat_init),
};

static int fpga_init(struct node *n)
{
	static const struct device device = {
		.needs = "a card of VILLASfpga and its library (libvillas-fpga)",
		.instead = WITH_EXEC,
		.check = fpga_check,
	};

	return be(n, &device);
}

const struct node_type node_fpga = {
	.name = "fpga",
	.description = "Cards of VILLASfpga (needs its library, which busbar cannot use: settings are checked only)",
	KEYS(key, fpga_keys),
	.vectorize_max = 1,
	DEVICE(NODE_CAN_READ | NODE_CAN_WRITE, fpga_init),
};

static int opal_async_init(struct node *n)
{
	static const struct device device = {
		.needs = "libOpalAsyncApi of RT-LAB, and to run inside a model of it",
		.instead = "outside of the simulator a node socket over udp with the format opal.asyncip speaks to its AsyncIP block",
	};

	return be(n, &device);
}

const struct node_type node_opal_async = {
	.name = "opal.async",
	.description = "Models of RT-LAB from inside (needs libOpalAsyncApi, which busbar cannot use: settings are checked only)",
	KEYS(key, opal_async_keys), KEYS(in_key, opal_async_in_keys),
	.vectorize_max = 1,
	DEVICE(NODE_CAN_READ | NODE_CAN_WRITE, opal_async_init),
};

static int opal_orchestra_init(struct node *n)
{
	static const struct device device = {
		.needs = "the RTAPI of OPAL-RT (libOrchestra)",
		.instead = WITH_EXEC,
		.check = orchestra_check,
	};

	return be(n, &device);
}

const struct node_type node_opal_orchestra = {
	.name = "opal.orchestra",
	.description = "Orchestra of OPAL-RT (needs its RTAPI, which busbar cannot use: settings are checked only)",
	KEYS(key, orchestra_keys), KEYS(signal_key, orchestra_signal_keys),
	.vectorize_max = 1,
	DEVICE(NODE_CAN_READ | NODE_CAN_WRITE, opal_orchestra_init),
};

static int uldaq_init(struct node *n)
{
	static const struct device device = {
		.needs = "libuldaq of Measurement Computing and one of its boards",
		.instead = "boards with a driver of comedi work with a node comedi, or " WITH_EXEC,
		.check_signal = uldaq_check_signal,
	};

	return be(n, &device);
}

const struct node_type node_uldaq = {
	.name = "uldaq",
	.description = "Boards of Measurement Computing (needs libuldaq, which busbar cannot use: settings are checked only)",
	KEYS(key, uldaq_keys), KEYS(in_key, uldaq_in_keys), KEYS(signal_key, uldaq_signal_keys),
	DEVICE(NODE_CAN_READ, uldaq_init),
};
