/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process does on the software adapter, for the metrics of a gateway that runs
 * in it. A part of the module of `busbar devices`, which reads the same of all processes.
 */
#include <dlfcn.h>
#include <jansson.h>
#include <unistd.h>

#include "cli/devices.h"
#include "cli/processes.h"

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
