/* SPDX-License-Identifier: BSD-2-Clause */
/* The stations that a server sends, from the list `pmus`; see c37_source.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/c37.118/c37_source.h"
#include "util/container_of.h"

#define CHANNELS_MAX 4096

static const char *const unit_names[] = { "volt", "ampere", NULL };
static const char *const component_names[] = {
	"zero_sequence", "positive_sequence", "negative_sequence", "phase_a", "phase_b", "phase_c",
	NULL,
};
static const uint8_t components[] = { C37_ZERO_SEQUENCE, C37_POSITIVE_SEQUENCE,
				      C37_NEGATIVE_SEQUENCE, C37_PHASE_A, C37_PHASE_B,
				      C37_PHASE_C };
static const char *const kind_names[] = { "point_on_wave", "rms", "peak", NULL };
static const char *const class_names[] = { "measurement", "protection", NULL };
/* From bit 0 on, which is not used. */
static const char *const modification_names[] = {
	"", "upsampled_with_interpolation", "upsampled_with_extrapolation",
	"downsampled_with_reselection", "downsampled_with_fir_filter",
	"downsampled_with_non_fir_filter", "filtered_without_resampling",
	"magnitude_adjusted_for_calibration", "phase_adjusted_for_calibration",
	"phase_adjusted_for_rotation", "pseudo_phasor_value", "other",
};
/* The bits of these in CFG-3. */
static const uint16_t modification_bits[] = { 0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 32768 };

struct channel_settings {
	const char *signal, *name;
	int unit, component, kind;
	double scale;
	int64_t integer_scale;
	bool normal;
	json_t *modifications;
};

#define CHANNEL(field) offsetof(struct channel_settings, field)

#define CHANNEL_KEYS \
	{ "signal", CONFIG_STRING, CHANNEL(signal), .required = true, \
	  .help = "Name of the signal that is sent" }, \
	{ "name", CONFIG_STRING, CHANNEL(name), \
	  .help = "Name of the channel; the signal's name without it" }

static const struct config_key phasor_keys[] = {
	CHANNEL_KEYS,
	{ "unit", CONFIG_ENUM, CHANNEL(unit), "volt", .names = unit_names,
	  .help = "Volts or amperes" },
	{ "component", CONFIG_ENUM, CHANNEL(component), "phase_a", .names = component_names,
	  .help = "Phase or sequence of the phasor; in CFG-3 only" },
	{ "modifications", CONFIG_JSON, CHANNEL(modifications),
	  .form = "'type': ['array', 'null'], 'items': {'type': 'string'}",
	  .help = "How the phasor was processed; in CFG-3 only" },
	{ "scale", CONFIG_REAL, CHANNEL(scale), "1", .min = 1e-5, .max = 167.77215,
	  .help = "Volts or amperes in a unit of integers; of no effect on floats" },
};

static const struct config_key analog_keys[] = {
	CHANNEL_KEYS,
	{ "unit", CONFIG_ENUM, CHANNEL(kind), "point_on_wave", .names = kind_names,
	  .help = "What the value is of its wave" },
	{ "scale", CONFIG_INT, CHANNEL(integer_scale), "1", .min = 1, .max = 0x7fffff,
	  .help = "What a unit of integers is; of no effect on floats" },
};

static const struct config_key digital_keys[] = {
	CHANNEL_KEYS,
	{ "normal", CONFIG_BOOL, CHANNEL(normal), "false", .help = "The usual state" },
};

struct pmu_settings {
	const char *name, *guid, *stat, *frequency, *rocof;
	int64_t idcode, nominal_hz, window_us, delay_us;
	double latitude, longitude, elevation_m;
	int service_class;
	bool polar, float_phasors, float_analogs, float_frequency;
	json_t *phasor, *phasors, *analog, *analogs, *digital, *digitals;
};

#define PMU(field) offsetof(struct pmu_settings, field)
#define CHANNEL_LIST "'type': ['array', 'null'], 'items': {'type': 'object'}"

