/* SPDX-License-Identifier: BSD-2-Clause */
/* Values to registers and back; see registers.h. */
#include <math.h>
#include <string.h>

#include "gateway/node/modbus/registers.h"

static unsigned place(const struct modbus_map *m, unsigned i)
{
	return m->high_first ? i : m->count - 1 - i;
}

static uint16_t in_order(const struct modbus_map *m, uint16_t reg)
{
	return m->swapped ? __builtin_bswap16(reg) : reg;
}

static uint64_t join(const struct modbus_map *m, const uint16_t regs[])
{
	uint64_t v = 0;

	for (unsigned i = 0; i < m->count; i++)
		v = v << 16 | in_order(m, regs[place(m, i)]);
	return v;
}

static void split(const struct modbus_map *m, uint64_t v, uint16_t regs[])
{
	for (unsigned i = m->count; i--; v >>= 16)
		regs[place(m, i)] = in_order(m, (uint16_t)v);
}

static int64_t read_integer(const struct modbus_map *m, const uint16_t regs[])
{
	unsigned unused = 64 - 16 * m->count;
	uint64_t v = join(m, regs);

	return m->is_signed ? (int64_t)(v << unused) >> unused : (int64_t)v;
}

static double read_float(const struct modbus_map *m, const uint16_t regs[])
{
	uint32_t bits = (uint32_t)join(m, regs);
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

void modbus_value_read(const struct modbus_map *m, const uint16_t regs[], union signal_data *out)
{
	switch (m->kind) {
	case MODBUS_FLOAT:
		out->f = read_float(m, regs) * m->scale + m->offset;
		break;
	case MODBUS_SCALED:
		out->f = (double)read_integer(m, regs) * m->scale + m->offset;
		break;
	case MODBUS_INTEGER:
		out->i = read_integer(m, regs);
		break;
	case MODBUS_BIT:
		out->i = in_order(m, regs[0]) >> m->bit & 1;
		break;
	case MODBUS_COIL:
		out->i = regs[0] != 0;
		break;
	}
}

static double as_double(enum signal_type type, const union signal_data *v)
{
	return type == SIGNAL_FLOAT ? v->f : (double)v->i;
}

/* Without a sign, registers take negative values too, as other programs write them. */
static bool fits(const struct modbus_map *m, int64_t v)
{
	unsigned bits = 16 * m->count;

	if (bits == 64)
		return true;
	return v >= -(INT64_C(1) << (bits - 1)) &&
	       v < INT64_C(1) << (m->is_signed ? bits - 1 : bits);
}

static const char *write_integer(const struct modbus_map *m, int64_t v, uint16_t regs[])
{
	if (!fits(m, v))
		return "is too large for its registers";
	split(m, (uint64_t)v, regs);
	return NULL;
}

static const char *write_rounded(const struct modbus_map *m, double v, uint16_t regs[])
{
	v = round(v);
	if (isnan(v))
		return "is no number";
	if (!(v >= -0x1p63 && v < 0x1p63))
		return "is too large for its registers";
	return write_integer(m, (int64_t)v, regs);
}

static const char *write_float(const struct modbus_map *m, double v, uint16_t regs[])
{
	float f = (float)v;
	uint32_t bits;

	if (isinf(f) && !isinf(v))
		return "is too large for a float";
	memcpy(&bits, &f, sizeof(bits));
	split(m, bits, regs);
	return NULL;
}

static bool is_on(enum signal_type type, const union signal_data *v)
{
	return type == SIGNAL_FLOAT ? v->f != 0 : v->i != 0;
}

static void write_bit(const struct modbus_map *m, bool on, uint16_t regs[])
{
	uint16_t mask = in_order(m, (uint16_t)(1u << m->bit));

	regs[0] = (uint16_t)(on ? regs[0] | mask : regs[0] & ~mask);
}

const char *modbus_value_write(const struct modbus_map *m, enum signal_type type,
			       const union signal_data *value, uint16_t regs[])
{
	if (type == SIGNAL_COMPLEX)
		return "is complex";
	switch (m->kind) {
	case MODBUS_FLOAT:
		return write_float(m, (as_double(type, value) - m->offset) / m->scale, regs);
	case MODBUS_SCALED:
		return write_rounded(m, (as_double(type, value) - m->offset) / m->scale, regs);
	case MODBUS_INTEGER:
		return type == SIGNAL_FLOAT ? write_rounded(m, value->f, regs) :
					      write_integer(m, value->i, regs);
	case MODBUS_BIT:
		write_bit(m, is_on(type, value), regs);
		break;
	case MODBUS_COIL:
		regs[0] = is_on(type, value);
		break;
	}
	return NULL;
}
