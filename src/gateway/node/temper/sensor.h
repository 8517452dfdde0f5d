/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thermometers of PCsensor (TEMPer) with the USB identifier 0c45:7401 or 0c45:7402: what they are
 * asked, what they answer, and how they are found in the kernel's list of HID devices. The
 * protocol is not published; these are the facts that programs for them agree on.
 */
#ifndef GATEWAY_NODE_TEMPER_SENSOR_H
#define GATEWAY_NODE_TEMPER_SENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SENSOR_QUESTION 9 /* the number of the report, which is 0, and 8 bytes */
#define SENSOR_ANSWER 8
#define SENSOR_VALUES 2

enum sensor_model {
	SENSOR_AUTO,
	SENSOR_ONE,       /* a temperature */
	SENSOR_TWO,       /* one inside and one at the end of a wire */
	SENSOR_HUMIDITY,  /* a temperature and the relative humidity */
};

extern const uint8_t sensor_question[SENSOR_QUESTION];

/* Values of `model`, which is not SENSOR_AUTO: degrees Celsius, and percent. Returns how many;
 * 0: it is no answer to the question. */
unsigned sensor_decode(enum sensor_model model, const uint8_t answer[SENSOR_ANSWER],
		       double values[SENSOR_VALUES]);

/* Selects a device; -1: any bus or port. */
struct sensor_filter {
	int64_t bus, port;
};

#define SENSOR_PATH 64

/*
 * Finds the first one below `sys` ("/sys"): fills `path` with its file in /dev, and `model` if
 * this is SENSOR_AUTO. 0, or -ENODEV.
 */
int sensor_find(const char *sys, const struct sensor_filter *filter, char path[SENSOR_PATH],
		enum sensor_model *model);

/* Asks and waits for the answer. 0, -ETIMEDOUT, -EBADMSG: the answer was another one, or the errno
 * of a device that is gone. */
int sensor_ask(int fd, int timeout_ms, uint8_t answer[SENSOR_ANSWER]);

#endif
