/* SPDX-License-Identifier: BSD-2-Clause */
/* See iec104.h. */
#include "wire/grid/iec104.h"

#include <errno.h>
#include <string.h>

#define START 0x68
#define CONTROL 4           /* bytes of the control field, which a frame's length counts */
#define FUNCTIONS 0xfc      /* of U frames, in the first byte */
#define SEQUENCE 0x80
#define NEGATIVE 0x40
#define TEST 0x80
#define CAUSE 0x3f
#define SELECT 0x80
#define TRANSIENT 0x80
#define QUALITY (IEC104_OVERFLOW | IEC104_BLOCKED | IEC104_SUBSTITUTED | IEC104_NOT_TOPICAL | \
		 IEC104_INVALID)
#define POINT_QUALITY (QUALITY & ~IEC104_OVERFLOW)
#define ADDRESS_BYTES 3u
#define DAY_MS INT64_C(86400000)

/* ---- integers, the first byte lowest ---- */

static uint8_t *put_low(uint8_t *to, uint32_t value, unsigned bytes)
{
	for (; bytes; bytes--, value >>= 8)
		*to++ = (uint8_t)value;
	return to;
}

static uint32_t get_low(const uint8_t *from, unsigned bytes)
{
	uint32_t value = 0;

	while (bytes--)
		value = value << 8 | from[bytes];
	return value;
}

/* ---- frames ---- */

static int broken(const char **why, const char *what)
{
	*why = what;
	return -EPROTO;
}

/* A U frame has one function. */
static bool is_function(uint8_t first)
{
	unsigned f = first & FUNCTIONS;

	return f && !(f & (f - 1));
}

int iec104_frame_decode(const uint8_t *at, size_t len, struct iec104_frame *f, const char **why)
{
	unsigned length;

	if (!len)
		return 0;
	if (*at != START)
		return broken(why, "a frame does not begin with 68h");
	if (len < 2)
		return 0;
	length = at[1];
	if (length < CONTROL || length > IEC104_APDU_MAX - 2)
		return broken(why, "the length of a frame is not 4 to 253");
	if (len < length + 2)
		return 0;
	*f = (struct iec104_frame){ .receive = (uint16_t)(get_low(at + 4, 2) >> 1) };
	if (at[4] & 1)
		return broken(why, "the control field of a frame is of no format");
	if (!(at[2] & 1)) {
		f->format = IEC104_I;
		f->send = (uint16_t)(get_low(at + 2, 2) >> 1);
		f->asdu = at + IEC104_APCI;
		f->asdu_len = length - CONTROL;
		if (!f->asdu_len)
			return broken(why, "an I frame has no ASDU");
		return (int)length + 2;
	}
	if (length != CONTROL)
		return broken(why, "a frame that is not of format I has data");
	if (at[2] == 1 && !at[3]) {
		f->format = IEC104_S;
		return (int)length + 2;
	}
	if ((at[2] & 3) != 3 || at[3] || f->receive || !is_function(at[2]))
		return broken(why, "the control field of a frame is of no format");
	f->format = IEC104_U;
	f->function = at[2] & FUNCTIONS;
	return (int)length + 2;
}

size_t iec104_frame_encode(const struct iec104_frame *f, uint8_t to[IEC104_APDU_MAX])
{
	size_t len = f->format == IEC104_I ? f->asdu_len : 0;
	uint32_t first = f->format == IEC104_I ? (uint32_t)f->send << 1 :
			 f->format == IEC104_S ? 1 : f->function | 3u;

	to[0] = START;
	to[1] = (uint8_t)(CONTROL + len);
	put_low(to + 2, first, 2);
	put_low(to + 4, f->format == IEC104_U ? 0 : (uint32_t)f->receive << 1, 2);
	if (len)
		memcpy(to + IEC104_APCI, f->asdu, len);
	return IEC104_APCI + len;
}

/* ---- types ---- */