static const struct config_key pmu_keys[] = {
	{ "name", CONFIG_STRING, PMU(name), .required = true, .help = "Name of the station" },
	{ "idcode", CONFIG_INT, PMU(idcode), "1", .min = 0, .max = 65535,
	  .help = "IDCODE of the station" },
	{ "guid", CONFIG_STRING, PMU(guid),
	  .help = "Global identifier of the station, a UUID; in CFG-3 only" },
	{ "nominal_frequency", CONFIG_INT, PMU(nominal_hz), "50", .min = 50, .max = 60,
	  .help = "50 or 60 Hz" },
	{ "latitude", CONFIG_REAL, PMU(latitude), .help = "Degrees; in CFG-3 only" },
	{ "longitude", CONFIG_REAL, PMU(longitude), .help = "Degrees; in CFG-3 only" },
	{ "elevation", CONFIG_REAL, PMU(elevation_m), .help = "Metres; in CFG-3 only" },
	{ "service_class", CONFIG_ENUM, PMU(service_class), "measurement", .names = class_names,
	  .help = "Class M or P; in CFG-3 only" },
	{ "window", CONFIG_INT, PMU(window_us), "0", .min = 0, .max = INT32_MAX,
	  .help = "Microseconds that a phasor is measured for; in CFG-3 only" },
	{ "group_delay", CONFIG_INT, PMU(delay_us), "0", .min = 0, .max = INT32_MAX,
	  .help = "Microseconds; in CFG-3 only" },
	{ "frequency", CONFIG_STRING, PMU(frequency), .required = true,
	  .help = "Signal with the frequency" },
	{ "rocof", CONFIG_STRING, PMU(rocof), .required = true,
	  .help = "Signal with the rate of change of the frequency" },
	{ "stat", CONFIG_STRING, PMU(stat), .help = "Signal with STAT; without it STAT is 0" },
	{ "phasor", CONFIG_JSON, PMU(phasor), .form = CHANNEL_LIST, .help = "List of phasors" },
	{ "phasors", CONFIG_JSON, PMU(phasors), .form = CHANNEL_LIST, .help = "As phasor" },
	{ "analog", CONFIG_JSON, PMU(analog), .form = CHANNEL_LIST, .help = "List of analog values" },
	{ "analogs", CONFIG_JSON, PMU(analogs), .form = CHANNEL_LIST, .help = "As analog" },
	{ "digital", CONFIG_JSON, PMU(digital), .form = CHANNEL_LIST, .help = "List of bits" },
	{ "digitals", CONFIG_JSON, PMU(digitals), .form = CHANNEL_LIST, .help = "As digital" },
	{ "polar", CONFIG_BOOL, PMU(polar), "false",
	  .help = "Phasors are sent as magnitude and angle" },
	{ "float_phasors", CONFIG_BOOL, PMU(float_phasors), "true",
	  .help = "Phasors are sent as floats; false: as integers of 16 bits" },
	{ "float_analogs", CONFIG_BOOL, PMU(float_analogs), "true", .help = "Likewise" },
	{ "float_frequency", CONFIG_BOOL, PMU(float_frequency), "true", .help = "Likewise" },
};

/* ---- channels ---- */

static int parse_modifications(struct config *c, json_t *at, json_t *list, uint16_t *bits)
{
	size_t i;
	json_t *entry;

	if (list && !json_is_array(list) && !json_is_null(list)) {
		config_fail(c, at, "modifications", "has to be a list of texts");
		return -EINVAL;
	}
	json_array_foreach(list, i, entry) {
		unsigned m = 1;

		while (m < ARRAY_SIZE(modification_names) &&
		       strcmp(modification_names[m], json_string_value(entry) ?: ""))
			m++;
		if (m == ARRAY_SIZE(modification_names)) {
			config_fail(c, at, "modifications", "'%.60s' is none",
				    json_string_value(entry) ?: "a value that is no text");
			return -EINVAL;
		}
		*bits |= modification_bits[m];
	}
	return 0;
}

enum channel_kind { PHASORS, ANALOGS, DIGITALS };

static const struct {
	const struct config_key *keys;
	size_t count;
} channel_tables[] = {
	[PHASORS] = { phasor_keys, ARRAY_SIZE(phasor_keys) },
	[ANALOGS] = { analog_keys, ARRAY_SIZE(analog_keys) },
	[DIGITALS] = { digital_keys, ARRAY_SIZE(digital_keys) },
};

