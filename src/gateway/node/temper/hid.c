/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's HID devices; see sensor.h. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/node/temper/sensor.h"
#include "util/clock.h"
#include "util/container_of.h"

/* Vendor and products, as the kernel writes them. */
#define THERMOMETER ":00000C45:00007401"
#define HYGROMETER ":00000C45:00007402"
/* The first interface is a keyboard, the second one answers. */
#define INTERFACE "/input1"

/* A whole file of a few lines; "" without it. */
static void read_file(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(buf, 1, size - 1, f) : 0;

	buf[n] = '\0';
	if (f)
		fclose(f);
}

/* The value of `key` in text of lines KEY=VALUE; false: it is not there. */
static bool value_of(const char *text, const char *key, char *value, size_t size)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) || line[len] != '=')
			continue;
		line += len + 1;
		snprintf(value, size, "%.*s", (int)strcspn(line, "\n"), line);
		return true;
	}
	return false;
}

/* Bus and port stand beside the interface of the USB device, two folders above. */
static bool is_at(const char *device, const struct sensor_filter *filter)
{
	char path[PATH_MAX + 32], number[64];
	char *real = realpath(device, NULL), *dot;
	bool fits;

	if (!real)
		return false;
	snprintf(path, sizeof(path), "%s/../../busnum", real);
	read_file(path, number, sizeof(number));
	fits = filter->bus < 0 || (*number && strtol(number, NULL, 10) == filter->bus);
	/* Behind hubs devpath is 1.2.3: the port on each hub. */
	snprintf(path, sizeof(path), "%s/../../devpath", real);
	read_file(path, number, sizeof(number));
	dot = strrchr(number, '.');
	fits = fits && (filter->port < 0 ||
			(*number && strtol(dot ? dot + 1 : number, NULL, 10) == filter->port));
	free(real);
	return fits;
}

/* The model of a HID device; SENSOR_AUTO: it is no known thermometer. */
static enum sensor_model model_of(const char *device)
{
	char path[PATH_MAX], text[1000], id[64], name[200] = "", place[200] = "";

	snprintf(path, sizeof(path), "%s/uevent", device);
	read_file(path, text, sizeof(text));
	if (!value_of(text, "HID_ID", id, sizeof(id)))
		return SENSOR_AUTO;
	value_of(text, "HID_NAME", name, sizeof(name));
	value_of(text, "HID_PHYS", place, sizeof(place));
	if (!strstr(place, INTERFACE))
		return SENSOR_AUTO;
	if (strstr(id, HYGROMETER))
		return SENSOR_HUMIDITY;
	if (!strstr(id, THERMOMETER))
		return SENSOR_AUTO;
	return strstr(name, "TEMPer2") ? SENSOR_TWO : SENSOR_ONE;
}

int sensor_find(const char *sys, const struct sensor_filter *filter, char path[SENSOR_PATH],
		enum sensor_model *model)
{
	char folder[PATH_MAX - 300], device[PATH_MAX - 20], best[SENSOR_PATH] = "";
	enum sensor_model best_model = SENSOR_AUTO;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/class/hidraw", sys);
	dir = opendir(folder);
	if (!dir)
		return -ENODEV;
	/* Of several devices that fit, the smallest name wins, so that the choice is stable. */
	for (struct dirent *d; (d = readdir(dir));) {
		enum sensor_model is;

		if (strncmp(d->d_name, "hidraw", 6) || strlen(d->d_name) > SENSOR_PATH - 6)
			continue;
		snprintf(device, sizeof(device), "%s/%s/device", folder, d->d_name);
		is = model_of(device);
		if (is == SENSOR_AUTO || !is_at(device, filter) ||
		    (*best && strcmp(d->d_name, best) >= 0))
			continue;
		snprintf(best, sizeof(best), "%.50s", d->d_name);
		best_model = is;
	}
	closedir(dir);
	if (!*best)
		return -ENODEV;
	snprintf(path, SENSOR_PATH, "/dev/%.50s", best);
	if (*model == SENSOR_AUTO)
		*model = best_model;
	return 0;
}

/* Drops answers that came too late for the question before. */
static void forget_old(int fd)
{
	uint8_t old[SENSOR_ANSWER];

	for (unsigned i = 0; i < 64 && read(fd, old, sizeof(old)) > 0; i++)
		;
}

int sensor_ask(int fd, int timeout_ms, uint8_t answer[SENSOR_ANSWER])
{
	uint64_t until_ns = clock_monotonic_ns_slow() + (uint64_t)timeout_ms * 1000000;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	forget_old(fd);
	if (write(fd, sensor_question, SENSOR_QUESTION) != SENSOR_QUESTION)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns_slow();
		ssize_t n;

		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((until_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		n = read(fd, answer, SENSOR_ANSWER);
		if (n == SENSOR_ANSWER)
			return 0;
		if (n > 0)
			return -EBADMSG;
		if (!n || (errno != EAGAIN && errno != EINTR))
			return n ? -errno : -ENODEV;
	}
}
