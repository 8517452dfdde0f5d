/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenDSS, as a library with the C interface of DSS C-API (libdss_capi.so), which is loaded at run
 * time. A process has one engine with one circuit.
 */
#ifndef GATEWAY_NODE_OPENDSS_ENGINE_H
#define GATEWAY_NODE_OPENDSS_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#define ENGINE_WHY 300

enum engine_class { ENGINE_LOAD, ENGINE_GENERATOR, ENGINE_ISOURCE, ENGINE_CLASSES };

/* Properties of elements; each class has some of them (engine_property_is_of()). */
enum engine_property {
	ENGINE_KV,
	ENGINE_KW,
	ENGINE_KVAR,
	ENGINE_PF,
	ENGINE_AMPS,
	ENGINE_ANGLE,
	ENGINE_FREQUENCY,
	ENGINE_PROPERTIES,
};

extern const char *const engine_class_names[];
extern const char *const engine_property_names[];

static inline int engine_property_is_of(enum engine_property p, enum engine_class c)
{
	return (c == ENGINE_ISOURCE) == (p >= ENGINE_AMPS);
}

/*
 * Takes the engine for `user` (a name, for messages) and reads a file of the language of OpenDSS.
 * `library` is the file to load. 0 or a negative errno with the reason in `why`: -EBUSY while
 * somebody else has it, -ELIBACC without the library.
 */
int engine_open(const char *user, const char *library, const char *file, char why[ENGINE_WHY]);
void engine_close(void);

/* The others are called between engine_open() and engine_close(), by one thread at a time; 0 or
 * a negative errno, likewise. */

/* Makes the element `name` of the class the one that engine_set() changes. */
int engine_select(enum engine_class c, const char *name, char why[ENGINE_WHY]);
int engine_set(enum engine_class c, enum engine_property p, double value, char why[ENGINE_WHY]);
/* -EDOM: the solution does not converge. */
int engine_solve(char why[ENGINE_WHY]);
/* The number of channels of a monitor, or a negative errno. */
int engine_monitor_channels(const char *name, char why[ENGINE_WHY]);
/* The newest record of a monitor: hour, second and `channels` values. -ENODATA: there is none. */
int engine_monitor_read(const char *name, unsigned channels, double record[], char why[ENGINE_WHY]);
/* Frees the records of all monitors. */
void engine_monitors_reset(void);

#endif