static int parse_channel(struct c37_channel *ch, enum channel_kind kind, struct config *c,
			 json_t *cfg)
{
	struct channel_settings s = { 0 };

	if (config_unpack(c, cfg, channel_tables[kind].keys, channel_tables[kind].count, &s, NULL, 0))
		return -EINVAL;
	ch->name = s.name ? s.name : s.signal;
	ch->input = (struct c37_input){ .signal = s.signal, .index = -1 };
	if (strlen(ch->name) > C37_NAME_MAX) {
		config_fail(c, cfg, s.name ? "name" : "signal", "has more than %d bytes",
			    C37_NAME_MAX);
		return -EINVAL;
	}
	if (kind == PHASORS) {
		ch->phasor = (struct c37_phasor_unit){ .current = s.unit, .scale = s.scale,
						       .component = components[s.component] };
		return parse_modifications(c, cfg, s.modifications, &ch->phasor.modified);
	}
	if (kind == ANALOGS)
		ch->analog = (struct c37_analog_unit){ .kind = (uint8_t)s.kind,
						       .scale = (double)s.integer_scale };
	else
		ch->normal = s.normal;
	return 0;
}

/* `list` and `again` are two names of one key. */
static int parse_channels(struct c37_channel **out, unsigned *count, enum channel_kind kind,
			  struct config *c, json_t *at, json_t *list, json_t *again,
			  const char *key)
{
	size_t n, i;
	json_t *entry;
	int ret = 0;

	if (json_is_null(list))
		list = NULL;
	if (again && !json_is_null(again)) {
		if (list) {
			config_fail(c, at, key, "stands there with two spellings");
			return -EINVAL;
		}
		list = again;
	}
	n = json_array_size(list);
	if (list && (!json_is_array(list) || n > CHANNELS_MAX)) {
		config_fail(c, at, key, "has to be a list of at most %d groups", CHANNELS_MAX);
		return -EINVAL;
	}
	*out = calloc(n + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	*count = (unsigned)n;
	json_array_foreach(list, i, entry)
		if (!json_is_object(entry)) {
			config_fail(c, at, key, "entry %zu is no group", i);
			ret = -EINVAL;
		} else if (parse_channel(&(*out)[i], kind, c, entry)) {
			ret = -EINVAL;
		}
	return ret;
}

/* ---- stations ---- */

static int parse_guid(uint8_t guid[C37_GUID_SIZE], const char *text)
{
	unsigned digits = 0;

	memset(guid, 0, C37_GUID_SIZE);
	for (; *text; text++) {
		const char *hex = "0123456789abcdef", *at = strchr(hex, *text | 0x20);

		if (*text == '-')
			continue;
		if (!at || digits == 2 * C37_GUID_SIZE)
			return -EINVAL;
		guid[digits / 2] = (uint8_t)(guid[digits / 2] << 4 | (at - hex));
		digits++;
	}
	return digits == 2 * C37_GUID_SIZE ? 0 : -EINVAL;
}

/* Infinite: not known. */
static float place(const json_t *cfg, const char *key, double v)
{
	const json_t *given = json_object_get(cfg, key);

	return given && !json_is_null(given) ? (float)v : INFINITY;
}

static int fill_station(struct c37_pmu *p, const struct pmu_settings *s, struct config *c,
			json_t *cfg, const char *uuid)
{
	struct c37_station *st = &p->station;

	if (s->nominal_hz != 50 && s->nominal_hz != 60) {
		config_fail(c, cfg, "nominal_frequency", "is 50 or 60");
		return -EINVAL;
	}
	if (!*s->name || strlen(s->name) > C37_NAME_MAX) {
		config_fail(c, cfg, "name", "has 1 to %d bytes", C37_NAME_MAX);
		return -EINVAL;
	}
	if (parse_guid(st->guid, s->guid ? s->guid : uuid)) {
		config_fail(c, cfg, "guid", "'%.60s' is no UUID", s->guid ? s->guid : uuid);
		return -EINVAL;
	}
	st->name = (struct c37_bytes){ (const uint8_t *)s->name, strlen(s->name) };
	st->idcode = (uint16_t)s->idcode;
	st->changes = 1;
	st->latitude = place(cfg, "latitude", s->latitude);
	st->longitude = place(cfg, "longitude", s->longitude);
	st->elevation_m = place(cfg, "elevation", s->elevation_m);
	st->service_class = s->service_class ? 'P' : 'M';
	st->window_us = (int32_t)s->window_us;
	st->delay_us = (int32_t)s->delay_us;
	st->block.nominal_hz = (uint8_t)s->nominal_hz;
	st->block.format = (uint16_t)((s->polar ? C37_POLAR : 0) |
				      (s->float_phasors ? C37_FLOAT_PHASORS : 0) |
				      (s->float_analogs ? C37_FLOAT_ANALOGS : 0) |
				      (s->float_frequency ? C37_FLOAT_FREQUENCY : 0));
	p->stat = (struct c37_input){ .signal = s->stat, .index = -1 };
	p->frequency = (struct c37_input){ .signal = s->frequency, .index = -1 };
	p->rocof = (struct c37_input){ .signal = s->rocof, .index = -1 };
	return 0;
}

static int parse_pmu(struct c37_pmu *p, struct config *c, json_t *cfg, const char *uuid)
{
	struct c37_block *b = &p->station.block;
	struct pmu_settings s = { 0 };
	unsigned phasors = 0, analogs = 0;

	if (config_unpack(c, cfg, pmu_keys, ARRAY_SIZE(pmu_keys), &s, NULL, 0) ||
	    fill_station(p, &s, c, cfg, uuid) ||
	    parse_channels(&p->phasors, &phasors, PHASORS, c, cfg, s.phasor, s.phasors, "phasor") ||
	    parse_channels(&p->analogs, &analogs, ANALOGS, c, cfg, s.analog, s.analogs, "analog") ||
	    parse_channels(&p->digitals, &p->digital_count, DIGITALS, c, cfg, s.digital, s.digitals,
			   "digital"))
		return -EINVAL;
	b->phasors = (uint16_t)phasors;
	b->analogs = (uint16_t)analogs;
	b->digitals = (uint16_t)((p->digital_count + 15) / 16);
	return 0;
}

/* All frames have room for what is configured. */
static int check_sizes(const struct c37_source *s, struct config *c, json_t *out)
{
	static const enum c37_type types[] = { C37_CFG2, C37_CFG3 };
	size_t data = C37_FRAME_MIN;
	uint8_t *buffer = malloc(C37_ANSWER_MAX);
	int ret = buffer ? 0 : -ENOMEM;

	for (unsigned i = 0; i < ARRAY_SIZE(types) && !ret; i++)
		if (!c37_source_config(s, types[i], C37_VERSION_2011, 0, buffer, C37_ANSWER_MAX))
			ret = -EMSGSIZE;
	for (unsigned i = 0; i < s->count; i++)
		data += c37_block_size(&s->pmus[i].station.block);
	if (data > C37_FRAME_MAX)
		ret = -EMSGSIZE;
	free(buffer);
	if (ret == -EMSGSIZE) {
		config_fail(c, out, "pmus", "a frame has %d bytes at most, which is less than these stations need",
			    C37_FRAME_MAX);
		ret = -EINVAL;
	}
	return ret;
}

int c37_source_parse(struct c37_source *s, struct config *c, json_t *out, json_t *pmus,
		     const char *uuid)
{
	size_t n = json_array_size(pmus), i;
	json_t *entry;
	int ret = 0;

	if (!json_is_array(pmus) || !n || n > CHANNELS_MAX) {
		config_fail(c, out, "pmus", "has to be a list of 1 to %d stations: ( { name = \"A\"; frequency = \"f\"; rocof = \"df\"; phasor = ( { signal = \"u\"; unit = \"volt\"; } ); } )",
			    CHANNELS_MAX);
		return -EINVAL;
	}
	s->pmus = calloc(n, sizeof(*s->pmus));
	if (!s->pmus)
		return -ENOMEM;
	s->count = (unsigned)n;
	json_array_foreach(pmus, i, entry)
		if (!json_is_object(entry)) {
			config_fail(c, out, "pmus", "entry %zu is no group", i);
			ret = -EINVAL;
		} else if (parse_pmu(&s->pmus[i], c, entry, uuid)) {
			ret = -EINVAL;
		}
	return ret ? ret : check_sizes(s, c, out);
}

void c37_source_destroy(struct c37_source *s)
{
	for (unsigned i = 0; i < s->count; i++) {
		free(s->pmus[i].phasors);
		free(s->pmus[i].analogs);
		free(s->pmus[i].digitals);
	}
	free(s->pmus);
	s->pmus = NULL;
	s->count = 0;
}