static const struct iec104_type_info types[] = {
	{ "M_SP_NA_1", IEC104_M_SP_NA, IEC104_SINGLE, false, false },
	{ "M_DP_NA_1", IEC104_M_DP_NA, IEC104_DOUBLE, false, false },
	{ "M_ST_NA_1", IEC104_M_ST_NA, IEC104_STEP, false, false },
	{ "M_BO_NA_1", IEC104_M_BO_NA, IEC104_BITS, false, false },
	{ "M_ME_NA_1", IEC104_M_ME_NA, IEC104_NORMALIZED, false, false },
	{ "M_ME_NB_1", IEC104_M_ME_NB, IEC104_SCALED, false, false },
	{ "M_ME_NC_1", IEC104_M_ME_NC, IEC104_SHORT, false, false },
	{ "M_IT_NA_1", IEC104_M_IT_NA, IEC104_COUNTER, false, false },
	{ "M_ME_ND_1", IEC104_M_ME_ND, IEC104_NORMALIZED_PLAIN, false, false },
	{ "M_SP_TB_1", IEC104_M_SP_TB, IEC104_SINGLE, true, false },
	{ "M_DP_TB_1", IEC104_M_DP_TB, IEC104_DOUBLE, true, false },
	{ "M_ST_TB_1", IEC104_M_ST_TB, IEC104_STEP, true, false },
	{ "M_BO_TB_1", IEC104_M_BO_TB, IEC104_BITS, true, false },
	{ "M_ME_TD_1", IEC104_M_ME_TD, IEC104_NORMALIZED, true, false },
	{ "M_ME_TE_1", IEC104_M_ME_TE, IEC104_SCALED, true, false },
	{ "M_ME_TF_1", IEC104_M_ME_TF, IEC104_SHORT, true, false },
	{ "M_IT_TB_1", IEC104_M_IT_TB, IEC104_COUNTER, true, false },
	{ "C_SC_NA_1", IEC104_C_SC_NA, IEC104_SINGLE_COMMAND, false, true },
	{ "C_DC_NA_1", IEC104_C_DC_NA, IEC104_DOUBLE_COMMAND, false, true },
	{ "C_RC_NA_1", IEC104_C_RC_NA, IEC104_STEP_COMMAND, false, true },
	{ "C_SE_NA_1", IEC104_C_SE_NA, IEC104_NORMALIZED_SETPOINT, false, true },
	{ "C_SE_NB_1", IEC104_C_SE_NB, IEC104_SCALED_SETPOINT, false, true },
	{ "C_SE_NC_1", IEC104_C_SE_NC, IEC104_SHORT_SETPOINT, false, true },
	{ "C_BO_NA_1", IEC104_C_BO_NA, IEC104_BITS_COMMAND, false, true },
	{ "C_SC_TA_1", IEC104_C_SC_TA, IEC104_SINGLE_COMMAND, true, true },
	{ "C_DC_TA_1", IEC104_C_DC_TA, IEC104_DOUBLE_COMMAND, true, true },
	{ "C_RC_TA_1", IEC104_C_RC_TA, IEC104_STEP_COMMAND, true, true },
	{ "C_SE_TA_1", IEC104_C_SE_TA, IEC104_NORMALIZED_SETPOINT, true, true },
	{ "C_SE_TB_1", IEC104_C_SE_TB, IEC104_SCALED_SETPOINT, true, true },
	{ "C_SE_TC_1", IEC104_C_SE_TC, IEC104_SHORT_SETPOINT, true, true },
	{ "C_BO_TA_1", IEC104_C_BO_TA, IEC104_BITS_COMMAND, true, true },
	{ "M_EI_NA_1", IEC104_M_EI_NA, IEC104_ONE_BYTE, false, false },
	{ "C_IC_NA_1", IEC104_C_IC_NA, IEC104_ONE_BYTE, false, true },
	{ "C_CI_NA_1", IEC104_C_CI_NA, IEC104_ONE_BYTE, false, true },
	{ "C_RD_NA_1", IEC104_C_RD_NA, IEC104_NOTHING, false, true },
	{ "C_CS_NA_1", IEC104_C_CS_NA, IEC104_NOTHING, true, true },
	{ "C_TS_NA_1", IEC104_C_TS_NA, IEC104_TWO_BYTES, false, true },
	{ "C_RP_NA_1", IEC104_C_RP_NA, IEC104_ONE_BYTE, false, true },
	{ "C_TS_TA_1", IEC104_C_TS_TA, IEC104_TWO_BYTES, true, true },
};

