/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `fmu`: the parts that an FMU is made of, each in a file of its own. archive.c takes
 * files out of the .fmu, description.c reads modelDescription.xml, instance.c loads the code and
 * calls it, variables.c says which signal is which variable. Private to this folder; archive.c and
 * description.c know nothing of nodes, so that tests and fuzzers use them alone.
 */
#ifndef GATEWAY_NODE_FMU_FMU_H
#define GATEWAY_NODE_FMU_FMU_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gateway/config/config.h"
#include "gateway/node/fmu/fmi.h"
#include "gateway/sample/sample.h"

/* Why a function of this folder failed, for a message that names the file. */
struct fmu_why {
	char text[300];
};

/* Names and messages of an FMU must not look like further lines of the log. */
static inline void fmu_make_plain(char *text)
{
	for (char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = ' ';
}

/* Writes the text; returns `error`. */
__attribute__((format(printf, 3, 4))) static inline int fmu_why(struct fmu_why *why, int error,
								 const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, args);
	va_end(args);
	fmu_make_plain(why->text);
	return error;
}

/* ---- archive.c ---- */

/* Limits of an archive. */
struct fmu_limits {
	uint64_t bytes;       /* of all that is unpacked */
	uint64_t description; /* of modelDescription.xml */
	unsigned entries;     /* in the archive */
};

extern const struct fmu_limits fmu_limits;

/* The folder of binaries/ for this machine: FMI 2.0, FMI 3.0. NULL: the standard has none. */
extern const char *const fmu_platforms[2];

/* Reads modelDescription.xml of the archive `path` into memory; the caller frees *text. 0 or a
 * negative errno; -ENOENT only when the archive itself is not there. */
int fmu_archive_describe(const char *path, const struct fmu_limits *limits, char **text,
			 size_t *length, struct fmu_why *why);
/* Makes a folder below `parent`, whose name begins with `name`, and unpacks modelDescription.xml,
 * the binaries of this machine and the resources to it. Looks at all names in the archive before it
 * writes a file. 0 with the folder's absolute path in `folder`, which the caller passes to
 * fmu_folder_remove(), or a negative errno, and then nothing is left. */
int fmu_archive_unpack(const char *path, const char *parent, const char *name,
		       const struct fmu_limits *limits, char *folder, size_t size,
		       struct fmu_why *why);
void fmu_folder_remove(const char *folder);

/* ---- description.c ---- */

enum fmu_type {
	FMU_FLOAT64,
	FMU_FLOAT32,
	FMU_INT8,
	FMU_UINT8,
	FMU_INT16,
	FMU_UINT16,
	FMU_INT32,
	FMU_UINT32,
	FMU_INT64,
	FMU_UINT64,
	FMU_BOOLEAN,
	FMU_NUMBERS, /* the number of types that a signal may have */
	FMU_STRING = FMU_NUMBERS,
	FMU_TYPES,   /* the number of types that can be set */
	FMU_OTHER = FMU_TYPES,
};

enum fmu_causality {
	FMU_LOCAL, /* the standard's default */
	FMU_INPUT,
	FMU_OUTPUT,
	FMU_PARAMETER,
	FMU_CALCULATED,
	FMU_INDEPENDENT,
	FMU_STRUCTURAL,
};

struct fmu_variable {
	char *name;
	fmi_reference reference;
	uint8_t type;      /* enum fmu_type */
	uint8_t causality; /* enum fmu_causality */
	bool constant, tunable, array;
};

struct fmu_description {
	unsigned version;        /* 2 or 3 */
	char *model, *token;     /* guid of FMI 2.0 */
	char *identifier;        /* NULL: no co-simulation */
	bool variable_step;      /* the size of steps may change */
	double start, stop, step, tolerance; /* of its DefaultExperiment; NAN: not given */
	struct fmu_variable *variables;      /* in the order of the file */
	size_t count, room;
	size_t *by_name;         /* indices of variables */
};

/* Parses the text of modelDescription.xml. 0 or a negative errno; fmu_description_free() in any
 * case. */
int fmu_description_parse(struct fmu_description *d, const char *text, size_t length,
			  struct fmu_why *why);
void fmu_description_free(struct fmu_description *d);
/* NULL: there is none. */
const struct fmu_variable *fmu_variable_find(const struct fmu_description *d, const char *name);
const char *fmu_type_name(unsigned version, enum fmu_type type);
const char *fmu_causality_name(enum fmu_causality causality);
/* Bytes of one value in the arrays of functions that set and get. */
size_t fmu_type_size(unsigned version, enum fmu_type type);

