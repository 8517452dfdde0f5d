/* SPDX-License-Identifier: BSD-2-Clause */
/* The processors' part of machine.json. */
#include "bench/result/machine.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CPU_DIR "/sys/devices/system/cpu"

/* The value of the first line "NAME : value" of /proc/cpuinfo, or null. */
static json_t *cpuinfo(const char *name)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	json_t *found = NULL;
	char line[4096];

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (!colon || strncmp(line, name, strlen(name)) ||
		    strchr("\t :", line[strlen(name)]) == NULL)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		found = json_string(colon);
	}
	if (f)
		fclose(f);
	return found ? found : json_null();
}

/* "0-2,5": the CPUs that this process may use. */
static json_t *allowed(void)
{
	char text[8 * CPU_SETSIZE], *at = text;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return json_null();
	*at = '\0';
	for (int i = 0, last; i < CPU_SETSIZE; i = last + 1) {
		last = i;
		if (!CPU_ISSET(i, &set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
			last++;
		at += sprintf(at, "%s%d", at == text ? "" : ",", i);
		if (last > i)
			at += sprintf(at, "-%d", last);
	}
	return json_string(text);
}

/* One name per configured CPU; "none" where the kernel does not set the frequency. */
static json_t *governors(void)
{
	long count = sysconf(_SC_NPROCESSORS_CONF);
	json_t *list = json_array();
	bool any = false;

	for (long i = 0; i < count; i++) {
		char path[100];
		json_t *one;

		snprintf(path, sizeof(path), CPU_DIR "/cpu%ld/cpufreq/scaling_governor", i);
		one = machine_file(path);
		any |= json_is_string(one);
		json_array_append_new(list, one);
	}
	if (any)
		return list;
	json_decref(list);
	return json_string("none");
}

/* "32K" of the kernel in KiB. */
static json_t *cache_kib(const char *dir)
{
	char path[120];
	json_t *size, *kib;
	long n;

	snprintf(path, sizeof(path), "%s/size", dir);
	size = machine_file(path);
	n = json_is_string(size) ? atol(json_string_value(size)) : 0;
	kib = n > 0 ? json_integer(n) : json_null();
	json_decref(size);
	return kib;
}

static json_t *caches(void)
{
	json_t *all = json_object();

	for (int i = 0; i < 8; i++) {
		char dir[80], path[120], name[40];
		json_t *level, *type;

		snprintf(dir, sizeof(dir), CPU_DIR "/cpu0/cache/index%d", i);
		snprintf(path, sizeof(path), "%s/level", dir);
		level = machine_file(path);
		snprintf(path, sizeof(path), "%s/type", dir);
		type = machine_file(path);
		if (json_is_string(level) && json_is_string(type)) {
			char kind = *json_string_value(type);

			snprintf(name, sizeof(name), "L%.8s%s", json_string_value(level),
				 kind == 'D' ? "d" : kind == 'I' ? "i" : "");
			json_object_set_new(all, name, cache_kib(dir));
		}
		json_decref(level);
		json_decref(type);
	}
	return all;
}

json_t *machine_cpu(void)
{
	json_t *model = cpuinfo("model name");
	long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);

	if (json_is_null(model)) {
		json_decref(model);
		model = cpuinfo("Processor"); /* ARM */
	}
	return json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "model", model,
			 "online", (int)sysconf(_SC_NPROCESSORS_ONLN),
			 "allowed", allowed(),
			 "caches_kib", caches(),
			 "cache_line_bytes", line > 0 ? json_integer(line) : json_null(),
			 "smt", machine_file(CPU_DIR "/smt/control"),
			 "microcode", cpuinfo("microcode"),
			 "governor", governors());
}

#if defined(__x86_64__)
json_t *machine_invariant_tsc(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(0x80000007, &a, &b, &c, &d))
		return json_false();
	return json_boolean(d & (1u << 8));
}

json_t *machine_hypervisor(void)
{
	unsigned a, b, c, d, name[3];
	char text[sizeof(name) + 1] = "";

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 31)))
		return json_null();
	__cpuid(0x40000000, a, name[0], name[1], name[2]);
	memcpy(text, name, sizeof(name));
	for (char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return json_string(*text ? text : "unnamed");
}
#else
json_t *machine_invariant_tsc(void)
{
	return json_null();
}

json_t *machine_hypervisor(void)
{
	return machine_file("/sys/hypervisor/type");
}
#endif
