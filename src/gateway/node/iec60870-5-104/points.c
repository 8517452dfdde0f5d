/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of points, from the configuration; see points.h. */
#include "gateway/node/iec60870-5-104/points.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"
#include "util/container_of.h"

enum part { PART_VALUE, PART_QUALITY };

static const char *const part_names[] = { "value", "quality", NULL };

/* By the number of an enum iec104_kind; in the words of the field. */
static const char *const kind_names[] = {
	[IEC104_SINGLE] = "single-point",
	[IEC104_DOUBLE] = "double-point",
	[IEC104_STEP] = "step-position",
	[IEC104_BITS] = "bitstring",
	[IEC104_NORMALIZED] = "normalized-float",
	[IEC104_NORMALIZED_PLAIN] = "normalized-float-plain",
	[IEC104_SCALED] = "scaled-int",
	[IEC104_SHORT] = "short-float",
	[IEC104_COUNTER] = "integrated-total",
	[IEC104_SINGLE_COMMAND] = "single-command",
	[IEC104_DOUBLE_COMMAND] = "double-command",
	[IEC104_STEP_COMMAND] = "step-command",
	[IEC104_NORMALIZED_SETPOINT] = "normalized-setpoint",
	[IEC104_SCALED_SETPOINT] = "scaled-setpoint",
	[IEC104_SHORT_SETPOINT] = "short-setpoint",
	[IEC104_BITS_COMMAND] = "bitstring-command",
	NULL,
};

struct entry {
	int kind;
	const char *type;
	bool timed, select;
	int64_t address, group;
	int part;
};

#define OFFSET(field) offsetof(struct entry, field)

const struct config_key point_keys[POINT_KEYS] = {
	{ "asdu_type", CONFIG_ENUM, OFFSET(kind), "single-point", .names = kind_names,
	  .help = "What the information object holds" },
	{ "asdu_type_id", CONFIG_STRING, OFFSET(type),
	  .help = "The same by the standard's name, with the time tag: M_ME_TF_1" },
	{ "with_timestamp", CONFIG_BOOL, OFFSET(timed), "false",
	  .help = "With the time of the sample (CP56Time2a)" },
	{ "ioa", CONFIG_INT, OFFSET(address), .min = 1, .max = IEC104_ADDRESS_MAX,
	  .help = "Address of the information object" },
	{ "part", CONFIG_ENUM, OFFSET(part), "value", .names = part_names,
	  .help = "quality: the signal is the quality bits of the object, whose value is another signal" },
	{ "select", CONFIG_BOOL, OFFSET(select), "false",
	  .help = "A command is selected before it is executed" },
	{ "group", CONFIG_INT, OFFSET(group), "0", .min = 0, .max = POINT_GROUPS,
	  .help = "Slave: the group in which the value is interrogated, 1 to 16, of counters 1 to 4; 0: none" },
};

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

/* The type of an entry; NULL after config_fail(). */
static const struct iec104_type_info *entry_type(const struct entry *e, struct config *c,
						 const json_t *at, bool commands)
{
	bool named = json_object_get(at, "asdu_type");
	const struct iec104_type_info *info;

	if (named == !!e->type) {
		fail(c, at, "asdu_type", "one of asdu_type and asdu_type_id has to be there");
		return NULL;
	}
	info = named ? iec104_type_of((enum iec104_kind)e->kind, e->timed) :
		       iec104_type_named(e->type);
	if (!info && named) {
		fail(c, at, "with_timestamp", "the type has no form with a timestamp");
		return NULL;
	}
	if (!info || info->kind >= IEC104_ONE_BYTE) {
		config_fail(c, at, "asdu_type_id", "'%.30s' is no type of a signal, such as M_ME_NC_1",
			    e->type);
		return NULL;
	}
	if (!named && json_object_get(at, "with_timestamp") && e->timed != info->timed) {
		config_fail(c, at, "with_timestamp", "the type %s is %s timestamp", info->name,
			    info->timed ? "with a" : "without");
		return NULL;
	}
	if (info->command != commands) {
		config_fail(c, at, named ? "asdu_type" : "asdu_type_id", "%s is %s; here are %s",
			    info->name, info->command ? "a command" : "a value",
			    commands ? "commands" : "values");
		return NULL;
	}
	return info;
}

