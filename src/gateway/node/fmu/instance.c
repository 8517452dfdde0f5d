/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code of an FMU: loading it, and calls in the order that FMI 2.0 (section 4.2.4) and FMI 3.0
 * (section 4.2.1) ask for. Each FMU is loaded from a folder of its own, so that two nodes never
 * share its variables, and a node that is started again begins with fresh ones.
 */
#define LOG_ROOM "gateway/fmu"
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/node/fmu/fmu.h"
#include "gateway/part/fault.h"
#include "util/container_of.h"
#include "util/log.h"

/* Calls for one step, if the model ends each one early. */
#define PARTS_MAX 1000
#define MESSAGE_MAX 500

/* The FMU finds its own functions before those of busbar that have the same name. The sanitizers
 * cannot do that. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_NAMES_FIRST 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_NAMES_FIRST 0
#endif
#endif
#ifndef OWN_NAMES_FIRST
#define OWN_NAMES_FIRST RTLD_DEEPBIND
#endif

struct fmu_functions {
	void *get[FMU_TYPES], *set[FMU_TYPES]; /* fmi2_get or fmi3_get, ... */
	fmi_get_version *get_version;
	fmi_free_instance *free_instance;
	fmi_step_over *exit_initialization, *terminate;
	fmi2_instantiate *instantiate2;
	fmi2_setup_experiment *setup_experiment;
	fmi_step_over *enter_initialization2;
	fmi2_do_step *do_step2;
	fmi2_get_real_status *get_real_status;       /* may be NULL */
	fmi2_get_boolean_status *get_boolean_status; /* may be NULL */
	fmi3_instantiate *instantiate3;
	fmi3_enter_initialization *enter_initialization3;
	fmi3_do_step *do_step3;
	bool simulates; /* initialisation is over */
	struct fmi2_callbacks callbacks;
	_Atomic(struct fmu_instance *) owner; /* NULL: the node is gone, after a fatal error */
};

/* ---- callbacks ---- */

static void log_message(struct fmu_functions *f, enum fmi_status status, const char *from,
			char *message)
{
	const struct fmu_instance *i = f ? atomic_load(&f->owner) : NULL;
	char category[60];

	if (!i || (i->faults && !fault_may_log(i->faults)))
		return;
	snprintf(category, sizeof(category), "%s", from ? from : "");
	fmu_make_plain(category);
	fmu_make_plain(message);
	if (status == FMI_OK)
		log_debug("node %s: the FMU says (%s): %s", i->name, category, message);
	else if (status == FMI_WARNING)
		log_warn("node %s: the FMU warns (%s): %s", i->name, category, message);
	else
		log_error("node %s: the FMU reports an error (%s): %s", i->name, category, message);
}

__attribute__((format(printf, 5, 6))) static void on_log2(void *environment, const char *instance,
							   enum fmi_status status,
							   const char *category,
							   const char *message, ...)
{
	char text[MESSAGE_MAX];
	va_list args;

	va_start(args, message);
	vsnprintf(text, sizeof(text), message ? message : "?", args);
	va_end(args);
	log_message(environment, status, category, text);
}

static void on_log3(void *environment, enum fmi_status status, const char *category,
		    const char *message)
{
	char text[MESSAGE_MAX];

	snprintf(text, sizeof(text), "%s", message ? message : "");
	log_message(environment, status, category, text);
}

static void *on_allocate(size_t count, size_t size)
{
	return calloc(count, size);
}

static void on_free(void *memory)
{
	free(memory);
}

static void on_step_finished(void *environment, enum fmi_status status)
{
}

static void on_update(void *environment, double time, bool set_requested, bool get_allowed,
		      bool step_finished, bool can_return_early, bool *return_early,
		      double *return_time)
{
	if (return_early)
		*return_early = false;
	if (return_time)
		*return_time = time;
}

/* ---- loading ---- */

static void *find(struct fmu_instance *i, const char *name, bool required, struct fmu_why *why,
		  int *ret)
{
	char symbol[80];
	void *found;

	snprintf(symbol, sizeof(symbol), "fmi%u%s", i->about->version, name);
	found = dlsym(i->library, symbol);
	if (!found && required && !*ret)
		*ret = fmu_why(why, -ENOSYS, "its binary has no function %s", symbol);
	return found;
}