/* ---- instance.c ---- */

/* A value on its way: floats in `f`, all others in `i`. */
union fmu_value {
	double f;
	int64_t i;
};

/* Variables of one type, which one call sets or gets. */
struct fmu_group {
	enum fmu_type type;
	unsigned count;
	fmi_reference *refs;
	unsigned *signals; /* of each: the index of its signal */
	void *values;      /* as the FMU has them */
};

/* The value of a variable before the simulation begins. */
struct fmu_start {
	const struct fmu_variable *variable;
	union fmu_value value;
	const char *text; /* of strings; borrowed from the configuration */
};

struct fmu_functions;
struct fault_counters;

enum fmu_state {
	FMU_NONE,
	FMU_READY,
	FMU_BROKEN, /* an error: the instance may only be freed */
	FMU_DEAD,   /* a fatal error: nothing of it may be called any more */
};

struct fmu_instance {
	const char *name;              /* of the node */
	const struct fmu_description *about;
	struct fault_counters *faults; /* whose limit of log lines holds for the FMU's messages */
	bool logging;
	char resources[4200];
	void *library;
	void *component;
	struct fmu_functions *functions;
	enum fmu_state state;
	_Atomic uint64_t warnings;     /* calls that ended with FMI_WARNING */
	uint64_t partial;              /* steps that took more than one call */
};

struct fmu_experiment {
	double start, stop, tolerance; /* NAN: none */
	const struct fmu_start *starts;
	unsigned start_count;
};

/* Loads the binary of `folder`. `i` has name, about, faults and logging. 0 or a negative errno with
 * *why; fmu_instance_close() in any case. */
int fmu_instance_load(struct fmu_instance *i, const char *folder, struct fmu_why *why);
/* Checks that the binary has the functions that get (or set) variables of these types. */
int fmu_instance_check(struct fmu_instance *i, const struct fmu_group groups[], unsigned count,
		       bool sets, struct fmu_why *why);
/* Makes the instance and initialises it. */
int fmu_instance_begin(struct fmu_instance *i, const struct fmu_experiment *e, struct fmu_why *why);
/* Get all variables of the groups into `values`, by signal, or set them. */
int fmu_instance_get(struct fmu_instance *i, struct fmu_group groups[], unsigned count,
		     union fmu_value values[], struct fmu_why *why);
int fmu_instance_set(struct fmu_instance *i, struct fmu_group groups[], unsigned count,
		     const union fmu_value values[], struct fmu_why *why);
/* Makes a step from `time` to `until`. 1: the model ends the simulation. */
int fmu_instance_step(struct fmu_instance *i, double time, double until, struct fmu_why *why);
void fmu_instance_close(struct fmu_instance *i);

/* ---- variables.c ---- */

/* One direction: signals and their variables. */
struct fmu_side {
	unsigned count;
	const struct fmu_variable **variables; /* of each signal */
	struct fmu_group groups[FMU_NUMBERS];
	unsigned group_count;
};

#define FMU_SIGNAL_KEYS 1
extern const struct config_key fmu_signal_keys[FMU_SIGNAL_KEYS];

/* The variables of the signals of group `at`, or without signals there all inputs (`writes`) or
 * outputs of the model, whose list is then put into *l. 0, or a negative errno after
 * config_fail(). */
int fmu_side_parse(struct fmu_side *s, struct config *c, const json_t *at,
		   const struct fmu_description *d, struct signal_list **l, bool writes);
void fmu_side_free(struct fmu_side *s);
/* `parameters` of the node. The caller frees *starts. */
int fmu_starts_parse(struct fmu_start **starts, unsigned *count, struct config *c,
		     const json_t *cfg, const struct fmu_description *d);
/* Checks the form of `parameters` while the model cannot be read. */
int fmu_starts_check(struct config *c, const json_t *cfg);

/* The value of a signal as the variable has it. NULL, or why it cannot have it. */
const char *fmu_value_from_signal(const struct fmu_variable *v, enum signal_type type,
				  const union signal_data *from, union fmu_value *to);
void fmu_value_to_signal(const struct fmu_variable *v, union fmu_value from, enum signal_type type,
			 union signal_data *to);

#endif
