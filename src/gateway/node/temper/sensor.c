/* SPDX-License-Identifier: BSD-2-Clause */
/* What a thermometer answers; see sensor.h. */
#include "gateway/node/temper/sensor.h"

const uint8_t sensor_question[SENSOR_QUESTION] = { 0, 0x01, 0x80, 0x33, 0x01 };

/* The first byte of each answer to the question. */
#define ANSWER 0x80

static int number_at(const uint8_t *at)
{
	return (int16_t)(at[0] << 8 | at[1]);
}

/* Relative humidity of the sensor SHT1x, by the formulas of its maker. */
static double humidity(int raw, double celsius)
{
	double linear = -2.0468 + 0.0367 * raw - 1.5955e-6 * raw * raw;
	double real = (celsius - 25) * (0.01 + 0.00008 * raw) + linear;

	return real < 0 ? 0 : real > 99 ? 100 : real;
}

unsigned sensor_decode(enum sensor_model model, const uint8_t answer[SENSOR_ANSWER],
		       double values[SENSOR_VALUES])
{
	int first = number_at(answer + 2), second = number_at(answer + 4);

	if (answer[0] != ANSWER)
		return 0;
	if (model == SENSOR_HUMIDITY) {
		values[0] = -39.7 + 0.01 * first;
		values[1] = humidity(second, values[0]);
		return 2;
	}
	values[0] = first / 256.0;
	values[1] = second / 256.0;
	return model == SENSOR_TWO ? 2 : 1;
}