static int find_functions2(struct fmu_instance *i, struct fmu_why *why)
{
	struct fmu_functions *f = i->functions;
	int ret = 0;

	f->instantiate2 = find(i, "Instantiate", true, why, &ret);
	f->setup_experiment = find(i, "SetupExperiment", true, why, &ret);
	f->enter_initialization2 = find(i, "EnterInitializationMode", true, why, &ret);
	f->do_step2 = find(i, "DoStep", true, why, &ret);
	f->get_real_status = find(i, "GetRealStatus", false, why, &ret);
	f->get_boolean_status = find(i, "GetBooleanStatus", false, why, &ret);
	return ret;
}

static int find_functions3(struct fmu_instance *i, struct fmu_why *why)
{
	struct fmu_functions *f = i->functions;
	int ret = 0;

	f->instantiate3 = find(i, "InstantiateCoSimulation", true, why, &ret);
	f->enter_initialization3 = find(i, "EnterInitializationMode", true, why, &ret);
	f->do_step3 = find(i, "DoStep", true, why, &ret);
	return ret;
}

static int find_functions(struct fmu_instance *i, struct fmu_why *why)
{
	struct fmu_functions *f = i->functions;
	const char *version;
	char name[40];
	int ret = 0;

	f->get_version = find(i, "GetVersion", true, why, &ret);
	f->free_instance = find(i, "FreeInstance", true, why, &ret);
	f->exit_initialization = find(i, "ExitInitializationMode", true, why, &ret);
	f->terminate = find(i, "Terminate", true, why, &ret);
	for (unsigned t = 0; t < FMU_TYPES; t++) {
		snprintf(name, sizeof(name), "Get%s",
			 fmu_type_name(i->about->version, (enum fmu_type)t));
		f->get[t] = find(i, name, false, why, &ret);
		name[0] = 'S';
		f->set[t] = find(i, name, false, why, &ret);
	}
	if (!ret)
		ret = i->about->version == 2 ? find_functions2(i, why) : find_functions3(i, why);
	if (ret)
		return ret;
	version = f->get_version();
	if (!version || version[0] != (char)('0' + i->about->version))
		return fmu_why(why, -EINVAL,
			       "its binary is of FMI %.20s, modelDescription.xml of FMI %u",
			       version ? version : "?", i->about->version);
	return 0;
}

/* Where the resources are: a URI in FMI 2.0, a folder in FMI 3.0. */
static void set_resources(struct fmu_instance *i, const char *folder)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz-._~/"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t at;

	if (i->about->version == 3) {
		snprintf(i->resources, sizeof(i->resources), "%s/resources/", folder);
		if (access(i->resources, F_OK))
			i->resources[0] = '\0';
		return;
	}
	at = (size_t)snprintf(i->resources, sizeof(i->resources), "file://");
	for (; *folder && at + 20 < sizeof(i->resources); folder++)
		at += (size_t)snprintf(i->resources + at, 4,
				       strchr(plain, *folder) ? "%c" : "%%%02X",
				       (unsigned char)*folder);
	snprintf(i->resources + at, sizeof(i->resources) - at, "/resources");
}

int fmu_instance_load(struct fmu_instance *i, const char *folder, struct fmu_why *why)
{
	const char *platform = fmu_platforms[i->about->version - 2];
	char path[4200];

	if (!platform)
		return fmu_why(why, -ENOTSUP, "FMI has no name for machines like this one");
	snprintf(path, sizeof(path), "%s/binaries/%s/%s.so", folder, platform,
		 i->about->identifier);
	if (access(path, F_OK))
		return fmu_why(why, -ENOENT,
			       "has no binary for this machine (binaries/%s/%.200s.so)", platform,
			       i->about->identifier);
	i->functions = calloc(1, sizeof(*i->functions));
	if (!i->functions)
		return fmu_why(why, -ENOMEM, "no memory");
	i->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | OWN_NAMES_FIRST);
	if (!i->library)
		return fmu_why(why, -ELIBACC, "its binary cannot be loaded: %s", dlerror());
	set_resources(i, folder);
	return find_functions(i, why);
}

