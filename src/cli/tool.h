/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the tools that are also installed as villas-NAME (villas-pipe, villas-hook
 * ...): their names in messages, common options, and end.
 *
 * Samples go to standard output, everything else to standard error. A tool uses no huge
 * pages, locks no memory, and changes no setting of the machine.
 */
#ifndef CLI_TOOL_H
#define CLI_TOOL_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/cli.h"
#include "gateway/base/memory.h"
#include "gateway/sample/sample.h"
#include "util/options.h"

/* The tool's name in the log: LOG_ROOM of the files that the tools share. */
extern const char *tool_room;

/* Number of samples that a tool reads and writes at a time. */
#define TOOL_BATCH 64

/*
 * Sets argv[0] to the tool's full name for messages ("busbar pipe", "villas-pipe"), and
 * the log to its default level.
 */
void tool_begin(char **argv);

/* The options of every tool, at the end of its table. */
#define TOOL_OPTIONS TOOL_OPTIONS_WITH(tool_take_level)
/* The same with another function that takes the level. */
#define TOOL_OPTIONS_WITH(take_level) \
	{ "-d LVL: log level: trace, debug, info, warning, error, critical, off", \
	  OPTION_CALL(take_level, NULL) }, \
	{ "-V, --version: print the version", OPTION_CALL(tool_print_version, NULL) }, \
	{ .text = NULL }

int tool_take_level(const struct option_given *g);
int tool_print_version(const struct option_given *g);
/* Of a member that is a list of signals: their types, "12f3i". */
int tool_take_types(const struct option_given *g);
/* Of a member that is a JSON object: "key.key=value", see tool_set(). With list_setting several
 * values make a list. */
int tool_take_setting(const struct option_given *g);
int tool_take_list_setting(const struct option_given *g);
/* Of a member that is a JSON array: appends the text. */
int tool_take_text(const struct option_given *g);

/* Prints an object, indented; returns the exit status. */
int tool_print_json(char **argv, const json_t *object);

/* Signals of the types "12f3i". False: not usable, reported. */
bool tool_types(const char *program, const char *text, struct signal_list **out);

/*
 * From here on SIGINT and SIGTERM ask for the end (a second one ends the process at once),
 * and a closed pipe is an error of write(). 0 or a negative errno.
 */
int tool_catch_signals(void);
/* Asks for the end, from any thread or signal handler. Calls `on_stop` (or nothing, if
 * it is NULL), possibly in the signal handler. */
void tool_stop(void);
void tool_on_stop(void (*on_stop)(void));
bool tool_stopping(void);
/* In a signal handler: was the end asked for before, at least 250 ms ago? */
bool tool_asked_again(void);
/* A descriptor that is readable after the end was asked for. */
int tool_stop_fd(void);

/*
 * Puts "key.key=value" into an object. The value is JSON if it can be parsed as such, else
 * a text. `lists`: a repeated key, and values separated by commas, make a list;
 * otherwise the last value counts. Replaced values are kept in the array `keep` if it is
 * not NULL. 0, or -EINVAL: error, reported.
 */
int tool_set(const char *program, json_t *object, const char *assignment, bool lists, json_t *keep);

/* Room for so many samples, in tool_memory. 0 or a negative errno, logged. */
int tool_pool_init(struct pool *pool, unsigned count, unsigned values);
/* Ordinary memory: unused room for long samples costs nothing. */
extern struct memory_type tool_memory;

#endif