static int parse_value(struct point *p, const struct entry *e, struct config *c, const json_t *at,
		       bool commands)
{
	p->info = entry_type(e, c, at, commands);
	if (!p->info)
		return -EINVAL;
	p->select = e->select;
	p->group = (unsigned)e->group;
	if (e->group && commands)
		return fail(c, at, "group", "commands are not interrogated");
	if (p->info->kind == IEC104_COUNTER && e->group > POINT_COUNTER_GROUPS)
		return fail(c, at, "group", "there are four groups of counters, 1 to 4");
	if (e->select && (!commands || p->info->kind == IEC104_BITS_COMMAND))
		return fail(c, at, "select", "this type is never selected");
	return 0;
}

/* The address in front of `at`, for sequences. */
struct last {
	int64_t start, address;
};

static int64_t entry_address(const struct entry *e, struct last *last, bool sequence)
{
	if (sequence && e->address == last->start) {
		last->address++;
	} else {
		last->start = last->address = e->address;
	}
	return last->address;
}

/* The point with that address: mostly the last one. */
static struct point *find_address(struct points *p, int64_t address)
{
	for (unsigned i = p->count; i; i--)
		if (p->list[i - 1].address == address)
			return &p->list[i - 1];
	return NULL;
}

static int add_quality(struct points *p, struct config *c, const json_t *at, int64_t address,
		       unsigned signal)
{
	struct point *of = find_address(p, address);

	if (!of)
		return fail(c, at, "ioa", "no signal in front of this one is the value of the object");
	if (of->quality != POINT_NO_SIGNAL || of->info->command ||
	    of->info->kind == IEC104_NORMALIZED_PLAIN)
		return fail(c, at, "part", "the object has no quality, or another signal is it");
	of->quality = signal;
	return 0;
}

static int parse_entry(struct points *p, struct config *c, const json_t *at, bool commands,
		       bool sequence, struct last *last, unsigned *signal)
{
	const json_t *count = json_object_get(at, "count");
	json_int_t repeat = count ? json_integer_value(count) : 1;
	struct entry e = { 0 };

	if (config_unpack_part(c, at, point_keys, POINT_KEYS, &e))
		return -EINVAL;
	if (!json_object_get(at, "ioa"))
		return fail(c, at, "ioa", "each signal needs the address of its information object");
	if (repeat > 1 && !sequence)
		return fail(c, at, "count",
			    "signals with consecutive addresses need duplicate_ioa_is_sequence = true");
	for (; repeat > 0; repeat--, (*signal)++) {
		int64_t address = entry_address(&e, last, sequence);
		struct point *new = &p->list[p->count];
		int ret = 0;

		if (address > IEC104_ADDRESS_MAX)
			return fail(c, at, "ioa", "the addresses go beyond the highest one, 16777215");
		if (e.part == PART_QUALITY) {
			ret = add_quality(p, c, at, address, *signal);
		} else {
			*new = (struct point){ .address = (uint32_t)address, .value = *signal,
					       .quality = POINT_NO_SIGNAL };
			ret = parse_value(new, &e, c, at, commands);
			p->count++;
		}
		if (ret)
			return ret;
	}
	return 0;
}

static int compare_address(const void *a, const void *b, void *points)
{
	const struct points *p = points;
	uint32_t left = p->list[*(const unsigned *)a].address;
	uint32_t right = p->list[*(const unsigned *)b].address;

	return left < right ? -1 : left > right;
}

