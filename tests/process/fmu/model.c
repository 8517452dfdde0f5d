/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An FMU for the tests, of FMI 2.0 or 3.0 (-DFMI=2 or 3): a first-order lag, T x' = K u - x, which
 * it solves exactly for inputs that are constant during a step, and variables of all types. The
 * parameter `fault` lets it misbehave from the time `fault_at` on.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/node/fmu/fmi.h"

#define TOKEN "{busbar-test-lag}"

enum fault {
	FAULT_NONE,
	FAULT_HALF,       /* ends each step half way */
	FAULT_ERROR,
	FAULT_FATAL,
	FAULT_TERMINATE,  /* asks for the end */
	FAULT_WARN,
	FAULT_STUCK,      /* discards without getting anywhere */
	FAULT_DISCARD_SET,
	FAULT_DISCARD_GET,
	FAULT_INIT,       /* at the end of the initialisation */
	FAULT_PENDING,
	FAULT_SET,
	FAULT_GET,
};

/* References of variables; those of values of all types. */
enum {
	REF_TIME, REF_U, REF_X, REF_K, REF_T, REF_FAULT, REF_FAULT_AT, REF_NAME, REF_NAME_LENGTH,
	REF_OWN, REF_RESOURCE, REF_STEPS,
	REF_IN = 100, REF_OUT = 200, /* of type 0, 1 ...: an output is what its input was */
};

struct model {
	double time, u, x, k, t, fault_at, until;
	int fault, steps, resource;
	char name[100];
	double floats[2];
	int64_t integers[100];
	bool terminated, initialised;
	void *environment;
	const struct fmi2_callbacks *callbacks;
	fmi3_log_message *log;
};

/* As a function of the gateway is called: the FMU has to find its own one. */
unsigned waiting_processors(void);
unsigned waiting_processors(void)
{
	return 4242;
}

static bool is_at_fault(const struct model *m, enum fault fault)
{
	return m->fault == (int)fault && m->time >= m->fault_at;
}

static void say(struct model *m, enum fmi_status status, const char *text, int number)
{
	char line[100];

	snprintf(line, sizeof(line), "%s %d", text, number);
	if (m->callbacks)
		m->callbacks->logger(m->callbacks->environment, "lag", status, "test", "%s %d", text,
				     number);
	else
		m->log(m->environment, status, "test", line);
}

static int look_for_resource(const char *folder)
{
	char path[5000], text[20] = "";
	FILE *f;

	if (!strncmp(folder, "file://", 7))
		folder += 7;
	snprintf(path, sizeof(path), "%s/number.txt", folder);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return text[0] - '0';
}

static void set_up(struct model *m, const char *folder)
{
	m->k = m->t = 1;
	m->fault_at = -1e9;
	m->resource = folder ? look_for_resource(folder) : -2;
}

static enum fmi_status leave_initialisation(struct model *m)
{
	if (m->fault == FAULT_INIT) {
		say(m, FMI_ERROR, "this cannot be initialised, code", 7);
		return FMI_ERROR;
	}
	m->initialised = true;
	return FMI_OK;
}

static void simulate(struct model *m, double until)
{
	m->x += (m->k * m->u - m->x) * (1 - exp(-(until - m->time) / m->t));
	m->time = until;
	m->steps++;
}

/* One step; *reached tells how far. */
static enum fmi_status go(struct model *m, double time, double size, double *reached)
{
	/* The importer has to say where the model is. */
	if (!m->initialised || fabs(time - m->time) > 1e-9 * (fabs(time) + size)) {
		say(m, FMI_ERROR, "wrong time, steps before", m->steps);
		return FMI_ERROR;
	}
	m->time = time;
	*reached = time;
	if (is_at_fault(m, FAULT_ERROR))
		return FMI_ERROR;
	if (is_at_fault(m, FAULT_FATAL))
		return FMI_FATAL;
	if (is_at_fault(m, FAULT_PENDING))
		return FMI_PENDING;
	m->terminated = is_at_fault(m, FAULT_TERMINATE);
	if (m->terminated || is_at_fault(m, FAULT_STUCK))
		return FMI_DISCARD;
	if (is_at_fault(m, FAULT_HALF) && time + size > m->until) {
		m->until = time + size;
		simulate(m, time + size / 2);
		*reached = m->time;
		return FMI_DISCARD;
	}
	simulate(m, time + size);
	*reached = m->time;
	if (!is_at_fault(m, FAULT_WARN))
		return FMI_OK;
	say(m, FMI_WARNING, "a warning at step", m->steps);
	return FMI_WARNING;
}

/* ---- variables ---- */

