/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random frames of IEC 60870-5-104 for tshark; see grid_dump.h. Left out is what tshark 4.0 does not
 * read: C_TS_TA, of which it shows the bytes. Of C_TS_NA and of reserved bits it has no fields.
 */
#include <stdarg.h>

#include "grid_dump.h"
#include "iec104_random.h"

enum { TYPE, CAUSE, NEGATIVE, TEST, ORIGINATOR, STATION, COUNT, SEQUENCE, ADDRESS, SINGLE, DOUBLE,
       STEP, TRANSIENT, BITS, NORMAL, SCALED, REAL, COUNTER, COUNTER_NUMBER, OVERFLOW_BIT, SINGLE_COMMAND,
       DOUBLE_COMMAND, STEP_COMMAND, QUALIFIER, SELECT, MILLISECOND, MINUTE, HOUR, DAY, MONTH, YEAR,
       INVALID_TIME, FIELDS };

/* Of all objects by commas. */
static char text[FIELDS][IEC104_OBJECTS_MAX * 16];

static void check(bool good)
{
	if (!good)
		abort();
}

static void __attribute__((format(printf, 2, 3))) add(unsigned field, const char *format, ...)
{
	size_t len = strlen(text[field]);
	va_list args;

	if (len)
		text[field][len++] = ',';
	va_start(args, format);
	vsnprintf(text[field] + len, sizeof(text[field]) - len, format, args);
	va_end(args);
}

static void say_command(unsigned field, const struct iec104_object *o)
{
	add(field, "%d", o->value);
}

static void say_object(const struct iec104_type_info *info, const struct iec104_object *o)
{
	switch (info->kind) {
	case IEC104_SINGLE: add(SINGLE, "%d", o->value); break;
	case IEC104_DOUBLE: add(DOUBLE, "%d", o->value); break;
	case IEC104_STEP:
		add(STEP, "%d", o->value);
		add(TRANSIENT, "%d", o->transient);
		break;
	case IEC104_BITS:
	case IEC104_BITS_COMMAND:
		/* The bytes as they were sent, the lowest one first. */
		add(BITS, "0x%08x", __builtin_bswap32((uint32_t)o->value));
		break;
	case IEC104_NORMALIZED:
	case IEC104_NORMALIZED_PLAIN:
	case IEC104_NORMALIZED_SETPOINT:
		add(NORMAL, "%.6g", o->value / 32768.0);
		break;
	case IEC104_SCALED:
	case IEC104_SCALED_SETPOINT:
		add(SCALED, "%d", o->value);
		break;
	case IEC104_SHORT:
	case IEC104_SHORT_SETPOINT:
		add(REAL, "%.6g", (double)o->real);
		break;
	case IEC104_COUNTER:
		add(COUNTER, "%d", o->value);
		add(COUNTER_NUMBER, "%u", o->quality & IEC104_COUNTER_SEQUENCE);
		break;
	case IEC104_SINGLE_COMMAND: say_command(SINGLE_COMMAND, o); break;
	case IEC104_DOUBLE_COMMAND: say_command(DOUBLE_COMMAND, o); break;
	case IEC104_STEP_COMMAND: say_command(STEP_COMMAND, o); break;
	default: break;
	}
	if (info->kind >= IEC104_STEP && info->kind < IEC104_COUNTER &&
	    info->kind != IEC104_NORMALIZED_PLAIN)
		add(OVERFLOW_BIT, "%d", !!(o->quality & IEC104_OVERFLOW));
	if (info->kind >= IEC104_NORMALIZED_SETPOINT && info->kind <= IEC104_SHORT_SETPOINT) {
		add(QUALIFIER, "%u", o->qualifier);
		add(SELECT, "%d", o->select);
	}
	if (!info->timed)
		return;
	add(MILLISECOND, "%u", o->time.millisecond);
	add(MINUTE, "%u", o->time.minute);
	add(HOUR, "%u", o->time.hour);
	add(DAY, "%u", o->time.day);
	add(MONTH, "%u", o->time.month);
	add(YEAR, "%u", o->time.year);
	add(INVALID_TIME, "%d", o->time.invalid);
}

static void say_asdu(const struct iec104_frame *f)
{
	struct iec104_object o;
	struct iec104_asdu a;

	check(!iec104_asdu_decode(f->asdu, f->asdu_len, &a) && a.info);
	add(TYPE, "%u", a.type);
	add(CAUSE, "%u", a.cause);
	add(NEGATIVE, "%d", a.negative);
	add(TEST, "%d", a.test);
	add(ORIGINATOR, "%u", a.originator);
	add(STATION, "%u", a.station);
	add(COUNT, "%u", a.count);
	add(SEQUENCE, "%d", a.sequence);
	for (unsigned i = 0; i < a.count; i++) {
		iec104_object_decode(&a, i, &o);
		add(ADDRESS, "%u", o.address);
		say_object(a.info, &o);
	}
}

/* What tshark prints: fields by tabs. */
static void say(FILE *lines, const uint8_t *at, size_t len)
{
	struct iec104_frame f;
	const char *why;

	check(iec104_frame_decode(at, len, &f, &why) == (int)len);
	memset(text, 0, sizeof(text));
	fprintf(lines, "0x%08x\t", f.format == IEC104_I ? 0 : f.format == IEC104_S ? 1 : 3);
	if (f.format == IEC104_U)
		fprintf(lines, "0x%08x", f.function >> 2);
	fprintf(lines, "\t");
	if (f.format == IEC104_I)
		fprintf(lines, "%u", f.send);
	fprintf(lines, "\t");
	if (f.format != IEC104_U)
		fprintf(lines, "%u", f.receive);
	if (f.format == IEC104_I)
		say_asdu(&f);
	for (unsigned i = 0; i < FIELDS; i++)
		fprintf(lines, "\t%s", text[i]);
	fprintf(lines, "\n");
}

static bool tshark_reads(const struct iec104_asdu *a)
{
	return a->type != IEC104_C_TS_TA;
}

static size_t make(struct prng *random, uint8_t frame[GRID_FRAME_MAX], FILE *lines)
{
	struct iec104_object objects[IEC104_OBJECTS_MAX];
	uint8_t asdu[IEC104_ASDU_MAX], apdu[IEC104_APDU_MAX];
	struct iec104_frame f = { .send = (uint16_t)grid_below(random, IEC104_MODULO),
				  .receive = (uint16_t)grid_below(random, IEC104_MODULO) };
	struct iec104_asdu a;
	unsigned what = grid_below(random, 16);
	size_t len;

	f.format = what == 0 ? IEC104_S : what == 1 ? IEC104_U : IEC104_I;
	f.function = (enum iec104_function)(4u << grid_below(random, 6));
	do
		iec104_random_asdu(random, &a, objects);
	while (!tshark_reads(&a));
	f.asdu = asdu;
	f.asdu_len = iec104_asdu_encode(&a, objects, asdu);
	check(f.asdu_len);
	len = iec104_frame_encode(&f, apdu);
	say(lines, apdu, len);
	return grid_tcp(random, frame, 2404, apdu, len);
}

int main(int argc, char **argv)
{
	return grid_dump(argc, argv, make);
}
