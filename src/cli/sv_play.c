/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar sv play`: a gateway from a node `file` to a node `iec61850-9-2`. */
#define LOG_ROOM "sv"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/sv.h"
#include "cli/tool.h"
#include "gateway/node/file/recording.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/options.h"

/* The first sample is sent at a full second, so that smpCnt 0 is one; at least so much later. */
#define LEAD_NS (NSEC_PER_SEC / 2)

enum synch { UNSYNCHRONIZED, LOCAL, GLOBAL };

static const char *const synch_names[] = {
	[UNSYNCHRONIZED] = "not_synchronized", [LOCAL] = "local_clock", [GLOBAL] = "global_clock",
};

struct play {
	const char *id, *record, *interface, *code, *channel_list;
	enum synch synch;
	bool loop, print;
	double seconds;
	json_t *node;     /* from -o */

	struct comtrade_cfg *cfg;
	struct sv_variant variant;
	unsigned channels[SV_CHANNELS_MAX]; /* of the record, in their order in the stream */
};

/* ---- channels ---- */

struct unit {
	const char *name;
	char quantity;
	double scale; /* to the units of the stream: mA, 10 mV */
};

static const struct unit units[] = {
	{ "A", 'I', 1e3 }, { "kA", 'I', 1e6 }, { "mA", 'I', 1 },
	{ "V", 'U', 1e2 }, { "kV", 'U', 1e5 }, { "mV", 'U', 1e-1 }, { "MV", 'U', 1e8 },
};

/* NULL: neither current nor voltage. */
static const struct unit *unit_of(const struct comtrade_analog *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(a->unit, units[i].name))
			return &units[i];
	/* Some write "kv" or "a". "MV" and "mV" are not told apart so. */
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcasecmp(a->unit, units[i].name) && strcasecmp(a->unit, "mV"))
			return &units[i];
	return NULL;
}

/* Takes those of one quantity, `want` at most. Their number. */
static unsigned take_quantity(struct play *p, char quantity, unsigned at, unsigned want)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->cfg->analog_count && n < want; i++) {
		const struct unit *u = unit_of(&p->cfg->analog[i]);

		if (u && u->quantity == quantity)
			p->channels[at + n++] = i;
	}
	return n;
}

static bool take_all(struct play *p)
{
	struct sv_variant *v = &p->variant;
	bool given = v->currents || v->voltages;
	unsigned want_i = given ? v->currents : SV_CHANNELS_MAX, i = take_quantity(p, 'I', 0, want_i);
	unsigned want_u = given ? v->voltages : SV_CHANNELS_MAX - i,
		 u = take_quantity(p, 'U', i, want_u);

	if (given && (i < v->currents || u < v->voltages)) {
		log_error("%s: %u currents and %u voltages, -v asks for %u and %u", p->record, i, u,
			  v->currents, v->voltages);
		return false;
	}
	v->currents = i;
	v->voltages = u;
	if (!(i + u))
		log_error("%s: no channel with a unit of current or voltage; name channels by -c",
			  p->record);
	return i + u;
}

/* By its name, or else by its number. False: there is none, reported. */
static bool find_channel(const struct play *p, const char *name, unsigned *out)
{
	char *end;
	unsigned long number;

	for (unsigned i = 0; i < p->cfg->analog_count; i++)
		if (!strcmp(p->cfg->analog[i].name, name)) {
			*out = i;
			return true;
		}
	number = strtoul(name, &end, 10);
	*out = (unsigned)number;
	if (*name && !*end && number < p->cfg->analog_count)
		return true;
	log_error("-c: '%s' is no analog channel of %s, which has %u", name, p->record,
		  p->cfg->analog_count);
	return false;
}

static bool take_listed(struct play *p)
{
	struct sv_variant *v = &p->variant;
	char *list = strdup(p->channel_list), *rest = list, *name;
	unsigned n = 0, currents = 0;
	bool good = list;

	while (good && (name = strsep(&rest, ","))) {
		const struct unit *u;

		good = n < SV_CHANNELS_MAX && find_channel(p, name, &p->channels[n]);
		if (!good)
			break;
		u = unit_of(&p->cfg->analog[p->channels[n++]]);
		currents += u && u->quantity == 'I';
	}
	free(list);
	if (good && !v->currents && !v->voltages) {
		v->currents = currents;
		v->voltages = n - currents;
	}
	if (good && v->currents + v->voltages != n)
		log_error("-c has %u channels, -v has %u", n, v->currents + v->voltages);
	return good && v->currents + v->voltages == n;
}

/* ---- the rate ---- */

/* False: the record has none, or another one than -v; reported. */
static bool take_rate(struct play *p)
{
	const struct comtrade_cfg *c = p->cfg;
	double hz = c->rate_count ? c->rates[0].hz : 0;

	for (unsigned i = 1; i < c->rate_count; i++)
		if (c->rates[i].hz != hz)
			hz = 0;
	if (!(hz >= 1) || hz > UINT16_MAX || hz != rint(hz)) {
		log_error("%s: a stream needs one rate of 1 to 65535 samples a second, in whole numbers; %s",
			  p->record, hz > 0 ? "the record has another one" :
					      "the record has none, or several");
		return false;
	}
	if (p->variant.rate && p->variant.rate != (unsigned)hz) {
		log_error("%s: %g samples a second, -v asks for %u; rates are not converted", p->record,
			  hz, p->variant.rate);
		return false;
	}
	p->variant.rate = (unsigned)hz;
	p->variant.asdus = p->variant.asdus ? p->variant.asdus : 1;
	return true;
}

/* ---- the configuration ---- */

static json_t *make_source(const struct play *p)
{
	uint64_t start = timespec_to_ns(clock_realtime()) + LEAD_NS + NSEC_PER_SEC;

	return json_pack("{s:s s:s s:{s:s s:b} s:{s:s s:I s:s s:s s:s*}}", "type", "file", "uri",
			 p->record, "format", "type", "comtrade", "primary", 1, "in", "epoch_mode",
			 "absolute", "epoch", (json_int_t)(start / NSEC_PER_SEC), "stamp", "planned",
			 "sequence", "new", "eof", p->loop ? "rewind" : NULL);
}

/* Sets a key unless -o has done that. */
static void set_default(json_t *o, const char *key, json_t *value)
{
	if (json_object_get(o, key))
		json_decref(value);
	else
		json_object_set_new(o, key, value);
}

static json_t *make_stream(const struct play *p)
{
	json_t *out = sv_group(p->node, "out");

	json_object_set_new(p->node, "type", json_string("iec61850-9-2"));
	json_object_set_new(p->node, "interface", json_string(p->interface));
	set_default(p->node, "dst_address", json_string("01:0c:cd:04:00:01"));
	set_default(out, "sv_id", json_string(p->id));
	set_default(out, "smp_mod", json_string("samples_per_second"));
	set_default(out, "smp_rate", json_integer(p->variant.rate));
	set_default(out, "smp_synch", json_string(synch_names[p->synch]));
	set_default(out, "asdus", json_integer(p->variant.asdus));
	set_default(out, "signals", sv_variant_signals(&p->variant));
	return json_incref(p->node);
}

static json_t *make_path(const struct play *p)
{
	json_t *in = json_array(), *hooks = json_array();
	unsigned n = p->variant.currents + p->variant.voltages;

	for (unsigned i = 0; i < n; i++) {
		const struct unit *u = unit_of(&p->cfg->analog[p->channels[i]]);
		double scale = u ? u->scale : i < p->variant.currents ? 1e3 : 1e2;

		json_array_append_new(in, json_sprintf("record[%u]", p->channels[i]));
		json_array_append_new(hooks, json_pack("{s:s s:[i] s:f}", "type", "scale", "signals", i,
						       "scale", scale));
	}
	return json_pack("{s:o s:s s:o}", "in", in, "out", "stream", "hooks", hooks);
}

static json_t *make_config(const struct play *p)
{
	return json_pack("{s:f s:i s:{s:o s:o} s:[o]}", "stats", 0.0, "hugepages", 0, "nodes", "record",
			 make_source(p), "stream", make_stream(p), "paths", make_path(p));
}

static void print_channels(const struct play *p)
{
	for (unsigned i = 0; i < p->variant.currents + p->variant.voltages; i++) {
		const struct comtrade_analog *a = &p->cfg->analog[p->channels[i]];

		log_info("%s %u: channel %s in %s", i < p->variant.currents ? "current" : "voltage",
			 i < p->variant.currents ? i + 1 : i + 1 - p->variant.currents, a->name,
			 *a->unit ? a->unit : i < p->variant.currents ? "A, as it has no unit" :
								       "V, as it has no unit");
	}
}

static int play(struct play *p)
{
	struct comtrade_error err;
	struct record r;
	int ret = record_name(&r, p->record, true) ? record_config(&r, &p->cfg, &err) : -EINVAL;

	if (ret == -EINVAL)
		log_error("%s: a COMTRADE record ends in .cfg, .dat or .cff", p->record);
	else if (ret == -EBADMSG)
		log_error("%s:%u: %s", r.cfg, err.line, err.text);
	else if (ret)
		log_error("%s: %s", r.cfg, strerror(-ret));
	if (ret || !(p->channel_list ? take_listed(p) : take_all(p)) || !take_rate(p))
		return CLI_FAILED;
	print_channels(p);
	return sv_run(make_config(p), p->print, p->seconds);
}

/* ---- the command line ---- */

static const struct option_entry table[] = {
	{ "-i SVID: the name of the stream (BUSBAR01)", OPTION_TEXT(struct play, id) },
	{ "-v CODE: what is sent, such as F4800S2I4U4; by default the rate and all currents and voltages of "
		     "the record, one sample in a message", OPTION_TAKE(struct play, variant, sv_variant_take) },
	{ "-c LIST: the channels in their order in the stream, by name or number (from 0), with commas "
		     "between them: as many currents and voltages as -v says",
	  OPTION_TEXT(struct play, channel_list) },
	{ "-s none|local|global: smpSynch (local)", OPTION_CHOICE(struct play, synch) },
	{ "-l: begin again at the end, until SIGINT", OPTION_FLAG(struct play, loop) },
	{ "-t S: end after S seconds", OPTION_REAL(struct play, seconds, 0, 1e9) },
	{ "-o K=V...: a setting of the node iec61850-9-2, such as app_id=16385 or out.simulation=true; dots "
		       "in the key lead into groups", OPTION_TAKE(struct play, node, tool_take_setting) },
	{ "-n: print the configuration of a gateway that does this, and end", OPTION_FLAG(struct play, print) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar sv play",
	.synopsis = "[OPTIONS] RECORD INTERFACE",
	.about = "Sends the analog channels of a COMTRADE record as a stream of sampled values, at the\n"
		 "rate of the record: first its currents, then its voltages (primary values), 4 bytes in\n"
		 "mA and 10 mV with 4 bytes of quality each. Needs root or CAP_NET_RAW.\n",
	.table = table,
	.operands_min = 2,
	.operands_max = 2,
};

int cli_sv_play(int argc, char **argv)
{
	struct play p = { .id = "BUSBAR01", .synch = LOCAL, .seconds = -1,
			  .node = json_object() };
	int status = OPTIONS_WRONG;

	log_init(LOG_INFO);
	if (sv_check_words(argc, argv))
		status = options_parse(&options, argc, argv, &p, NULL);
	if (status < 0) {
		p.record = argv[optind];
		p.interface = argv[optind + 1];
		status = play(&p);
	}
	comtrade_cfg_free(p.cfg);
	json_decref(p.node);
	return status;
}