int fmu_instance_check(struct fmu_instance *i, const struct fmu_group groups[], unsigned count,
		       bool sets, struct fmu_why *why)
{
	for (unsigned k = 0; k < count; k++) {
		enum fmu_type t = groups[k].type;

		if (!(sets ? i->functions->set[t] : i->functions->get[t]))
			return fmu_why(why, -ENOSYS, "its binary has no function fmi%u%s%s",
				       i->about->version, sets ? "Set" : "Get",
				       fmu_type_name(i->about->version, t));
	}
	return 0;
}

/* ---- calls ---- */

/* Judges a status: 0, or a negative errno with *why; -EAGAIN: the model can go on. */
static int judge(struct fmu_instance *i, enum fmi_status status, const char *function,
		 struct fmu_why *why)
{
	unsigned version = i->about->version;

	switch (status) {
	case FMI_OK:
		return 0;
	case FMI_WARNING:
		atomic_fetch_add_explicit(&i->warnings, 1, memory_order_relaxed);
		return 0;
	case FMI_DISCARD:
		return fmu_why(why, -EAGAIN, "fmi%u%s: the model discards the call", version,
			       function);
	case FMI_ERROR:
		i->state = FMU_BROKEN;
		return fmu_why(why, -EIO, "fmi%u%s: the model reports an error", version, function);
	case FMI_PENDING:
		i->state = FMU_BROKEN;
		return fmu_why(why, -EPROTO,
			       "fmi%u%s: the model goes on in the background, which was not asked for",
			       version, function);
	case FMI_FATAL:
		break;
	}
	i->state = FMU_DEAD;
	return fmu_why(why, -EIO, "fmi%u%s: the model reports a fatal error", version, function);
}

static int set_values(struct fmu_instance *i, enum fmu_type type, const fmi_reference *refs,
		      unsigned count, const void *values, struct fmu_why *why)
{
	void *set = i->functions->set[type];
	enum fmi_status status;
	char name[40];

	if (unlikely(!set))
		return fmu_why(why, -ENOSYS, "its binary has no function fmi%uSet%s",
			       i->about->version, fmu_type_name(i->about->version, type));
	if (i->about->version == 2)
		status = ((fmi2_set *)set)(i->component, refs, count, values);
	else
		status = ((fmi3_set *)set)(i->component, refs, count, values, count);
	if (likely(status == FMI_OK))
		return 0;
	snprintf(name, sizeof(name), "Set%s", fmu_type_name(i->about->version, type));
	return judge(i, status, name, why);
}

static int get_values(struct fmu_instance *i, enum fmu_type type, const fmi_reference *refs,
		      unsigned count, void *values, struct fmu_why *why)
{
	void *get = i->functions->get[type];
	enum fmi_status status;
	char name[40];

	if (i->about->version == 2)
		status = ((fmi2_get *)get)(i->component, refs, count, values);
	else
		status = ((fmi3_get *)get)(i->component, refs, count, values, count);
	if (likely(status == FMI_OK))
		return 0;
	snprintf(name, sizeof(name), "Get%s", fmu_type_name(i->about->version, type));
	return judge(i, status, name, why);
}

/* Value `at` of an array as the FMU has it. */
static void store(void *values, unsigned at, enum fmu_type type, unsigned version,
		  union fmu_value v)
{
	switch (type) {
	case FMU_FLOAT64:
		((double *)values)[at] = v.f;
		break;
	case FMU_FLOAT32:
		((float *)values)[at] = (float)v.f;
		break;
	case FMU_INT8:
	case FMU_UINT8:
		((int8_t *)values)[at] = (int8_t)v.i;
		break;
	case FMU_INT16:
	case FMU_UINT16:
		((int16_t *)values)[at] = (int16_t)v.i;
		break;
	case FMU_INT32:
	case FMU_UINT32:
		((int32_t *)values)[at] = (int32_t)v.i;
		break;
	case FMU_INT64:
	case FMU_UINT64:
		((int64_t *)values)[at] = v.i;
		break;
	case FMU_BOOLEAN:
		if (version == 2)
			((int *)values)[at] = v.i != 0;
		else
			((bool *)values)[at] = v.i != 0;
		break;
	default:
		break;
	}
}