static double *float_at(struct model *m, fmi_reference ref)
{
	switch (ref) {
	case REF_TIME:
		return &m->time;
	case REF_U:
		return &m->u;
	case REF_X:
		return &m->x;
	case REF_K:
		return &m->k;
	case REF_T:
		return &m->t;
	case REF_FAULT_AT:
		return &m->fault_at;
	}
	return &m->floats[ref & 1];
}

static int64_t integer_at(struct model *m, fmi_reference ref)
{
	switch (ref) {
	case REF_FAULT:
		return m->fault;
	case REF_NAME_LENGTH:
		return (int64_t)strlen(m->name);
	case REF_OWN:
		return waiting_processors();
	case REF_RESOURCE:
		return m->resource;
	case REF_STEPS:
		return m->steps;
	}
	return m->integers[ref % 100];
}

static enum fmi_status may_set(struct model *m)
{
	return is_at_fault(m, FAULT_DISCARD_SET) ? FMI_DISCARD :
	       is_at_fault(m, FAULT_SET)	 ? FMI_ERROR :
						   FMI_OK;
}

static enum fmi_status may_get(struct model *m)
{
	return is_at_fault(m, FAULT_DISCARD_GET) ? FMI_DISCARD :
	       is_at_fault(m, FAULT_GET)	 ? FMI_ERROR :
						   FMI_OK;
}

#if FMI == 2
#define COUNT
#define NAME(verb, type) fmi2##verb##type
#else
#define COUNT , size_t value_count
#define NAME(verb, type) fmi3##verb##type
#endif

#define INTEGERS(name, type) \
	enum fmi_status NAME(Set, name)(void *instance, const fmi_reference *refs, size_t count, \
					const type *values COUNT); \
	enum fmi_status NAME(Set, name)(void *instance, const fmi_reference *refs, size_t count, \
					const type *values COUNT) \
	{ \
		struct model *m = instance; \
		for (size_t i = 0; i < count; i++) \
			if (refs[i] == REF_FAULT) \
				m->fault = (int)values[i]; \
			else \
				m->integers[refs[i] % 100] = (int64_t)values[i]; \
		return m->initialised ? may_set(m) : FMI_OK; \
	} \
	enum fmi_status NAME(Get, name)(void *instance, const fmi_reference *refs, size_t count, \
					type *values COUNT); \
	enum fmi_status NAME(Get, name)(void *instance, const fmi_reference *refs, size_t count, \
					type *values COUNT) \
	{ \
		for (size_t i = 0; i < count; i++) \
			values[i] = (type)integer_at(instance, refs[i]); \
		return may_get(instance); \
	}

#define FLOATS(name, type) \
	enum fmi_status NAME(Set, name)(void *instance, const fmi_reference *refs, size_t count, \
					const type *values COUNT); \
	enum fmi_status NAME(Set, name)(void *instance, const fmi_reference *refs, size_t count, \
					const type *values COUNT) \
	{ \
		struct model *m = instance; \
		for (size_t i = 0; i < count; i++) \
			*float_at(instance, refs[i]) = (double)values[i]; \
		return m->initialised ? may_set(m) : FMI_OK; \
	} \
	enum fmi_status NAME(Get, name)(void *instance, const fmi_reference *refs, size_t count, \
					type *values COUNT); \
	enum fmi_status NAME(Get, name)(void *instance, const fmi_reference *refs, size_t count, \
					type *values COUNT) \
	{ \
		for (size_t i = 0; i < count; i++) \
			values[i] = (type)*float_at(instance, refs[i]); \
		return may_get(instance); \
	}

enum fmi_status NAME(Set, String)(void *instance, const fmi_reference *refs, size_t count,
				  const char *const *values COUNT);
enum fmi_status NAME(Set, String)(void *instance, const fmi_reference *refs, size_t count,
				  const char *const *values COUNT)
{
	struct model *m = instance;

	for (size_t i = 0; i < count && refs[i] == REF_NAME; i++)
		snprintf(m->name, sizeof(m->name), "%s", values[i]);
	return FMI_OK;
}

#if FMI == 2
FLOATS(Real, double)
#ifndef WITHOUT_INTEGERS
INTEGERS(Integer, int)
#endif
INTEGERS(Boolean, int)
#else
FLOATS(Float64, double)
FLOATS(Float32, float)
INTEGERS(Int8, int8_t)
INTEGERS(UInt8, uint8_t)
INTEGERS(Int16, int16_t)
INTEGERS(UInt16, uint16_t)
INTEGERS(Int32, int32_t)
INTEGERS(UInt32, uint32_t)
INTEGERS(Int64, int64_t)
INTEGERS(UInt64, uint64_t)
INTEGERS(Boolean, bool)
#endif

/* ---- life ---- */

