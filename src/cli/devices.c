/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar devices`: the RDMA devices that a verbs program sees here, and the processes
 * that use busbar's own. Devices are queried through the public verbs only, so real
 * adapters are shown in the same way.
 */
#include "cli/cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/devices.h"
#include "cli/processes.h"
#include "hca/host/settings.h"
#include "util/log.h"

#define INTERVAL_MIN_S 0.01
#define INTERVAL_MAX_S 1e6

struct devices_options {
	unsigned verbose;
	bool qps, json;
	double interval_s; /* 0: shows the devices once */
	unsigned count;    /* 0: until interrupted */
	unsigned fail_pid; /* 0: no device is to fail */
	const char *faults; /* NULL: none are asked for */
	char **names;
	int name_count;
};

static void print_help(FILE *out)
{
	fputs("usage: busbar devices [-v] [--qps] [--json] [DEVICE...]\n"
	      "       busbar devices --watch SECONDS [--count N] [--qps] [--json]\n"
	      "       busbar devices --fail PID [DEVICE]\n"
	      "       busbar devices --faults SPEC|off|show [--json] [PID|DEVICE...]\n"
	      "       busbar devices --settings\n"
	      "\n"
	      "Lists RDMA devices, their ports and addresses (GIDs).\n"
	      "\n"
	      "  -v, --verbose  limits and capabilities as well, and the processes of this\n"
	      "                 network namespace that use busbar's adapter\n"
	      "  -q, --qps      each of their queue pairs (also -vv)\n"
	      "  -j, --json     all of that as one JSON object\n"
	      "  -w, --watch S  what the processes do per second, every S seconds\n"
	      "  -n, --count N  end after N times\n"
	      "      --fail PID the software adapter of that process fails, for its program\n"
	      "                 to see: to test what it does then\n"
	      "      --faults F lets messages of running processes be lost or late, as\n"
	      "                 BUSBAR_FAULTS does from the start (loss=1%,delay=1ms), or no\n"
	      "                 more (off); or shows what is set, and which events at packet\n"
	      "                 numbers (events=FILE) took place\n"
	      "      --settings the software adapter's settings: environment\n"
	      "                 variables, defaults and meaning\n"
	      "  -h, --help     this text\n",
	      out);
}

static void print_library(void)
{
	Dl_info info;

	if (dladdr((void *)(uintptr_t)ibv_get_device_list, &info) &&
	    info.dli_fname)
		printf("library  %s\n", info.dli_fname);
}

static int show_device(struct cli_json *j, struct ibv_device *dev,
		       const struct devices_options *o)
{
	return o->json ? device_json(j, dev) : device_print(dev, o->verbose);
}

/* Shows all devices, or those named; returns how many failed. */
static int show_devices(struct cli_json *j, struct ibv_device **list,
			const struct devices_options *o)
{
	int failed = 0;

	if (o->name_count == 0) {
		for (; *list; list++)
			failed += show_device(j, *list, o) != 0;
		return failed;
	}
	for (int i = 0; i < o->name_count; i++) {
		struct ibv_device **d = list;

		while (*d && strcmp(ibv_get_device_name(*d), o->names[i]))
			d++;
		if (*d) {
			failed += show_device(j, *d, o) != 0;
		} else {
			log_error("no device '%s', 'busbar devices' lists all",
				  o->names[i]);
			failed++;
		}
	}
	return failed;
}

/* Are the processes to be shown that use busbar's adapter? */
static bool wants_processes(const struct devices_options *o)
{
	bool named = o->name_count == 0;

	for (int i = 0; i < o->name_count; i++)
		named |= !strncmp(o->names[i], "soft", 4);
	return named && (o->verbose || o->qps || o->json);
}

static int show_processes(struct cli_json *j, const struct devices_options *o)
{
	struct processes p;
	struct hca_view *v;
	int ret = processes_open(&p);

	if (ret)
	return ret == -ENOSYS ? 0 : ret; /* not busbar's libibverbs: no processes */
	ret = p.look(p.inspector, &v);
	if (!ret) {
		if (o->json)
			processes_json(j, v, NULL, 0, o->qps);
		else
			processes_print(v, o->qps, stdout);
		p.view_free(v);
	}
	processes_close(&p);
	return ret;
}

static int watch(const struct devices_options *o)
{
	struct processes p;
	int ret = processes_open(&p);

	if (ret)
		return CLI_FAILED;
	ret = processes_watch(&p, o->interval_s, o->count, o->qps, o->json,
			      stdout);
	processes_close(&p);
	return ret ? CLI_FAILED : CLI_OK;
}

static int show(const struct devices_options *o)
{
	struct cli_json j = { .out = stdout };
	int count, failed;
	struct ibv_device **list = ibv_get_device_list(&count);

	if (!list) {
		log_error("the devices cannot be listed: %s", strerror(errno));
		return CLI_FAILED;
	}
	if (o->json) {
		cli_json_open(&j, NULL, '{');
		cli_json_open(&j, "devices", '[');
	} else if (o->verbose) {
		print_library();
	}
	if (count == 0)
		log_error("there is no RDMA device; busbar's own adapter (soft0) should be here, see 'busbar version'");
	failed = show_devices(&j, list, o);
	ibv_free_device_list(list);
	if (o->json)
		cli_json_close(&j, ']');
	if (wants_processes(o))
		failed += show_processes(&j, o) != 0;
	if (o->json) {
		cli_json_close(&j, '}');
		printf("\n");
	}
	return failed || count == 0 ? CLI_FAILED : CLI_OK;
}

static bool parse_interval(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	if (end != text && !*end && isfinite(*seconds) &&
	    *seconds >= INTERVAL_MIN_S && *seconds <= INTERVAL_MAX_S)
		return true;
	log_error("--watch '%s' is not usable, expected seconds between %g and %g",
		  text, INTERVAL_MIN_S, INTERVAL_MAX_S);
	return false;
}

static bool parse_number(const char *option, const char *text, unsigned max,
			 unsigned *number)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text >= '0' && *text <= '9' && !*end && n > 0 && n <= max) {
		*number = (unsigned)n;
		return true;
	}
	log_error("--%s '%s' is not usable, expected a positive number", option,
		  text);
	return false;
}

/* Do the options go together? Logs if not. */
static bool options_agree(const struct devices_options *o)
{
	bool shows = o->verbose || o->qps || o->json || o->interval_s > 0;

	if (o->interval_s > 0 && o->name_count) {
		log_error("--watch shows processes and takes no device");
		return false;
	}
	if (o->count && o->interval_s <= 0) {
		log_error("--count goes with --watch only");
		return false;
	}
	if (o->fail_pid && (shows || o->name_count > 1)) {
		log_error("--fail shows nothing and takes one device at most");
		return false;
	}
	if (o->faults && (o->verbose || o->qps || o->interval_s > 0 || o->fail_pid)) {
		log_error("--faults goes with no other option but --json");
		return false;
	}
	return true;
}

static int fail(const struct devices_options *o)
{
	return processes_fail(o->fail_pid, o->name_count ? o->names[0] : NULL) ?
		       CLI_FAILED : CLI_OK;
}

int cli_devices(int argc, char **argv)
{
	static const struct option options[] = {
		{ "verbose", no_argument, NULL, 'v' },
		{ "qps", no_argument, NULL, 'q' },
		{ "json", no_argument, NULL, 'j' },
		{ "watch", required_argument, NULL, 'w' },
		{ "count", required_argument, NULL, 'n' },
		{ "fail", required_argument, NULL, 'f' },
		{ "faults", required_argument, NULL, 'F' },
		{ "settings", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct devices_options o = { 0 };
	int opt;

	while ((opt = getopt_long(argc, argv, "vqjw:n:h", options, NULL)) != -1) {
		switch (opt) {
		case 'v': o.verbose++; break;
		case 'q': o.qps = true; break;
		case 'j': o.json = true; break;
		case 'w':
			if (!parse_interval(optarg, &o.interval_s))
				return CLI_USAGE;
			break;
		case 'n':
			if (!parse_number("count", optarg, UINT32_MAX, &o.count))
				return CLI_USAGE;
			break;
		case 'f':
			if (!parse_number("fail", optarg, INT32_MAX, &o.fail_pid))
				return CLI_USAGE;
			break;
		case 'F': o.faults = optarg; break;
		case 's':
			settings_print(hca_setting_table, hca_setting_count,
				       stdout);
			return CLI_OK;
		case 'h':
			print_help(stdout);
			return CLI_OK;
		default:
			return CLI_USAGE;
		}
	}
	o.qps |= o.verbose > 1;
	o.names = argv + optind;
	o.name_count = argc - optind;
	if (!options_agree(&o))
		return CLI_USAGE;
	if (o.fail_pid)
		return fail(&o);
	if (o.faults)
		return devices_faults(o.faults, o.names, o.name_count, o.json) ? CLI_FAILED :
										  CLI_OK;
	return o.interval_s > 0 ? watch(&o) : show(&o);
}