/* Sorts them by their addresses, each of which there is once. */
static int sort(struct points *p, struct config *c, const json_t *group)
{
	for (unsigned i = 0; i < p->count; i++)
		p->by_address[i] = i;
	qsort_r(p->by_address, p->count, sizeof(*p->by_address), compare_address, p);
	for (unsigned i = 1; i < p->count; i++) {
		uint32_t address = p->list[p->by_address[i]].address;

		if (p->list[p->by_address[i - 1]].address != address)
			continue;
		config_fail(c, group, "signals", "two signals have the address %u", address);
		return -EINVAL;
	}
	return 0;
}

/* Those of one type behind each other, in the order in which they are configured. */
static void make_order(struct points *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->count; i++) {
		bool first = true;

		for (unsigned k = 0; k < i && first; k++)
			first = p->list[k].info != p->list[i].info;
		for (unsigned k = i; first && k < p->count; k++)
			if (p->list[k].info == p->list[i].info)
				p->order[n++] = k;
	}
}

static void make_chunks(struct points *p, bool sequence)
{
	for (unsigned i = 0; i < p->count;) {
		struct point_chunk *chunk = &p->chunks[p->chunk_count++];
		const struct iec104_type_info *info = p->list[p->order[i]].info;
		unsigned room = iec104_asdu_room(info, false);

		*chunk = (struct point_chunk){ .info = info, .first = i,
					       .sequence = sequence && !info->timed && !info->command };
		for (; i < p->count && chunk->count < room; i++, chunk->count++) {
			const struct point *next = &p->list[p->order[i]];

			if (next->info != info)
				break;
			if (next->address != p->list[p->order[chunk->first]].address + chunk->count)
				chunk->sequence = false;
		}
	}
}

static int allocate(struct points *p, size_t count)
{
	p->list = calloc(count, sizeof(*p->list));
	p->by_address = calloc(count, sizeof(*p->by_address));
	p->order = calloc(count, sizeof(*p->order));
	p->chunks = calloc(count, sizeof(*p->chunks));
	return p->list && p->by_address && p->order && p->chunks ? 0 : -ENOMEM;
}

/* All signals of the list, with those that `count` stands for. */
static size_t count_signals(const json_t *list)
{
	size_t sum = 0, i;
	json_t *e;

	json_array_foreach(list, i, e) {
		const json_t *count = json_object_get(e, "count");

		sum += count ? (size_t)json_integer_value(count) : 1;
	}
	return sum;
}

int points_parse(struct points *p, struct config *c, const json_t *group, bool commands,
		 bool sequence)
{
	json_t *signals = json_object_get(group, "signals"), *list, *e;
	struct last last = { .start = -1 };
	unsigned signal = 0;
	size_t i, count;
	int ret;

	if (!json_is_array(signals) && !json_is_object(signals))
		return fail(c, group, signals ? "signals" : NULL,
			    "needs `signals`, each with its address: { asdu_type = ...; ioa = ...; }");
	list = json_is_array(signals) ? json_incref(signals) : json_pack("[O]", signals);
	count = count_signals(list);
	ret = !list ? -ENOMEM : !count || count > SIGNALS_MAX ?
		fail(c, group, "signals", "has no signals") : allocate(p, count);
	json_array_foreach(list, i, e)
		ret = ret ?: parse_entry(p, c, e, commands, sequence, &last, &signal);
	json_decref(list);
	ret = ret ?: sort(p, c, group);
	if (ret)
		return ret;
	make_order(p);
	make_chunks(p, sequence);
	return 0;
}

void points_free(struct points *p)
{
	free(p->list);
	free(p->by_address);
	free(p->order);
	free(p->chunks);
	*p = (struct points){ 0 };
}

int points_find(const struct points *p, uint32_t address, enum iec104_kind kind)
{
	unsigned low = 0, high = p->count;

	while (low < high) {
		unsigned middle = (low + high) / 2, at = p->by_address[middle];

		if (p->list[at].address == address)
			return p->list[at].info->kind == kind ? (int)at : -1;
		if (p->list[at].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}
