/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What measuring devices send: answers of thermometers (node-type temper) and codes of converters
 * (comedi), with any bytes. A value is finite and in the range of its device; a code that becomes a
 * value and a code again is the same; a value of any bits becomes a code of the channel, or is
 * refused.
 *
 * usage: fuzz_measured [RUNS [SEED]]
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/comedi/scans.h"
#include "gateway/node/temper/sensor.h"

#define MUTATE_BYTES "\x80\x82\x02\x04\x7f\xff\x01"
#include "drive.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void thermometer(const uint8_t *answer)
{
	for (enum sensor_model m = SENSOR_ONE; m <= SENSOR_HUMIDITY; m++) {
		double values[SENSOR_VALUES];
		unsigned count = sensor_decode(m, answer, values);

		must(count == (answer[0] != 0x80 ? 0 : m == SENSOR_ONE ? 1 : 2));
		for (unsigned i = 0; i < count; i++)
			must(fabs(values[i]) < 400);
		if (count && m == SENSOR_HUMIDITY)
			must(values[1] >= 0 && values[1] <= 100);
	}
}

static void converter(const uint8_t *data)
{
	struct daq_scale s = { .min = -10, .max = 10, .digital = data[0] & 1 };
	bool wide = data[0] & 2, limit = false;
	uint32_t code, back;
	union signal_data v;

	s.maxdata = s.digital ? 1 : (1u << (1 + data[1] % (wide ? 24 : 16))) - 1;
	memcpy(&v, data + 2, sizeof(v));
	for (enum signal_type t = SIGNAL_FLOAT; t <= SIGNAL_COMPLEX; t++)
		if (!daq_to_code(&s, t, &v, &code, &limit))
			must(code <= s.maxdata);
	code = daq_code_get((const char *)data + 2, wide);
	daq_from_code(&s, SIGNAL_FLOAT, code, &v, &limit);
	must(v.f >= s.min && v.f <= s.max);
	if (code <= s.maxdata) {
		must(!daq_to_code(&s, SIGNAL_FLOAT, &v, &back, &limit) && back == code);
		daq_from_code(&s, SIGNAL_INTEGER, code, &v, &limit);
		must(!daq_to_code(&s, SIGNAL_INTEGER, &v, &back, &limit) && back == code);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 10)
		return 0;
	thermometer(data);
	converter(data);
	return 0;
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = 10 + random_below(4);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)random_below(256);
	if (random_below(2))
		bytes[0] = 0x80;
	return size <= capacity ? size : capacity;
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 300000, 16, make);
}
