/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type temper: values of answers; which device is found in a copy of the kernel's list;
 * questions over a socket that keeps reports apart as hidraw does; and the node with a
 * pseudo-terminal in the place of the device. tests/qemu/temper.sh has a device of the kernel.
 */
#include "../nodes/fixture.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include "gateway/node/temper/sensor.h"

extern const struct node_type node_temper;

/* ---- answers ---- */

static void answers_become_degrees_and_percent(void **state)
{
	static const struct {
		uint8_t answer[SENSOR_ANSWER];
		enum sensor_model model;
		unsigned count;
		double values[2];
	} rows[] = {
		{ { 0x80, 2, 0x17, 0x80, 0x19, 0x40 }, SENSOR_ONE, 1, { 23.5 } },
		{ { 0x80, 2, 0x17, 0x80, 0x19, 0x40 }, SENSOR_TWO, 2, { 23.5, 25.25 } },
		{ { 0x80, 2, 0xff, 0x80, 0xf6, 0x00 }, SENSOR_TWO, 2, { -0.5, -10 } },
		{ { 0x80, 4, 0x18, 0x6a, 0x05, 0x00 }, SENSOR_HUMIDITY, 2, { 22.8, 42.06 } },
		{ { 0x80, 4, 0x18, 0x6a, 0x00, 0x00 }, SENSOR_HUMIDITY, 2, { 22.8, 0 } },
		{ { 0x80, 4, 0x18, 0x6a, 0x0f, 0xff }, SENSOR_HUMIDITY, 2, { 22.8, 100 } },
		{ { 0x82, 2, 0x17, 0x80 }, SENSOR_ONE, 0, { 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		double values[2] = { 0 };

		assert_int_equal(sensor_decode(rows[i].model, rows[i].answer, values), rows[i].count);
		for (unsigned k = 0; k < rows[i].count; k++)
			assert_true(fabs(values[k] - rows[i].values[k]) < 0.01);
	}
}

/* ---- finding ---- */

/* Below `root`: a USB device at bus and port with one interface, and what hidraw shows. */
static void add_device(const char *root, const char *hidraw, const char *id, const char *name,
		       const char *phys, const char *bus, const char *port)
{
	char path[600], target[600];
	FILE *f;

#define PLACE(...) (snprintf(path, sizeof(path), __VA_ARGS__), path)
	mkdir(PLACE("%s/usb-%s", root, hidraw), 0755);
	f = fopen(PLACE("%s/usb-%s/busnum", root, hidraw), "we");
	fprintf(f, "%s\n", bus);
	fclose(f);
	f = fopen(PLACE("%s/usb-%s/devpath", root, hidraw), "we");
	fprintf(f, "%s\n", port);
	fclose(f);
	mkdir(PLACE("%s/usb-%s/interface", root, hidraw), 0755);
	mkdir(PLACE("%s/usb-%s/interface/hid", root, hidraw), 0755);
	f = fopen(PLACE("%s/usb-%s/interface/hid/uevent", root, hidraw), "we");
	fprintf(f, "DRIVER=hid-generic\nHID_ID=%s\nHID_NAME=%s\nHID_PHYS=%s\nHID_UNIQ=\n", id, name, phys);
	fclose(f);
	mkdir(PLACE("%s/class/hidraw/%s", root, hidraw), 0755);
	snprintf(target, sizeof(target), "%s/usb-%s/interface/hid", root, hidraw);
	assert_int_equal(symlink(target, PLACE("%s/class/hidraw/%s/device", root, hidraw)), 0);
}

#define ONE "0003:00000C45:00007401"
#define HUM "0003:00000C45:00007402"

static void the_device_that_is_meant_is_found(void **state)
{
	char root[] = "/tmp/busbar-temper-XXXXXX", path[SENSOR_PATH], command[100];
	static const struct {
		struct sensor_filter filter;
		enum sensor_model wanted, is;
		const char *path;
	} rows[] = {
		{ { -1, -1 }, SENSOR_AUTO, SENSOR_ONE, "/dev/hidraw2" },
		{ { -1, -1 }, SENSOR_TWO, SENSOR_TWO, "/dev/hidraw2" },
		{ { 3, -1 }, SENSOR_AUTO, SENSOR_TWO, "/dev/hidraw4" },
		{ { 1, 4 }, SENSOR_AUTO, SENSOR_HUMIDITY, "/dev/hidraw5" },
		{ { -1, 4 }, SENSOR_AUTO, SENSOR_HUMIDITY, "/dev/hidraw5" },
		{ { 3, 4 }, SENSOR_AUTO, SENSOR_AUTO, NULL },
		{ { 2, -1 }, SENSOR_AUTO, SENSOR_AUTO, NULL },
	};
	enum sensor_model model = SENSOR_AUTO;
	const struct sensor_filter any = { -1, -1 };

	assert_non_null(mkdtemp(root));
	assert_int_equal(sensor_find(root, &any, path, &model), -ENODEV);
	snprintf(command, sizeof(command), "%s/class", root);
	mkdir(command, 0755);
	snprintf(command, sizeof(command), "%s/class/hidraw", root);
	mkdir(command, 0755);
	assert_int_equal(sensor_find(root, &any, path, &model), -ENODEV);
	add_device(root, "hidraw0", "0003:0000046D:0000C31C", "Keyboard", "usb-0/input1", "1", "1");
	add_device(root, "hidraw1", ONE, "RDing TEMPer1V1.2", "usb-1/input0", "1", "2");
	add_device(root, "hidraw2", ONE, "RDing TEMPer1V1.2", "usb-1/input1", "1", "2");
	add_device(root, "hidraw4", ONE, "RDing TEMPer2V1.3", "usb-3/input1", "3", "1.2");
	add_device(root, "hidraw5", HUM, "RDing TEMPerHUM", "usb-3/input1", "1", "2.4");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		model = rows[i].wanted;
		assert_int_equal(sensor_find(root, &rows[i].filter, path, &model),
				 rows[i].path ? 0 : -ENODEV);
		if (rows[i].path)
			assert_string_equal(path, rows[i].path);
		assert_int_equal(model, rows[i].is);
	}
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

/* ---- asking ---- */

static void an_old_answer_is_not_taken_for_a_new_one(void **state)
{
	const uint8_t old[SENSOR_ANSWER] = { 0x80, 2, 1 };
	uint8_t answer[SENSOR_ANSWER], question[SENSOR_QUESTION + 1];
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(write(fds[1], old, sizeof(old)), sizeof(old));
	assert_int_equal(sensor_ask(fds[0], 30, answer), -ETIMEDOUT);
	assert_int_equal(read(fds[1], question, sizeof(question)), SENSOR_QUESTION);
	assert_memory_equal(question, ((uint8_t[]){ 0, 1, 0x80, 0x33, 1, 0, 0, 0, 0 }), SENSOR_QUESTION);
	close(fds[1]);
	assert_true(sensor_ask(fds[0], 1000, answer) < 0);
	close(fds[0]);
}

/* ---- the node ---- */

enum mode { ANSWERS, SHORT, WRONG, SILENT };

struct thermometer {
	int fd;
	char link[256];
	pthread_t thread;
	atomic_int mode;
	atomic_uint asked;
	atomic_bool stop;
};

static void *be_thermometer(void *arg)
{
	struct thermometer *t = arg;
	uint8_t byte, answer[SENSOR_ANSWER] = { 0x80, 2, 0x17, 0x80, 0x19, 0x40 };
	unsigned got = 0;

	while (!atomic_load(&t->stop)) {
		int mode;

		if (read(t->fd, &byte, 1) != 1) {
			usleep(500);
			continue;
		}
		if (++got % SENSOR_QUESTION)
			continue;
		mode = atomic_load(&t->mode);
		answer[0] = mode == WRONG ? 0x81 : 0x80;
		if (mode != SILENT && write(t->fd, answer, mode == SHORT ? 5 : sizeof(answer)) < 0)
			break;
		atomic_fetch_add(&t->asked, 1);
	}
	return NULL;
}

static void open_thermometer(struct thermometer *t)
{
	struct termios raw;
	char name[64];

	*t = (struct thermometer){ .fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) };
	assert_true(t->fd >= 0);
	assert_int_equal(grantpt(t->fd), 0);
	assert_int_equal(unlockpt(t->fd), 0);
	assert_int_equal(ptsname_r(t->fd, name, sizeof(name)), 0);
	/* Its own name may soon be that of somebody else's terminal. */
	snprintf(t->link, sizeof(t->link), "%s", scratch("thermometer"));
	assert_int_equal(symlink(name, t->link), 0);
	assert_int_equal(tcgetattr(t->fd, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(t->fd, TCSANOW, &raw), 0);
	fcntl(t->fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(pthread_create(&t->thread, NULL, be_thermometer, t), 0);
}

static void close_thermometer(struct thermometer *t)
{
	atomic_store(&t->stop, true);
	pthread_join(t->thread, NULL);
	unlink(t->link);
	close(t->fd);
}

static void temperatures_are_read_and_steps_without_one_are_counted(void **state)
{
	struct thermometer t;
	struct made_node m;
	struct pool pool = { 0 };
	struct sample *s;
	char text[500];

	open_thermometer(&t);
	assert_int_equal(pool_init(&pool, 2, 4, &memory_heap), 0);
	s = sample_alloc(&pool);
	snprintf(text, sizeof(text),
		 "{\"device\": \"%s\", \"model\": \"temper2\", \"rate\": 10, \"calibration\": {\"scale\": 2, \"offset\": -1}}",
		 t.link);
	make_node(&m, &node_temper, text);
	m.node.figures = calloc(m.node.type->figure_count, sizeof(*m.node.figures));
	assert_int_equal(m.node.in.signals->count, 2);
	assert_string_equal(m.node.in.signals->signals[1].name, "temp_ext");
	assert_int_equal(m.node.type->start(&m.node), 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(node_read_one(&m, s), 1);
		assert_int_equal(s->length, 2);
		assert_true(s->data[0].f == 46 && s->data[1].f == 49.5);
		assert_int_equal(s->sequence, i);
	}
	for (int mode = SHORT; mode <= SILENT; mode++) {
		atomic_store(&t.mode, mode);
		assert_int_equal(node_read_one(&m, s), 0);
	}
	atomic_store(&t.mode, ANSWERS);
	assert_int_equal(node_read_one(&m, s), 1);
	assert_int_equal(s->sequence, 6);
	close_thermometer(&t);
	assert_int_equal(node_read_one(&m, s), 0);
	assert_int_equal(node_read_one(&m, s), 0);
	/* By the kinds of what went wrong: none, something else twice, not there twice. */
	assert_int_equal(m.node.figures[m.node.type->figure_count - 3], 1);
	assert_int_equal(m.node.figures[m.node.type->figure_count - 2], 2);
	assert_int_equal(m.node.figures[m.node.type->figure_count - 1], 2);
	assert_int_equal(m.node.type->stop(&m.node), 0);
	assert_true(m.node.type->start(&m.node) < 0);
	free((void *)m.node.figures);
	drop_node(&m);
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	clear_scratch();
}

static void settings_that_cannot_be_meant_are_refused(void **state)
{
	static const char *const rows[] = {
		"{\"bus\": -1}", "{\"port\": 256}", "{\"rate\": 11}", "{\"model\": \"temper9\"}",
		"{\"calibration\": 1}", "{\"calibration\": {\"gain\": 1}}", "{\"device\": \"/dev/hidraw0\"}",
		"{\"device\": \"\", \"model\": \"temper1\"}",
		"{\"device\": \"/dev/hidraw0\", \"model\": \"temper1\", \"bus\": 1}",
		"{\"in\": {\"signals\": [{\"name\": \"t\", \"type\": \"integer\"}]}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made_node m;

		if (try_node(&m, &node_temper, rows[i]) != -EINVAL)
			fail_msg("%s", rows[i]);
		drop_node(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_become_degrees_and_percent),
		cmocka_unit_test(the_device_that_is_meant_is_found),
		cmocka_unit_test(an_old_answer_is_not_taken_for_a_new_one),
		cmocka_unit_test(temperatures_are_read_and_steps_without_one_are_counted),
		cmocka_unit_test(settings_that_cannot_be_meant_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
