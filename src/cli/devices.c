/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar devices`: the RDMA devices that a verbs program sees here, and the processes that use
 * busbar's own. Devices are queried through the public verbs only, so real adapters are shown in
 * the same way. And what a gateway that runs in this process does on the software adapter, for its
 * metrics.
 */
#include "cli/devices.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/processes.h"
#include "hca/host/settings.h"
#include "util/log.h"
#include "util/options.h"

static json_t *counters(const char *const *names, const uint64_t *values, size_t count)
{
	json_t *o = json_object();

	for (size_t i = 0; i < count; i++)
		if (names[i])
			json_object_set_new(o, names[i],
					    json_integer((json_int_t)values[i]));
	return o;
}

static json_t *figures(const struct hca_view *v, const struct hca_process_view *p)
{
	json_t *o = counters(v->qp_counter_names, p->totals, HCA_QP_COUNTERS);
	json_t *own = counters(v->process_counter_names, p->counters, HCA_PROCESS_COUNTERS);

	json_object_update_missing(o, own);
	json_decref(own);
	return json_pack("{s{sI sI so}}", "soft", "queue_pairs", (json_int_t)p->qp_count,
			 "links", (json_int_t)p->link_count, "counters", o);
}

json_t *cli_devices_figures(void)
{
	struct processes p;
	struct hca_view *v;
	json_t *o = NULL;

	/* Another libibverbs, with a real adapter: nothing that could be told. */
	if (!dlvsym(RTLD_DEFAULT, "busbar_inspector_open", "BUSBAR_1") ||
	    processes_open(&p))
		return NULL;
	if (!p.look(p.inspector, &v)) {
		for (size_t i = 0; i < v->process_count && !o; i++)
			if (v->processes[i].pid == (uint32_t)getpid() &&
			    !v->processes[i].problem[0])
				o = figures(v, &v->processes[i]);
		p.view_free(v);
	}
	processes_close(&p);
	return o;
}

struct devices_options {
	unsigned verbose;
	bool qps, json;
	uint64_t interval_ns; /* 0: shows the devices once */
	unsigned count;    /* 0: until interrupted */
	unsigned fail_pid; /* 0: no device is to fail */
	const char *faults; /* NULL: none are asked for */
	char **names;
	int name_count;
};

static int print_settings(const struct option_given *g)
{
	settings_print(hca_setting_table, hca_setting_count, stdout);
	return OPTIONS_END;
}

static const struct option_entry table[] = {
	{ "-v, --verbose: limits and capabilities as well, and the processes of this network namespace that use "
			   "busbar's adapter", OPTION_FLAG(struct devices_options, verbose) },
	{ "-q, --qps: each of their queue pairs (also -vv)", OPTION_FLAG(struct devices_options, qps) },
	{ "-j, --json: all of that as one JSON object", OPTION_FLAG(struct devices_options, json) },
	{ "-w, --watch S: what the processes do per second, every S seconds",
	  OPTION_SECONDS(struct devices_options, interval_ns, 0.01, 1e6) },
	{ "-n, --count N: end after N times", OPTION_WHOLE(struct devices_options, count, 1, UINT32_MAX) },
	{ "--fail PID: the software adapter of that process fails, for its program to see: to test what it does "
			"then", OPTION_WHOLE(struct devices_options, fail_pid, 1, INT32_MAX) },
	{ "--faults SPEC: lets messages of running processes be lost or late, as BUSBAR_FAULTS does from the start "
			   "(loss=1%,delay=1ms), or no more (off); or shows what is set, and which events at packet "
			   "numbers (events=FILE) took place (show)", OPTION_TEXT(struct devices_options, faults) },
	{ "--settings: the software adapter's settings: environment variables, defaults and meaning",
	  OPTION_CALL(print_settings, NULL) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar devices",
	.synopsis = "[-v] [--qps] [--json] [DEVICE...]\n"
		    "--watch SECONDS [--count N] [--qps] [--json]\n"
		    "--fail PID [DEVICE]\n"
		    "--faults SPEC|off|show [--json] [PID|DEVICE...]\n"
		    "--settings",
	.about = "Lists RDMA devices, their ports and addresses (GIDs).\n",
	.table = table,
	.any_operands = true,
};

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
	return device_show(o->json ? j : NULL, dev, o->verbose);
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
	ret = processes_watch(&p, (double)o->interval_ns / 1e9, o->count, o->qps, o->json,
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
	if (o->json)
		cli_json_open_list(&j, "devices");
	else if (o->verbose)
		print_library();
	if (count == 0)
		log_error("there is no RDMA device; busbar's own adapter (soft0) should be here, see 'busbar version'");
	failed = show_devices(&j, list, o);
	ibv_free_device_list(list);
	if (o->json)
		cli_json_close(&j, ']');
	if (wants_processes(o))
		failed += show_processes(&j, o) != 0;
	if (o->json)
		cli_json_close(&j, '}');
	return failed || count == 0 ? CLI_FAILED : CLI_OK;
}

/* Why the options do not go together; NULL: they do. */
static const char *disagreement(const struct devices_options *o)
{
	bool shows = o->verbose || o->qps || o->json || o->interval_ns;

	if (o->interval_ns && o->name_count)
		return "--watch shows processes and takes no device";
	if (o->count && !o->interval_ns)
		return "--count goes with --watch only";
	if (o->fail_pid && (shows || o->name_count > 1))
		return "--fail shows nothing and takes one device at most";
	if (o->faults && (o->verbose || o->qps || o->interval_ns || o->fail_pid))
		return "--faults goes with no other option but --json";
	return NULL;
}

static int fail(const struct devices_options *o)
{
	return processes_fail(o->fail_pid, o->name_count ? o->names[0] : NULL) ?
		       CLI_FAILED : CLI_OK;
}

int cli_devices(int argc, char **argv)
{
	struct devices_options o = { 0 };
	int status = options_parse(&options, argc, argv, &o, NULL);
	const char *why;

	if (status >= 0)
		return status;
	o.qps |= o.verbose > 1;
	o.names = argv + optind;
	o.name_count = argc - optind;
	why = disagreement(&o);
	if (why) {
		log_error("%s", why);
		return CLI_USAGE;
	}
	if (o.fail_pid)
		return fail(&o);
	if (o.faults)
		return devices_faults(o.faults, o.names, o.name_count, o.json) ? CLI_FAILED :
										  CLI_OK;
	return o.interval_ns ? watch(&o) : show(&o);
}
