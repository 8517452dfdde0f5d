/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar sv`: sampled values from and to files. Its commands are one file each (sv.h), but for
 * `sv list`: the streams in a capture. */
#define LOG_ROOM "sv"
#include "cli/sv.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"
#include "gateway/node/iec61850-9-2/streams.h"
#include "util/log.h"
#include "util/options.h"

struct list_options {
	bool json;
};

static const struct option_entry table[] = {
	{ "-j, --json: as JSON", OPTION_FLAG(struct list_options, json) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar sv list",
	.synopsis = "[OPTIONS] CAPTURE",
	.about = "Lists the streams of sampled values in a capture file (pcap, pcapng).\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
};

static double seconds(const struct sv_stream *t)
{
	return (double)(t->last_ns - t->first_ns) / 1e9;
}

static void print_json(const struct sv_streams *s)
{
	json_t *list = json_array(), *all;

	for (unsigned i = 0; i < s->count; i++) {
		const struct sv_stream *t = &s->streams[i];
		const uint8_t *d = t->destination;
		json_t *o = json_pack("{s:s s:i s:i s:I s:i s:i s:i s:b s:b s:I s:f}", "sv_id", t->id,
				      "app_id", t->appid, "asdus", t->asdus, "conf_rev",
				      (json_int_t)t->revision, "data_bytes", (int)t->bytes, "smp_synch",
				      t->synch, "smp_cnt_max", t->count_max, "simulated", t->simulated,
				      "data_bytes_differ", t->mixed, "samples", (json_int_t)t->samples,
				      "seconds", seconds(t));

		json_object_set_new(o, "dst_address",
				    json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", d[0], d[1], d[2],
						 d[3], d[4], d[5]));
		json_array_append_new(list, o);
	}
	all = json_pack("{s:o s:I s:I}", "streams", list, "malformed", (json_int_t)s->malformed,
			"left_out", (json_int_t)s->left_out);
	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
}

static void print_text(const struct sv_streams *s)
{
	printf("%-24s %-6s %-17s %5s %8s %5s %5s %9s %9s %9s\n", "svID", "APPID", "destination",
	       "ASDUs", "confRev", "bytes", "synch", "smpCnt to", "samples", "seconds");
	for (unsigned i = 0; i < s->count; i++) {
		const struct sv_stream *t = &s->streams[i];
		const uint8_t *d = t->destination;

		printf("%-24s 0x%04x %02x:%02x:%02x:%02x:%02x:%02x %5u %8u %5zu %5u %9u %9ju %9.3f%s%s\n",
		       t->id, t->appid, d[0], d[1], d[2], d[3], d[4], d[5], t->asdus, t->revision,
		       t->bytes, t->synch, t->count_max, (uintmax_t)t->samples, seconds(t),
		       t->simulated ? " simulated" : "", t->mixed ? " data sets differ" : "");
	}
	if (s->malformed)
		printf("messages that cannot be read: %ju\n", (uintmax_t)s->malformed);
	if (s->left_out)
		printf("messages of more than %u streams, which are not listed: %ju\n", SV_STREAMS_MAX,
		       (uintmax_t)s->left_out);
}

static int list(int argc, char **argv)
{
	static struct sv_streams s;
	struct list_options o = { 0 };
	int status;

	log_init(LOG_INFO);
	status = options_parse(&options, argc, argv, &o, NULL);
	if (status >= 0)
		return status;
	if (sv_streams_read(&s, argv[optind]))
		return CLI_FAILED;
	if (o.json)
		print_json(&s);
	else if (s.count || s.malformed)
		print_text(&s);
	else
		printf("%s has no sampled values\n", argv[optind]);
	return CLI_OK;
}

static const struct cli_command commands[] = {
	{ "list", "the streams in a capture", .fn = list },
	{ "record", "a stream becomes a COMTRADE record, or another file", .fn = cli_sv_record },
	{ "play", "a COMTRADE record becomes a stream", .fn = cli_sv_play },
	{ .name = NULL },
};

int cli_sv(int argc, char **argv)
{
	return cli_dispatch("busbar sv", commands,
			    "COMMAND [ARGUMENTS]\n\n"
			    "Sampled values (IEC 61850-9-2, IEC 61869-9) from captures and to records.\n",
			    argc, argv);
}
