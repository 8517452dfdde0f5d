/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar scl`: the control blocks of an engineering file (SCL), and configurations of nodes that
 * read or write them, spelled out, so that they can be changed and the file is not needed any more.
 */
#define LOG_ROOM "scl"
#include <ctype.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "gateway/part/routed.h"
#include "gateway/scl/scl.h"
#include "util/log.h"
#include "util/options.h"
#include "util/plain_text.h"

struct request {
	bool read, write;
	const char *ied, *control, *interface;
	struct scl *scl;
	json_t *names; /* of nodes that were printed, and how often */
};

static const char *const mode_names[] = { "per_nominal_period", "samples_per_second",
					  "seconds_per_sample" };

/* As a text of libconfig, in which no variable of the environment is meant. */
static void print_text(const char *text)
{
	unsigned control = 0;

	putchar('"');
	for (const char *c = text; *c; c++) {
		control = control ? control : plain_text_control(c);
		if (control) {
			printf("\\x%02x", (unsigned char)*c);
			control--;
			continue;
		}
		if (*c == '"' || *c == '\\')
			putchar('\\');
		if (*c == '$' && c[1] == '{')
			putchar('$');
		putchar(*c);
	}
	putchar('"');
}

static void print_key(const char *indent, const char *key, const char *text)
{
	printf("%s%s = ", indent, key);
	print_text(text);
	puts(";");
}

/* A name of a node: with a number behind it if another control block has the same one. */
static void print_name(const struct request *r, const struct scl_control *c)
{
	char name[4 * SCL_VALUE_MAX + 100], *at;
	json_int_t number;

	snprintf(name, sizeof(name) - 30, "%s%s_%s", isalpha((unsigned char)*c->ied) ? "" : "n",
		 c->ied, c->path);
	for (at = name; *at; at++)
		if (!isalnum((unsigned char)*at))
			*at = '_';
	number = json_integer_value(json_object_get(r->names, name));
	json_object_set_new(r->names, name, json_integer(number + 1));
	if (number) {
		do
			snprintf(at, 30, "_%jd", (intmax_t)++number);
		while (json_object_get(r->names, name));
		json_object_set_new(r->names, name, json_integer(1));
	}
	printf("\t%s = {\n", name);
}

static void print_vlan(const struct scl_control *c)
{
	if (c->has_vlan_id || c->has_vlan_priority)
		printf("\t\t\t%svlan = { id = %u; priority = %u; };\n",
		       c->kind == SCL_GOOSE ? "\t\t" : "", c->vlan_id,
		       c->has_vlan_priority ? c->vlan_priority : 4);
}

/* ---- GOOSE ---- */

static int print_signal(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth)
{
	bool *first = arg;

	if (scl_is_text(d))
		return 0;
	printf("%s\t\t\t\t{ name = ", *first ? "" : ",\n");
	*first = false;
	print_text(d->name);
	printf("; subscriber = \"it\"; index = %u; ", place[0]);
	for (unsigned i = 1; i < depth; i++)
		printf("%s%u%s", i > 1 ? "." : "member = \"", place[i], i + 1 == depth ? "\"; " :
		       "");
	printf("mms_type = \"%s\"; }", d->basic->mms_type);
	return 0;
}

/* Over UDP, and not in frames of Ethernet. */
static bool is_routed(const struct scl_control *c)
{
	return c->protocol && !strncmp(c->protocol, "R-", 2);
}

/* Addresses are of the family of local_address, which is that of IPv4 by default. */
static void print_family(const struct scl_control *c)
{
	if (c->ip && strchr(c->ip, ':'))
		print_key("\t\t\t", "local_address", "::");
}

static bool is_group(const char *ip)
{
	struct socket_address a;

	return ip && routed_parse(ip, 0, &a) && socket_address_is_multicast(&a);
}

static void print_subscriber(const struct request *r, const struct scl_control *c)
{
	bool first = true;

	printf("\t\ttype = \"iec61850-8-1\";\n\t\tin = {\n");
	print_key("\t\t\t", "interface", r->interface);
	if (is_routed(c)) {
		printf("\t\t\trouted = true;\n");
		print_family(c);
		if (is_group(c->ip))
			print_key("\t\t\t", "multicast_groups", c->ip);
	}
	printf("\t\t\tsubscribers = {\n\t\t\t\tit = {\n");
	print_key("\t\t\t\t\t", "go_cb_ref", c->reference);
	if (c->mac && !is_routed(c))
		print_key("\t\t\t\t\t", "dst_address", c->mac);
	if (c->has_appid)
		printf("\t\t\t\t\tapp_id = 0x%04x;\n", c->appid);
	if (c->has_revision)
		printf("\t\t\t\t\tconf_rev = %u;\n", c->revision);
	printf("\t\t\t\t};\n\t\t\t};\n\t\t\tsignals = (\n");
	scl_each_value(c, print_signal, &first);
	printf("\n\t\t\t);\n\t\t};\n");
}

static void print_value(const struct scl_data *d)
{
	printf("{ mms_type = \"%s\"; ", d->basic->mms_type);
	if (!strcmp(d->basic->mms_type, "bitstring"))
		printf("mms_bitstring_size = %u; ", d->basic->bits);
	if (scl_is_text(d)) {
		printf("value = \"\"; ");
	} else if (scl_is_quality(d)) {
		printf("value = 0; ");
	} else if (!scl_is_time(d)) {
		printf("signal = ");
		print_text(d->name);
		printf("; ");
	}
	printf("}");
}

static void print_line_end(unsigned depth)
{
	putchar('\n');
	for (unsigned i = 0; i < depth; i++)
		putchar('\t');
}

static void print_entries(const struct scl_data *list, unsigned count, unsigned depth)
{
	for (unsigned i = 0; i < count; i++) {
		const struct scl_data *d = &list[i];

		if (i) {
			putchar(',');
			print_line_end(depth);
		}
		if (d->basic) {
			print_value(d);
			continue;
		}
		printf("{ mms_type = \"%s\"; members = (", d->array ? "array" : "structure");
		print_line_end(depth + 1);
		print_entries(d->parts, d->count, depth + 1);
		printf(" ); }");
	}
}

static void print_publisher(const struct request *r, const struct scl_control *c)
{
	double max_s = c->max_s > 0 ? c->max_s : 1;

	printf("\t\ttype = \"iec61850-8-1\";\n\t\tout = {\n");
	print_key("\t\t\t", "interface", r->interface);
	if (is_routed(c)) {
		printf("\t\t\trouted = true;\n");
		print_family(c);
	}
	printf("\t\t\tpublishers = ( {\n");
	print_key("\t\t\t\t\t", "go_id", c->id);
	print_key("\t\t\t\t\t", "go_cb_ref", c->reference);
	print_key("\t\t\t\t\t", "data_set_ref", c->dataset);
	print_key("\t\t\t\t\t", "dst_address",
		  is_routed(c) ? c->ip ? c->ip : "127.0.0.1" : c->mac ? c->mac :
		  "01-0c-cd-01-00-00");
	printf("\t\t\t\t\tapp_id = 0x%04x;\n\t\t\t\t\tconf_rev = %u;\n", c->appid, c->revision);
	printf("\t\t\t\t\ttime_allowed_to_live = %.0f;\n", max_s * 2e3);
	if (!is_routed(c))
		print_vlan(c);
	printf("\t\t\t\t\tretransmission = { ");
	if (c->min_s > 0)
		printf("min = %g; ", c->min_s);
	printf("max = %g; };\n\t\t\t\t\tdata = (\n\t\t\t\t\t\t", max_s);
	print_entries(c->data, c->count, 6);
	printf("\n\t\t\t\t\t);\n\t\t\t\t}\n\t\t\t);\n\t\t};\n");
}

/* ---- sampled values ---- */

static void print_sampled(const struct request *r, const struct scl_control *c,
			  const struct scl_sampled *values, unsigned count)
{
	printf("\t\ttype = \"iec61850-9-2\";\n");
	print_key("\t\t", "interface", r->interface);
	if (c->has_appid)
		printf("\t\tapp_id = 0x%04x;\n", c->appid);
	if (c->mac)
		print_key("\t\t", "dst_address", c->mac);
	printf("\t\t%s = {\n", r->write ? "out" : "in");
	print_key("\t\t\t", "sv_id", c->id);
	if (r->write && c->with_dataset)
		print_key("\t\t\t", "datset", c->dataset);
	if (c->has_revision)
		printf("\t\t\tconf_rev = %u;\n", c->revision);
	if (r->write) {
		printf("\t\t\tsmp_mod = \"%s\";\n\t\t\tsmp_rate = %u;\n\t\t\tasdus = %u;\n",
		       mode_names[c->mode], c->rate, c->asdus);
		printf("\t\t\trefr_tm = %s;\n\t\t\tannounce = %s;\n", c->with_time ? "true" :
		       "false",
		       c->with_rate ? "true" : "false");
		print_vlan(c);
	} else if (c->mode == 1) {
		printf("\t\t\tsmp_rate = %u;\n", c->rate);
	}
	printf("\t\t\tsignals = (\n");
	for (unsigned i = 0; i < count; i++) {
		printf("\t\t\t\t{ name = ");
		print_text(values[i].data->name);
		printf("; iec_type = \"%s\"; %s}%s\n", values[i].data->basic->iec_type,
		       values[i].quality ? "quality = true; " : "", i + 1 < count ? "," : "");
	}
	printf("\t\t\t);\n\t\t};\n");
}

static int print_node(const struct request *r, struct scl_control *c, char why[SCL_WHY_MAX])
{
	struct scl_sampled *values = NULL;
	unsigned count = 0;

	if (c->kind == SCL_SAMPLED_VALUES && scl_sampled_values(r->scl, c, &values, &count, why))
		return -1;
	print_name(r, c);
	if (c->kind == SCL_SAMPLED_VALUES)
		print_sampled(r, c, values, count);
	else if (r->write)
		print_publisher(r, c);
	else
		print_subscriber(r, c);
	printf("\t};\n");
	return 0;
}

/* ---- the list ---- */

static int count_one(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth)
{
	unsigned *count = arg;

	++*count;
	return 0;
}

/* A column; control characters are not printed as they are. */
static void print_cell(int width, const char *text)
{
	char cell[SCL_VALUE_MAX * 4];

	snprintf(cell, sizeof(cell), "%s", text);
	printf("%-*s ", width, plain_text(cell));
}

static void print_row(const struct scl_control *c)
{
	unsigned values = 0;
	char appid[8] = "-", vlan[16] = "-";

	scl_each_value(c, count_one, &values);
	if (c->has_appid)
		snprintf(appid, sizeof(appid), "0x%04x", c->appid);
	if (c->has_vlan_id || c->has_vlan_priority)
		snprintf(vlan, sizeof(vlan), "%u/%u", c->vlan_id, c->vlan_priority);
	print_cell(7, c->kind == SCL_GOOSE ? "GOOSE" : "sampled");
	print_cell(12, c->ied);
	print_cell(24, c->path);
	print_cell(6, appid);
	print_cell(17, c->mac ? c->mac : c->ip ? c->ip : "-");
	printf("%-7s %u\n", vlan, values);
}

static bool is_wanted(const struct request *r, const struct scl_control *c)
{
	return (!r->ied || !strcmp(r->ied, c->ied)) &&
		(!r->control || !strcmp(r->control, c->path));
}

static int print_all(const struct request *r)
{
	bool nodes = r->read || r->write;
	char why[SCL_WHY_MAX];
	unsigned count, found = 0;
	struct scl_control *list = scl_controls(r->scl, &count);
	int ret = CLI_OK;

	if (nodes)
		puts("nodes = {");
	else
		printf("%-7s %-12s %-24s %-6s %-17s %-7s %s\n", "kind", "IED", "control", "APPID",
		       "destination", "VLAN", "values");
	for (unsigned i = 0; i < count; i++) {
		if (!is_wanted(r, &list[i]))
			continue;
		found++;
		if (scl_control_read(r->scl, &list[i], why) ||
		    (nodes && print_node(r, &list[i], why))) {
			log_error("%s", why);
			ret = CLI_FAILED;
		} else if (!nodes) {
			print_row(&list[i]);
		}
	}
	if (nodes)
		puts("};");
	if (!found)
		log_error("the file has no such control block");
	return found ? ret : CLI_FAILED;
}

static const struct option_entry table[] = {
	{ "-r, --read: print nodes that read the control blocks", OPTION_FLAG(struct request, read) },
	{ "-w, --write: print nodes that write them", OPTION_FLAG(struct request, write) },
	{ "-i, --ied IED: only those of this device", OPTION_TEXT(struct request, ied) },
	{ "-c, --control PATH: only this one, such as LD0/LLN0.trip", OPTION_TEXT(struct request, control) },
	{ "-n, --interface NAME: the network interface in the configuration (eth0)",
	  OPTION_TEXT(struct request, interface) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar scl",
	.synopsis = "[OPTIONS] FILE",
	.about = "Lists the control blocks of GOOSE and sampled values in an SCL file (ICD, CID, IID,\n"
		 "SCD), or prints a configuration with a node for each of them.\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
	.end = "Exit status: 0 success, 1 a control block cannot be used, 2 the file cannot be\n"
	       "read, or wrong usage.\n",
};

int cli_scl(int argc, char **argv)
{
	struct request r = { .interface = "eth0" };
	int ret = options_parse(&options, argc, argv, &r, NULL);
	char why[SCL_WHY_MAX];

	if (ret >= 0)
		return ret;
	if (r.read && r.write)
		return options_wrong(&options, argv, "--read and --write exclude each other");
	log_init(LOG_WARN);
	if (scl_load(argv[optind], &r.scl, why)) {
		log_error("%s", why);
		return CLI_USAGE;
	}
	r.names = json_object();
	ret = print_all(&r);
	json_decref(r.names);
	scl_free(r.scl);
	return fflush(stdout) ? CLI_FAILED : ret;
}
