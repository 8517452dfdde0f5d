/* SPDX-License-Identifier: BSD-2-Clause */
/* See launch.h. The command is asked, as only it knows how to look into other processes. */
#define LOG_ROOM "bench/mpi"
#include "bench/mpi/launch.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "bench/kind/process.h"
#include "util/beside.h"
#include "util/clock.h"
#include "util/log.h"

#define LOOK_SECONDS 10

static const json_t *process_of(const json_t *devices, pid_t pid)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(devices, "processes"), i, p)
		if (json_number_value(json_object_get(p, "pid")) == pid)
			return p;
	return NULL;
}

/* "tx_send_messages" and "tx_send_imm_messages" of "tx_send". */
static bool is_message(const char *name, const char *operation)
{
	size_t n = strlen(name), tail = strlen("_messages");

	return !strncmp(name, operation, strlen(operation)) && n > tail &&
	       !strcmp(name + n - tail, "_messages");
}

static bool is_bytes(const char *name)
{
	size_t n = strlen(name), tail = strlen("_bytes");

	return !strncmp(name, "tx_", 3) && n > tail && !strcmp(name + n - tail, "_bytes");
}

int mpi_counters_sum(const json_t *devices, const pid_t *pids, size_t count,
		     struct mpi_counters *out)
{
	*out = (struct mpi_counters){ 0 };
	for (size_t i = 0; i < count; i++) {
		const json_t *p = process_of(devices, pids[i]);
		json_t *traffic = json_object_get(p, "traffic"), *value;
		const char *name;

		if (!p)
			return -ENOENT;
		if (!json_is_object(traffic))
			return -EBADMSG;
		json_object_foreach(traffic, name, value) {
			uint64_t n = (uint64_t)json_number_value(value);

			if (is_bytes(name))
				out->bytes += n;
			else if (is_message(name, "tx_send"))
				out->sends += n;
			else if (is_message(name, "tx_write") ||
				 is_message(name, "tx_atomic_write"))
				out->writes += n;
			else if (is_message(name, "tx_read"))
				out->reads += n;
			else if (is_message(name, "tx_compare_swap") ||
				 is_message(name, "tx_fetch_add"))
				out->atomics += n;
		}
	}
	return 0;
}

static int run_command(const char *file)
{
	char self[PATH_MAX];
	char *argv[] = { self, (char *)"devices", (char *)"--json", NULL };
	struct process p = { .argv = argv, .output = file, .errors = "/dev/null", .cpu = -1 };
	uint64_t until = clock_monotonic_ns_slow() + LOOK_SECONDS * NSEC_PER_SEC;
	int ret;

	beside_self(self);
	ret = process_start(&p);
	if (!ret)
		ret = process_await(&p, until, NULL);
	process_kill(&p);
	return ret ? ret : p.status ? -EIO : 0;
}

int mpi_counters_read(const char *file, const pid_t *pids, size_t count,
		      struct mpi_counters *out)
{
	int ret = run_command(file);
	/* A limit of an adapter may be larger than the integers of this library. */
	json_t *devices = ret ? NULL : json_load_file(file, JSON_DECODE_INT_AS_REAL, NULL);

	if (!ret)
		ret = devices ? mpi_counters_sum(devices, pids, count, out) : -EBADMSG;
	json_decref(devices);
	unlink(file);
	if (ret == -ENOENT)
		log_warn("a process of the program uses the adapter for nothing");
	else if (ret)
		log_warn("the adapter's counters cannot be read: %s", strerror(-ret));
	return ret;
}
