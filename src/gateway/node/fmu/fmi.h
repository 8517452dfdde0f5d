/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an FMU for co-simulation and its importer have in common: types and functions of FMI 2.0
 * (sections 2.1 and 4.2 of the standard) and FMI 3.0 (sections 2.2 and 4.2), as far as busbar calls
 * them. Written from the standard; its own headers are not needed. The test's FMU uses it, too.
 */
#ifndef GATEWAY_NODE_FMU_FMI_H
#define GATEWAY_NODE_FMU_FMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same numbers in both versions; FMI 3.0 has no FMI_PENDING. */
enum fmi_status {
	FMI_OK,
	FMI_WARNING,
	FMI_DISCARD,
	FMI_ERROR,
	FMI_FATAL,
	FMI_PENDING,
};

typedef uint32_t fmi_reference;

/* All functions that set or get variables of one type, of both versions: FMI 3.0 has the number of
 * values behind them. The values are an array of the type in the function's name. */
typedef enum fmi_status fmi2_get(void *instance, const fmi_reference *refs, size_t count,
				 void *values);
typedef enum fmi_status fmi2_set(void *instance, const fmi_reference *refs, size_t count,
				 const void *values);
typedef enum fmi_status fmi3_get(void *instance, const fmi_reference *refs, size_t count,
				 void *values, size_t value_count);
typedef enum fmi_status fmi3_set(void *instance, const fmi_reference *refs, size_t count,
				 const void *values, size_t value_count);

/* fmi2Terminate, fmi2ExitInitializationMode, and the same of FMI 3.0. */
typedef enum fmi_status fmi_step_over(void *instance);
typedef void fmi_free_instance(void *instance);
typedef const char *fmi_get_version(void);

/* ---- FMI 2.0 ---- */

enum fmi2_kind {
	FMI2_MODEL_EXCHANGE,
	FMI2_CO_SIMULATION,
};

enum fmi2_status_kind {
	FMI2_DO_STEP_STATUS,
	FMI2_PENDING_STATUS,
	FMI2_LAST_SUCCESSFUL_TIME,
	FMI2_TERMINATED,
};

struct fmi2_callbacks {
	void (*logger)(void *environment, const char *instance, enum fmi_status status,
		       const char *category, const char *message, ...);
	void *(*allocate)(size_t count, size_t size);
	void (*free)(void *memory);
	void (*step_finished)(void *environment, enum fmi_status status);
	void *environment;
};

typedef void *fmi2_instantiate(const char *name, enum fmi2_kind kind, const char *guid,
			       const char *resources, const struct fmi2_callbacks *callbacks,
			       int visible, int logging);
typedef enum fmi_status fmi2_setup_experiment(void *instance, int has_tolerance, double tolerance,
					      double start, int has_stop, double stop);
typedef enum fmi_status fmi2_do_step(void *instance, double time, double size, int no_way_back);
typedef enum fmi_status fmi2_get_real_status(void *instance, enum fmi2_status_kind kind,
					     double *value);
typedef enum fmi_status fmi2_get_boolean_status(void *instance, enum fmi2_status_kind kind,
						int *value);

/* ---- FMI 3.0 ---- */

typedef void fmi3_log_message(void *environment, enum fmi_status status, const char *category,
			      const char *message);
typedef void fmi3_intermediate_update(void *environment, double time, bool set_requested,
				      bool get_allowed, bool step_finished, bool can_return_early,
				      bool *return_early, double *return_time);
typedef void *fmi3_instantiate(const char *name, const char *token, const char *resources,
			       bool visible, bool logging, bool event_mode, bool early_return,
			       const fmi_reference *intermediate, size_t intermediate_count,
			       void *environment, fmi3_log_message *log,
			       fmi3_intermediate_update *update);
typedef enum fmi_status fmi3_enter_initialization(void *instance, bool has_tolerance,
						  double tolerance, double start, bool has_stop,
						  double stop);
typedef enum fmi_status fmi3_do_step(void *instance, double time, double size, bool no_way_back,
				     bool *event_needed, bool *terminate, bool *early_return,
				     double *reached);

#endif