static union fmu_value fetch(const void *values, unsigned at, enum fmu_type type, unsigned version)
{
	union fmu_value v = { 0 };

	switch (type) {
	case FMU_FLOAT64:
		v.f = ((const double *)values)[at];
		break;
	case FMU_FLOAT32:
		v.f = ((const float *)values)[at];
		break;
	case FMU_INT8:
		v.i = ((const int8_t *)values)[at];
		break;
	case FMU_UINT8:
		v.i = ((const uint8_t *)values)[at];
		break;
	case FMU_INT16:
		v.i = ((const int16_t *)values)[at];
		break;
	case FMU_UINT16:
		v.i = ((const uint16_t *)values)[at];
		break;
	case FMU_INT32:
		v.i = ((const int32_t *)values)[at];
		break;
	case FMU_UINT32:
		v.i = ((const uint32_t *)values)[at];
		break;
	case FMU_INT64:
	case FMU_UINT64:
		v.i = ((const int64_t *)values)[at];
		break;
	case FMU_BOOLEAN:
		/* Not read as a bool: the FMU may leave any byte there. */
		v.i = version == 2 ? ((const int *)values)[at] != 0 :
				     ((const uint8_t *)values)[at] != 0;
		break;
	default:
		break;
	}
	return v;
}

int fmu_instance_set(struct fmu_instance *i, struct fmu_group groups[], unsigned count,
		     const union fmu_value values[], struct fmu_why *why)
{
	for (unsigned k = 0; k < count; k++) {
		struct fmu_group *g = &groups[k];
		int ret;

		for (unsigned n = 0; n < g->count; n++)
			store(g->values, n, g->type, i->about->version, values[g->signals[n]]);
		ret = set_values(i, g->type, g->refs, g->count, g->values, why);
		if (ret)
			return ret;
	}
	return 0;
}

int fmu_instance_get(struct fmu_instance *i, struct fmu_group groups[], unsigned count,
		     union fmu_value values[], struct fmu_why *why)
{
	for (unsigned k = 0; k < count; k++) {
		struct fmu_group *g = &groups[k];
		int ret = get_values(i, g->type, g->refs, g->count, g->values, why);

		if (ret)
			return ret;
		for (unsigned n = 0; n < g->count; n++)
			values[g->signals[n]] = fetch(g->values, n, g->type, i->about->version);
	}
	return 0;
}

/* ---- beginning and end ---- */

static int instantiate(struct fmu_instance *i, struct fmu_why *why)
{
	const struct fmu_description *d = i->about;
	struct fmu_functions *f = i->functions;

	atomic_store(&f->owner, i);
	f->callbacks = (struct fmi2_callbacks){
		.logger = on_log2, .allocate = on_allocate, .free = on_free,
		.step_finished = on_step_finished, .environment = f,
	};
	if (d->version == 2)
		i->component = f->instantiate2(i->name, FMI2_CO_SIMULATION, d->token, i->resources,
					       &f->callbacks, 0, i->logging);
	else
		i->component = f->instantiate3(i->name, d->token,
					       i->resources[0] ? i->resources : NULL, false,
					       i->logging, false, false, NULL, 0, f, on_log3,
					       on_update);
	if (!i->component)
		return fmu_why(why, -EIO, "the model cannot be instantiated; %s",
			       i->logging ? "lines of the log above may say why" :
					    "debug_logging may show why");
	i->state = FMU_READY;
	return 0;
}

static int set_start(struct fmu_instance *i, const struct fmu_start *s, struct fmu_why *why)
{
	enum fmu_type type = (enum fmu_type)s->variable->type;
	struct fmu_why inner;
	uint64_t place = 0;
	const void *values = type == FMU_STRING ? (const void *)&s->text : (const void *)&place;
	int ret;

	store(&place, 0, type, i->about->version, s->value);
	ret = set_values(i, type, &s->variable->reference, 1, values, &inner);
	if (ret)
		fmu_why(why, 0, "parameter '%.80s': %.200s", s->variable->name, inner.text);
	return ret;
}

