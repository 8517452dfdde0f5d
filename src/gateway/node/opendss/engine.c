/* SPDX-License-Identifier: BSD-2-Clause */
/* See engine.h. */
#define LOG_ROOM "gateway/opendss"
#include "gateway/node/opendss/engine.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/container_of.h"

/* In front of the records of a monitor: four numbers and a text. */
#define MONITOR_HEADER (4 * sizeof(int32_t) + 256)

const char *const engine_class_names[] = { "load", "generator", "isource", NULL };
const char *const engine_property_names[] = { "kV", "kW", "kVar", "Pf", "Amps", "AngleDeg",
					      "Frequency", NULL };

/* Functions of the library that are used, by their types. */
struct calls {
	uint16_t (*start)(int32_t code), (*converged)(void);
	void (*allow_forms)(uint16_t on);
	void (*command)(const char *text);
	int32_t (*error_number)(void), (*channels)(void), (*records)(void);
	const char *(*error_text)(void);
	void (*solve)(void), (*sample_all)(void), (*save_all)(void), (*reset_all)(void);
	void (*monitor)(const char *name);
	void (*bytes)(int8_t **data, int32_t size[4]);
	void (*dispose)(int8_t **data);
	void (*select[ENGINE_CLASSES])(const char *name);
	void (*set[ENGINE_CLASSES][ENGINE_PROPERTIES])(double value);
};

#define CALL(field, name) { name, offsetof(struct calls, field) }
#define SET(class, property, name) CALL(set[class][property], name)

static const struct {
	const char *name;
	size_t offset;
} rows[] = {
	CALL(start, "DSS_Start"),
	CALL(allow_forms, "DSS_Set_AllowForms"),
	CALL(command, "Text_Set_Command"),
	CALL(error_number, "Error_Get_Number"),
	CALL(error_text, "Error_Get_Description"),
	CALL(solve, "Solution_Solve"),
	CALL(converged, "Solution_Get_Converged"),
	CALL(monitor, "Monitors_Set_Name"),
	CALL(channels, "Monitors_Get_NumChannels"),
	CALL(records, "Monitors_Get_SampleCount"),
	CALL(bytes, "Monitors_Get_ByteStream"),
	CALL(sample_all, "Monitors_SampleAll"),
	CALL(save_all, "Monitors_SaveAll"),
	CALL(reset_all, "Monitors_ResetAll"),
	CALL(dispose, "DSS_Dispose_PByte"),
	CALL(select[ENGINE_LOAD], "Loads_Set_Name"),
	CALL(select[ENGINE_GENERATOR], "Generators_Set_Name"),
	CALL(select[ENGINE_ISOURCE], "ISources_Set_Name"),
	SET(ENGINE_LOAD, ENGINE_KV, "Loads_Set_kV"),
	SET(ENGINE_LOAD, ENGINE_KW, "Loads_Set_kW"),
	SET(ENGINE_LOAD, ENGINE_KVAR, "Loads_Set_kvar"),
	SET(ENGINE_LOAD, ENGINE_PF, "Loads_Set_PF"),
	SET(ENGINE_GENERATOR, ENGINE_KV, "Generators_Set_kV"),
	SET(ENGINE_GENERATOR, ENGINE_KW, "Generators_Set_kW"),
	SET(ENGINE_GENERATOR, ENGINE_KVAR, "Generators_Set_kvar"),
	SET(ENGINE_GENERATOR, ENGINE_PF, "Generators_Set_PF"),
	SET(ENGINE_ISOURCE, ENGINE_AMPS, "ISources_Set_Amps"),
	SET(ENGINE_ISOURCE, ENGINE_ANGLE, "ISources_Set_AngleDeg"),
	SET(ENGINE_ISOURCE, ENGINE_FREQUENCY, "ISources_Set_Frequency"),
};

static struct {
	pthread_mutex_t lock;
	char user[80];          /* the node that has the engine; "": none */
	struct calls calls;
	void (*allow_folders)(uint16_t on); /* NULL in older versions of the library */
} engine = { .lock = PTHREAD_MUTEX_INITIALIZER };

__attribute__((format(printf, 3, 4)))
static int fail(int error, char why[ENGINE_WHY], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, ENGINE_WHY, fmt, ap);
	va_end(ap);
	return error;
}

/* Takes the library's error of its last call, and resets it to 0. */
static int judge(char why[ENGINE_WHY])
{
	int32_t number = engine.calls.error_number();
	const char *text;

	if (!number)
		return 0;
	text = engine.calls.error_text();
	return fail(-EINVAL, why, "error %d of OpenDSS: %s", (int)number, text ? text : "");
}