#ifdef WITHOUT_STEP
#define fmi2DoStep fmi2DoNoStep
#endif

const char *NAME(Get, Version)(void);
const char *NAME(Get, Version)(void)
{
#ifdef VERSION
	return VERSION;
#else
	return FMI == 2 ? "2.0" : "3.0";
#endif
}

enum fmi_status NAME(Exit, InitializationMode)(void *instance);
enum fmi_status NAME(Exit, InitializationMode)(void *instance)
{
	return leave_initialisation(instance);
}

enum fmi_status NAME(Term, inate)(void *instance);
enum fmi_status NAME(Term, inate)(void *instance)
{
	say(instance, FMI_OK, "terminated", ((struct model *)instance)->steps);
	return FMI_OK;
}

#if FMI == 2

fmi2_instantiate fmi2Instantiate;
void *fmi2Instantiate(const char *name, enum fmi2_kind kind, const char *guid,
		      const char *resources, const struct fmi2_callbacks *callbacks, int visible,
		      int logging)
{
	struct model *m;

	if (strcmp(guid, TOKEN) || kind != FMI2_CO_SIMULATION || !*name || visible) {
		callbacks->logger(callbacks->environment, name, FMI_ERROR, "test", "guid is %s", guid);
		return NULL;
	}
	m = callbacks->allocate(1, sizeof(*m));
	m->callbacks = callbacks;
	set_up(m, resources);
	say(m, FMI_OK, "logging is", logging);
	return m;
}

fmi_free_instance fmi2FreeInstance;
void fmi2FreeInstance(void *instance)
{
	((struct model *)instance)->callbacks->free(instance);
}

fmi2_setup_experiment fmi2SetupExperiment;
enum fmi_status fmi2SetupExperiment(void *instance, int has_tolerance, double tolerance,
				    double start, int has_stop, double stop)
{
	((struct model *)instance)->time = start;
	return has_stop && stop <= start ? FMI_ERROR : FMI_OK;
}

fmi_step_over fmi2EnterInitializationMode;
enum fmi_status fmi2EnterInitializationMode(void *instance)
{
	return FMI_OK;
}

fmi2_do_step fmi2DoStep;
enum fmi_status fmi2DoStep(void *instance, double time, double size, int no_way_back)
{
	double reached;

	return go(instance, time, size, &reached);
}

fmi2_get_real_status fmi2GetRealStatus;
enum fmi_status fmi2GetRealStatus(void *instance, enum fmi2_status_kind kind, double *value)
{
	*value = ((struct model *)instance)->time;
	return kind == FMI2_LAST_SUCCESSFUL_TIME ? FMI_OK : FMI_DISCARD;
}

fmi2_get_boolean_status fmi2GetBooleanStatus;
enum fmi_status fmi2GetBooleanStatus(void *instance, enum fmi2_status_kind kind, int *value)
{
	*value = ((struct model *)instance)->terminated;
	return kind == FMI2_TERMINATED ? FMI_OK : FMI_DISCARD;
}

#else

static struct model models[4];

fmi3_instantiate fmi3InstantiateCoSimulation;
void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources,
				  bool visible, bool logging, bool event_mode, bool early_return,
				  const fmi_reference *intermediate, size_t intermediate_count,
				  void *environment, fmi3_log_message *log,
				  fmi3_intermediate_update *update)
{
	static unsigned used;
	struct model *m = &models[used++ % 4];

	if (strcmp(token, TOKEN) || !*name || visible || event_mode || early_return ||
	    intermediate_count || !update) {
		log(environment, FMI_ERROR, "test", "the token is another one");
		return NULL;
	}
	*m = (struct model){ .environment = environment, .log = log };
	set_up(m, resources);
	say(m, FMI_OK, "logging is", logging);
	return m;
}

fmi_free_instance fmi3FreeInstance;
void fmi3FreeInstance(void *instance)
{
	memset(instance, 0, sizeof(struct model));
}

fmi3_enter_initialization fmi3EnterInitializationMode;
enum fmi_status fmi3EnterInitializationMode(void *instance, bool has_tolerance, double tolerance,
					    double start, bool has_stop, double stop)
{
	((struct model *)instance)->time = start;
	return has_stop && stop <= start ? FMI_ERROR : FMI_OK;
}

fmi3_do_step fmi3DoStep;
enum fmi_status fmi3DoStep(void *instance, double time, double size, bool no_way_back,
			   bool *event_needed, bool *terminate, bool *early, double *reached)
{
	enum fmi_status status = go(instance, time, size, reached);

	*terminate = ((struct model *)instance)->terminated;
	*early = status == FMI_DISCARD;
	return *early && (*terminate || *reached > time) ? FMI_OK : status;
}

#endif
