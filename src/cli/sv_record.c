/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar sv record`: a gateway from a node `iec61850-9-2` to a node `file`. */
#define LOG_ROOM "sv"
#include <getopt.h>
#include <net/if.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/sv.h"
#include "cli/tool.h"
#include "gateway/node/iec61850-9-2/streams.h"
#include "util/log.h"
#include "util/options.h"

#define CHANNEL_BYTES 8 /* int32 with its quality */

struct record_options {
	const char *id, *format, *source, *file;
	struct sv_variant variant;
	bool has_variant, print;
	double seconds;
	json_t *node; /* from -o */
};

static const struct option_entry table[] = {
	{ "-i SVID: the stream; of several in a capture it has to be said",
	  OPTION_TEXT(struct record_options, id) },
	{ "-v CODE: what it carries, such as I4U4: four currents and four voltages of 8 bytes each; by "
		     "default I4U4, or I3U3 for data sets of six values", OPTION_TAKE(struct record_options, variant, sv_variant_take) },
	{ "-f FORMAT: another format than COMTRADE, such as csv", OPTION_TEXT(struct record_options, format) },
	{ "-t S: end after S seconds", OPTION_REAL(struct record_options, seconds, 0, 1e9) },
	{ "-o K=V...: a setting of the node iec61850-9-2, such as app_id=16385; dots in the key lead into "
		       "groups", OPTION_TAKE(struct record_options, node, tool_take_setting) },
	{ "-n: print the configuration of a gateway that does this, and end",
	  OPTION_FLAG(struct record_options, print) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar sv record",
	.synopsis = "[OPTIONS] SOURCE FILE",
	.about = "Writes the samples of one stream to FILE, a COMTRADE record (.cff; or .cfg with .dat)\n"
		 "in A and V. SOURCE: a capture file (pcap, pcapng), or a network interface.\n",
	.table = table,
	.operands_min = 2,
	.operands_max = 2,
};

/* The stream to record. NULL: there is none, or it is not clear which; reported. */
static const struct sv_stream *choose(const struct sv_streams *s, const struct record_options *o)
{
	const struct sv_stream *found = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < s->count; i++)
		if (!o->id || !strcmp(s->streams[i].id, o->id)) {
			found = &s->streams[i];
			count++;
		}
	if (count == 1)
		return found;
	if (!count)
		log_error("%s: no stream%s%s of sampled values; `busbar sv list` lists them", o->source,
			  o->id ? " " : "", o->id ? o->id : "");
	else
		log_error("%s: %u streams; say by -i which one, as `busbar sv list` lists them%s",
			  o->source, count, o->id ? ", or by -o app_id=..." : "");
	return NULL;
}

/* The channels of a data set of this length. False: they are not known, reported. */
static bool guess(const struct sv_stream *t, struct sv_variant *v)
{
	if (t->bytes != 6 * CHANNEL_BYTES && t->bytes != 8 * CHANNEL_BYTES) {
		log_error("stream %s: a data set of %zu bytes; say by -v what it carries", t->id,
			  t->bytes);
		return false;
	}
	v->currents = v->voltages = (unsigned)t->bytes / CHANNEL_BYTES / 2;
	return true;
}

/* False: reported. */
static bool look_into_capture(struct record_options *o)
{
	static struct sv_streams s;
	const struct sv_stream *t;
	unsigned channels;

	if (sv_streams_read(&s, o->source))
		return false;
	if (json_object_get(o->node, "app_id") && o->has_variant)
		return true;
	t = choose(&s, o);
	if (!t || (!o->has_variant && !guess(t, &o->variant)))
		return false;
	channels = o->variant.currents + o->variant.voltages;
	if (t->bytes != channels * CHANNEL_BYTES) {
		log_error("stream %s: a data set of %zu bytes, -v says %u channels of %u bytes", t->id,
			  t->bytes, channels, CHANNEL_BYTES);
		return false;
	}
	if (t->mixed)
		log_warn("stream %s: its data sets have different lengths; those of %zu bytes are recorded",
			 t->id, t->bytes);
	o->id = t->id;
	if (!json_object_get(o->node, "app_id"))
		json_object_set_new(o->node, "app_id", json_integer(t->appid));
	return true;
}

/* Currents come in mA, voltages in units of 10 mV (9-2LE, IEC 61869-9). */
static json_t *make_hooks(const struct sv_variant *v)
{
	json_t *hooks = json_array();
	unsigned n = v->currents + v->voltages;

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(hooks, json_pack("{s:s s:[i] s:f}", "type", "scale", "signals", i,
						       "scale", i < v->currents ? 1e-3 : 1e-2));
	return hooks;
}

static json_t *make_config(struct record_options *o, bool capture)
{
	json_t *in = sv_group(o->node, "in");

	json_object_set_new(o->node, "type", json_string("iec61850-9-2"));
	json_object_set_new(o->node, capture ? "capture" : "interface", json_string(o->source));
	if (o->id)
		json_object_set_new(in, "sv_id", json_string(o->id));
	if (o->variant.rate)
		json_object_set_new(in, "smp_rate", json_integer(o->variant.rate));
	json_object_set_new(in, "signals", sv_variant_signals(&o->variant));
	json_object_set_new(in, "hooks", make_hooks(&o->variant));
	return json_pack("{s:f s:i s:{s:O s:{s:s s:s s:s s:{s:b}}} s:[{s:s s:s s:i}]}", "stats", 0.0,
			 "hugepages", 0, "nodes", "stream", o->node, "record", "type", "file", "uri",
			 o->file, "format", o->format ? o->format : "comtrade", "out", "append", 0,
			 "paths", "in", "stream", "out", "record", "queuelen", 4096);
}

static int record(struct record_options *o)
{
	struct stat st;
	bool capture = !stat(o->source, &st);

	if (!capture && !o->print && !if_nametoindex(o->source)) {
		log_error("%s: neither a capture file nor a network interface", o->source);
		return CLI_FAILED;
	}
	if (capture && !look_into_capture(o))
		return CLI_FAILED;
	if (!capture && !o->has_variant)
		o->variant = (struct sv_variant){ .currents = 4, .voltages = 4 };
	return sv_run(make_config(o, capture), o->print, o->seconds);
}

int cli_sv_record(int argc, char **argv)
{
	struct record_options o = { .seconds = -1, .node = json_object() };
	int status;

	log_init(LOG_INFO);
	status = sv_check_words(argc, argv) ? options_parse(&options, argc, argv, &o, NULL) : CLI_USAGE;
	if (status < 0) {
		o.has_variant = o.variant.currents + o.variant.voltages > 0;
		o.source = argv[optind];
		o.file = argv[optind + 1];
		status = record(&o);
	}
	json_decref(o.node);
	return status;
}