/* The library is never unloaded: its run-time system cannot be. */
static int load(const char *library, char why[ENGINE_WHY])
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	struct calls calls = { 0 };
	void *symbol;

	if (!handle)
		return fail(-ELIBACC, why, "there is no library of OpenDSS: %s", dlerror());
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		symbol = dlsym(handle, rows[i].name);
		if (!symbol) {
			dlclose(handle);
			return fail(-ELIBACC, why, "%s has no %s; it has to be DSS C-API, version 0.11 or newer",
				    library, rows[i].name);
		}
		memcpy((char *)&calls + rows[i].offset, &symbol, sizeof(symbol));
	}
	engine.calls = calls;
	/* Only newer versions of the library have this function. */
	symbol = dlsym(handle, "DSS_Set_AllowChangeDir");
	memcpy(&engine.allow_folders, &symbol, sizeof(symbol));
	return 0;
}

/* Older versions change the working folder to that of the file: this changes it back. */
static int compile(const char *file, char why[ENGINE_WHY])
{
	int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), ret;
	char command[4200];

	snprintf(command, sizeof(command), "compile \"%s\"", file);
	engine.calls.command(command);
	ret = judge(why);
	if (folder >= 0) {
		if (fchdir(folder) && !ret)
			ret = fail(-errno, why, "the folder of the gateway is gone");
		close(folder);
	}
	return ret;
}

int engine_open(const char *user, const char *library, const char *file, char why[ENGINE_WHY])
{
	int ret = 0;

	pthread_mutex_lock(&engine.lock);
	if (*engine.user)
		ret = fail(-EBUSY, why, "a process has one circuit of OpenDSS, and node '%s' has it",
			   engine.user);
	else
		ret = load(library, why);
	if (!ret && !engine.calls.start(0))
		ret = fail(-EIO, why, "OpenDSS does not start");
	if (!ret) {
		engine.calls.allow_forms(0);
		if (engine.allow_folders)
			engine.allow_folders(0);
		ret = compile(file, why);
	}
	if (!ret)
		snprintf(engine.user, sizeof(engine.user), "%s", user);
	pthread_mutex_unlock(&engine.lock);
	return ret;
}

void engine_close(void)
{
	pthread_mutex_lock(&engine.lock);
	engine.calls.command("clear");
	engine.user[0] = '\0';
	pthread_mutex_unlock(&engine.lock);
}

int engine_select(enum engine_class c, const char *name, char why[ENGINE_WHY])
{
	engine.calls.select[c](name);
	return judge(why);
}

int engine_set(enum engine_class c, enum engine_property p, double value, char why[ENGINE_WHY])
{
	engine.calls.set[c][p](value);
	return judge(why);
}

int engine_solve(char why[ENGINE_WHY])
{
	int ret;

	engine.calls.solve();
	ret = judge(why);
	if (ret)
		return ret;
	return engine.calls.converged() ? 0 : fail(-EDOM, why, "the solution does not converge");
}

int engine_monitor_channels(const char *name, char why[ENGINE_WHY])
{
	int ret;

	engine.calls.monitor(name);
	ret = judge(why);
	return ret ?: engine.calls.channels();
}

static int take_record(const int8_t *data, size_t size, unsigned channels, double record[],
		       char why[ENGINE_WHY])
{
	size_t bytes = (channels + 2) * sizeof(float);
	float value;

	if (!data || size < MONITOR_HEADER + bytes)
		return fail(-EBADMSG, why, "its record is cut short");
	for (unsigned i = 0; i < channels + 2; i++) {
		memcpy(&value, data + size - bytes + i * sizeof(value), sizeof(value));
		record[i] = (double)value;
	}
	return 0;
}

int engine_monitor_read(const char *name, unsigned channels, double record[], char why[ENGINE_WHY])
{
	int32_t size[4] = { 0 };
	int8_t *data = NULL;
	int ret;

	engine.calls.monitor(name);
	ret = judge(why);
	if (ret)
		return ret;
	if (engine.calls.channels() != (int)channels)
		return fail(-EBADMSG, why, "it has %d channels, and had %u", (int)engine.calls.channels(),
			    channels);
	if (engine.calls.records() < 1) {
		/* In some modes, such as snapshot, the library does not record by itself. */
		engine.calls.sample_all();
		engine.calls.save_all();
		engine.calls.monitor(name);
	}
	if (engine.calls.records() < 1)
		return fail(-ENODATA, why, "it has no record");
	engine.calls.bytes(&data, size);
	ret = judge(why);
	if (!ret)
		ret = take_record(data, (size_t)MAX(size[0], 0), channels, record, why);
	if (data)
		engine.calls.dispose(&data);
	return ret;
}

void engine_monitors_reset(void)
{
	engine.calls.reset_all();
}