static int enter_initialization(struct fmu_instance *i, const struct fmu_experiment *e,
				struct fmu_why *why)
{
	struct fmu_functions *f = i->functions;
	bool has_tolerance = !isnan(e->tolerance), has_stop = !isnan(e->stop);
	double tolerance = has_tolerance ? e->tolerance : 0, stop = has_stop ? e->stop : 0;
	int ret;

	if (i->about->version == 3)
		return judge(i, f->enter_initialization3(i->component, has_tolerance, tolerance,
							 e->start, has_stop, stop),
			     "EnterInitializationMode", why);
	ret = judge(i, f->setup_experiment(i->component, has_tolerance, tolerance, e->start,
					   has_stop, stop), "SetupExperiment", why);
	return ret ? ret : judge(i, f->enter_initialization2(i->component),
				 "EnterInitializationMode", why);
}

int fmu_instance_begin(struct fmu_instance *i, const struct fmu_experiment *e, struct fmu_why *why)
{
	int ret = instantiate(i, why);

	for (unsigned k = 0; !ret && k < e->start_count; k++)
		ret = set_start(i, &e->starts[k], why);
	if (!ret)
		ret = enter_initialization(i, e, why);
	if (!ret)
		ret = judge(i, i->functions->exit_initialization(i->component),
			    "ExitInitializationMode", why);
	i->functions->simulates = !ret;
	return ret;
}

void fmu_instance_close(struct fmu_instance *i)
{
	struct fmu_functions *f = i->functions;
	struct fmu_why why;

	/* After a fatal error nothing may be called, and threads of the FMU may still run. */
	if (i->component && i->state == FMU_READY && f->simulates)
		judge(i, f->terminate(i->component), "Terminate", &why);
	if (i->component && i->state != FMU_DEAD)
		f->free_instance(i->component);
	if (i->library && i->state != FMU_DEAD)
		dlclose(i->library);
	if (i->state == FMU_DEAD)
		atomic_store(&f->owner, NULL);
	else
		free(f);
	i->component = i->library = NULL;
	i->functions = NULL;
	i->state = FMU_NONE;
}

/* ---- steps ---- */

/* The model has discarded the step: how far has it come? As step_once(). */
static int ask_progress(struct fmu_instance *i, double *reached)
{
	struct fmu_functions *f = i->functions;
	int terminated = 0;
	double time;

	if (f->get_boolean_status &&
	    f->get_boolean_status(i->component, FMI2_TERMINATED, &terminated) == FMI_OK &&
	    terminated)
		return 1;
	if (f->get_real_status &&
	    f->get_real_status(i->component, FMI2_LAST_SUCCESSFUL_TIME, &time) == FMI_OK)
		*reached = time;
	return 0;
}

/* One call. 0 with *reached, 1: the model ends the simulation, or a negative errno. */
static int step_once(struct fmu_instance *i, double time, double until, double *reached,
		     struct fmu_why *why)
{
	struct fmu_functions *f = i->functions;
	bool event = false, terminate = false, early = false;
	enum fmi_status status;
	int ret;

	*reached = time;
	if (i->about->version == 2)
		status = f->do_step2(i->component, time, until - time, 1);
	else
		status = f->do_step3(i->component, time, until - time, true, &event, &terminate,
				     &early, reached);
	ret = likely(status == FMI_OK) ? 0 : judge(i, status, "DoStep", why);
	if (ret == -EAGAIN)
		return i->about->version == 2 ? ask_progress(i, reached) : terminate;
	if (ret)
		return ret;
	if (!early)
		*reached = until;
	return terminate;
}

int fmu_instance_step(struct fmu_instance *i, double time, double until, struct fmu_why *why)
{
	double near = (until - time) * 1e-9, reached;

	for (unsigned part = 0; part < PARTS_MAX; part++) {
		int ret = step_once(i, time, until, &reached, why);

		if (ret || reached >= until - near)
			return ret;
		if (!(reached > time) || !i->about->variable_step)
			break;
		i->partial++;
		time = reached;
	}
	i->state = FMU_BROKEN;
	return fmu_why(why, -EIO, "fmi%uDoStep: the model has not come from %.9g s to %.9g s",
		       i->about->version, time, until);
}