#define TYPES (sizeof(types) / sizeof(types[0]))

static const uint8_t sizes[] = {
	[IEC104_SINGLE] = 1, [IEC104_DOUBLE] = 1, [IEC104_STEP] = 2, [IEC104_BITS] = 5,
	[IEC104_NORMALIZED] = 3, [IEC104_NORMALIZED_PLAIN] = 2, [IEC104_SCALED] = 3,
	[IEC104_SHORT] = 5, [IEC104_COUNTER] = 5,
	[IEC104_SINGLE_COMMAND] = 1, [IEC104_DOUBLE_COMMAND] = 1, [IEC104_STEP_COMMAND] = 1,
	[IEC104_NORMALIZED_SETPOINT] = 3, [IEC104_SCALED_SETPOINT] = 3,
	[IEC104_SHORT_SETPOINT] = 5, [IEC104_BITS_COMMAND] = 4,
	[IEC104_ONE_BYTE] = 1, [IEC104_TWO_BYTES] = 2, [IEC104_NOTHING] = 0,
};

const struct iec104_type_info *iec104_type_find(unsigned type)
{
	for (size_t i = 0; i < TYPES; i++)
		if (types[i].type == type)
			return &types[i];
	return NULL;
}

const struct iec104_type_info *iec104_type_named(const char *name)
{
	for (size_t i = 0; i < TYPES; i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

const struct iec104_type_info *iec104_type_of(enum iec104_kind kind, bool timed)
{
	for (size_t i = 0; i < TYPES; i++)
		if (types[i].kind == kind && types[i].timed == timed)
			return &types[i];
	return NULL;
}

size_t iec104_object_size(const struct iec104_type_info *info)
{
	return sizes[info->kind] + (info->timed ? (size_t)IEC104_TIME_BYTES : 0);
}

/* ---- times ---- */

void iec104_time_decode(const uint8_t from[IEC104_TIME_BYTES], struct iec104_time *t)
{
	*t = (struct iec104_time){
		.millisecond = (uint16_t)get_low(from, 2),
		.minute = from[2] & 0x3f,
		.substituted = from[2] & 0x40,
		.invalid = from[2] & 0x80,
		.hour = from[3] & 0x1f,
		.summer = from[3] & 0x80,
		.day = from[4] & 0x1f,
		.weekday = from[4] >> 5,
		.month = from[5] & 0x0f,
		.year = from[6] & 0x7f,
	};
}

void iec104_time_encode(const struct iec104_time *t, uint8_t to[IEC104_TIME_BYTES])
{
	put_low(to, t->millisecond, 2);
	to[2] = (uint8_t)((t->minute & 0x3f) | (t->substituted ? 0x40 : 0) |
			  (t->invalid ? 0x80 : 0));
	to[3] = (uint8_t)((t->hour & 0x1f) | (t->summer ? 0x80 : 0));
	to[4] = (uint8_t)((t->day & 0x1f) | t->weekday << 5);
	to[5] = t->month & 0x0f;
	to[6] = t->year & 0x7f;
}

/* Days of a month of a year since 2000; each fourth one until 2099 is a leap year. */
static unsigned month_days(unsigned year, unsigned month)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return days[month - 1] + (month == 2 && year % 4 == 0);
}

#define DAYS_TO_2000 10957
#define SATURDAY 5u /* counted from Monday: the first day of 2000 */

struct iec104_time iec104_time_from_ns(int64_t ns)
{
	int64_t ms = ns / 1000000 - DAYS_TO_2000 * DAY_MS;
	struct iec104_time t = { .day = 1, .month = 1 };
	unsigned days, length;

	if (ns < 0 || ms < 0 || ms >= (INT64_C(100) * 365 + 25) * DAY_MS) {
		t.invalid = true;
		return t;
	}
	days = (unsigned)(ms / DAY_MS);
	ms %= DAY_MS;
	t.weekday = (uint8_t)((days + SATURDAY) % 7 + 1);
	t.hour = (uint8_t)(ms / 3600000);
	t.minute = (uint8_t)(ms / 60000 % 60);
	t.millisecond = (uint16_t)(ms % 60000);
	while (days >= (length = t.year % 4 ? 365 : 366)) {
		days -= length;
		t.year++;
	}
	while (days >= (length = month_days(t.year, t.month))) {
		days -= length;
		t.month++;
	}
	t.day = (uint8_t)(days + 1);
	return t;
}

bool iec104_time_to_ns(const struct iec104_time *t, int64_t *ns)
{
	int64_t days = DAYS_TO_2000 + t->year * INT64_C(365) + (t->year + 3) / 4;

	if (t->invalid || t->year > 99 || !t->month || t->month > 12 || !t->day ||
	    t->day > month_days(t->year, t->month) || t->hour > 23 || t->minute > 59 ||
	    t->millisecond > 59999)
		return false;
	for (unsigned m = 1; m < t->month; m++)
		days += month_days(t->year, m);
	days += t->day - 1;
	*ns = (days * DAY_MS + t->hour * INT64_C(3600000) + t->minute * INT64_C(60000) +
	       t->millisecond) * 1000000;
	return true;
}

/* ---- objects ---- */

static float get_real(const uint8_t *from)
{
	uint32_t bits = get_low(from, 4);
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint8_t *put_real(uint8_t *to, float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return put_low(to, bits, 4);
}

static void take_step(struct iec104_object *o, const uint8_t *at)
{
	o->transient = at[0] & TRANSIENT;
	o->value = (at[0] & 0x7f) - (at[0] & 0x40 ? 0x80 : 0);
	o->quality = at[1] & QUALITY;
}

/* SCO, DCO and RCO. */
static void take_command(struct iec104_object *o, uint8_t byte, unsigned mask)
{
	o->value = (int32_t)(byte & mask);
	o->qualifier = byte >> 2 & 0x1f;
	o->select = byte & SELECT;
}

static void take_setpoint(struct iec104_object *o, uint8_t byte)
{
	o->qualifier = byte & 0x7f;
	o->select = byte & SELECT;
}

static void take_element(struct iec104_object *o, enum iec104_kind kind, const uint8_t *at)
{
	switch (kind) {
	case IEC104_SINGLE:
	case IEC104_DOUBLE:
		o->value = *at & (kind == IEC104_SINGLE ? 1 : 3);
		o->quality = *at & POINT_QUALITY;
		break;
	case IEC104_STEP:
		take_step(o, at);
		break;
	case IEC104_BITS:
		o->value = (int32_t)get_low(at, 4);
		o->quality = at[4] & QUALITY;
		break;
	case IEC104_NORMALIZED:
	case IEC104_SCALED:
		o->quality = at[2] & QUALITY;
		/* fallthrough */
	case IEC104_NORMALIZED_PLAIN:
		o->value = (int16_t)get_low(at, 2);
		break;
	case IEC104_SHORT:
		o->real = get_real(at);
		o->quality = at[4] & QUALITY;
		break;
	case IEC104_COUNTER:
		o->value = (int32_t)get_low(at, 4);
		o->quality = at[4];
		break;
	case IEC104_SINGLE_COMMAND:
		take_command(o, *at, 1);
		break;
	case IEC104_DOUBLE_COMMAND:
	case IEC104_STEP_COMMAND:
		take_command(o, *at, 3);
		break;
	case IEC104_NORMALIZED_SETPOINT:
	case IEC104_SCALED_SETPOINT:
		o->value = (int16_t)get_low(at, 2);
		take_setpoint(o, at[2]);
		break;
	case IEC104_SHORT_SETPOINT:
		o->real = get_real(at);
		take_setpoint(o, at[4]);
		break;
	case IEC104_BITS_COMMAND:
		o->value = (int32_t)get_low(at, 4);
		break;
	case IEC104_ONE_BYTE:
	case IEC104_TWO_BYTES:
		o->value = (int32_t)get_low(at, kind == IEC104_ONE_BYTE ? 1 : 2);
		break;
	case IEC104_NOTHING:
		break;
	}
}

static uint8_t *put_command(uint8_t *to, const struct iec104_object *o, unsigned mask)
{
	*to = (uint8_t)(((unsigned)o->value & mask) | (o->qualifier & 0x1fu) << 2 |
			(o->select ? SELECT : 0u));
	return to + 1;
}

static uint8_t *put_setpoint(uint8_t *to, const struct iec104_object *o)
{
	*to = (uint8_t)((o->qualifier & 0x7f) | (o->select ? SELECT : 0));
	return to + 1;
}

static uint8_t *put_element(uint8_t *to, enum iec104_kind kind, const struct iec104_object *o)
{
	uint32_t value = (uint32_t)o->value;

	switch (kind) {
	case IEC104_SINGLE:
	case IEC104_DOUBLE:
		value &= kind == IEC104_SINGLE ? 1 : 3;
		return put_low(to, value | (o->quality & POINT_QUALITY), 1);
	case IEC104_STEP:
		to = put_low(to, (value & 0x7f) | (o->transient ? TRANSIENT : 0u), 1);
		return put_low(to, o->quality & QUALITY, 1);
	case IEC104_BITS:
		return put_low(put_low(to, value, 4), o->quality & QUALITY, 1);
	case IEC104_NORMALIZED:
	case IEC104_SCALED:
		return put_low(put_low(to, value, 2), o->quality & QUALITY, 1);
	case IEC104_NORMALIZED_PLAIN:
		return put_low(to, value, 2);
	case IEC104_SHORT:
		return put_low(put_real(to, o->real), o->quality & QUALITY, 1);
	case IEC104_COUNTER:
		return put_low(put_low(to, value, 4), o->quality, 1);
	case IEC104_SINGLE_COMMAND:
		return put_command(to, o, 1);
	case IEC104_DOUBLE_COMMAND:
	case IEC104_STEP_COMMAND:
		return put_command(to, o, 3);
	case IEC104_NORMALIZED_SETPOINT:
	case IEC104_SCALED_SETPOINT:
		return put_setpoint(put_low(to, value, 2), o);
	case IEC104_SHORT_SETPOINT:
		return put_setpoint(put_real(to, o->real), o);
	case IEC104_BITS_COMMAND:
		return put_low(to, value, 4);
	case IEC104_ONE_BYTE:
		return put_low(to, value, 1);
	case IEC104_TWO_BYTES:
		return put_low(to, value, 2);
	case IEC104_NOTHING:
		break;
	}
	return to;
}

/* ---- ASDUs ---- */

/* Addresses that stand in an ASDU: one for all of a sequence. */
static size_t addresses_size(bool sequence, unsigned count)
{
	return ADDRESS_BYTES * (sequence ? 1 : (size_t)count);
}

const char *iec104_asdu_decode(const uint8_t *at, size_t len, struct iec104_asdu *a)
{
	if (len < IEC104_ASDU_HEADER)
		return "an ASDU is shorter than its header";
	*a = (struct iec104_asdu){
		.type = at[0],
		.sequence = at[1] & SEQUENCE,
		.count = at[1] & 0x7f,
		.cause = at[2] & CAUSE,
		.negative = at[2] & NEGATIVE,
		.test = at[2] & TEST,
		.originator = at[3],
		.station = (uint16_t)get_low(at + 4, 2),
		.info = iec104_type_find(at[0]),
		.objects = at + IEC104_ASDU_HEADER,
	};
	if (!a->info)
		return NULL;
	if (!a->count)
		return "an ASDU has no object";
	if (a->info->command && (a->sequence || a->count != 1))
		return "a command has more than one object";
	if (len - IEC104_ASDU_HEADER != addresses_size(a->sequence, a->count) +
					a->count * iec104_object_size(a->info))
		return "the length of an ASDU is not that of its objects";
	if (a->sequence && get_low(a->objects, ADDRESS_BYTES) + a->count - 1 > IEC104_ADDRESS_MAX)
		return "the addresses of a sequence go beyond the highest one";
	return NULL;
}

void iec104_object_decode(const struct iec104_asdu *a, unsigned index, struct iec104_object *o)
{
	size_t size = iec104_object_size(a->info);
	const uint8_t *at = a->objects + (a->sequence ? ADDRESS_BYTES + index * size :
							(ADDRESS_BYTES + size) * index);

	*o = (struct iec104_object){ 0 };
	o->address = get_low(a->sequence ? a->objects : at, ADDRESS_BYTES) +
		     (a->sequence ? index : 0);
	at += a->sequence ? 0 : ADDRESS_BYTES;
	take_element(o, a->info->kind, at);
	if (a->info->timed)
		iec104_time_decode(at + sizes[a->info->kind], &o->time);
}

unsigned iec104_asdu_room(const struct iec104_type_info *info, bool sequence)
{
	const size_t bytes = IEC104_ASDU_MAX - IEC104_ASDU_HEADER;
	size_t size = iec104_object_size(info), count;

	if (info->command)
		return 1;
	count = sequence ? (bytes - ADDRESS_BYTES) / size : bytes / (ADDRESS_BYTES + size);
	return count < IEC104_OBJECTS_MAX ? (unsigned)count : IEC104_OBJECTS_MAX;
}

size_t iec104_asdu_encode(const struct iec104_asdu *a, const struct iec104_object objects[],
			  uint8_t to[IEC104_ASDU_MAX])
{
	const struct iec104_type_info *info = iec104_type_find(a->type);
	uint8_t *at = to;

	if (!info || !a->count || a->count > iec104_asdu_room(info, a->sequence) ||
	    (info->command && a->sequence))
		return 0;
	*at++ = a->type;
	*at++ = (uint8_t)(a->count | (a->sequence ? SEQUENCE : 0));
	*at++ = (uint8_t)((a->cause & CAUSE) | (a->negative ? NEGATIVE : 0) |
			  (a->test ? TEST : 0));
	*at++ = a->originator;
	at = put_low(at, a->station, 2);
	for (unsigned i = 0; i < a->count; i++) {
		const struct iec104_object *o = &objects[i];

		if (o->address > IEC104_ADDRESS_MAX ||
		    (a->sequence && o->address != objects[0].address + i))
			return 0;
		if (!i || !a->sequence)
			at = put_low(at, o->address, ADDRESS_BYTES);
		at = put_element(at, info->kind, o);
		if (info->timed) {
			iec104_time_encode(&o->time, at);
			at += IEC104_TIME_BYTES;
		}
	}
	return (size_t)(at - to);
}

void iec104_asdu_answer(uint8_t *asdu, enum iec104_cause cause, bool negative)
{
	asdu[2] = (uint8_t)((asdu[2] & TEST) | cause | (negative ? NEGATIVE : 0u));
}
