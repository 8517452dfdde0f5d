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
#include <stdint.h>

#include "cli/cli.h"
#include "gateway/base/memory.h"
#include "gateway/sample/sample.h"

/* The tool's name in the log: LOG_ROOM of the files that the tools share. */
extern const char *tool_room;

/* To be appended to the option string of getopt(). */
#define TOOL_OPTIONS "d:hV"

/* Number of samples that a tool reads and writes at a time. */
#define TOOL_BATCH 64

/*
 * Sets argv[0] to the tool's full name for messages ("busbar pipe", "villas-pipe"), and
 * the log to its default level.
 */
void tool_begin(char **argv);

/*
 * Handles the options of every tool, and unknown ones. The exit status if the tool has to
 * end, or -1 to go on.
 */
int tool_option(char **argv, int opt, const char *usage);

/* Prints "usage: NAME ..."; `usage` is the text after the name. */
void tool_print_usage(char **argv, const char *usage, FILE *out);

/* Prints an object, indented; returns the exit status. */
int tool_print_json(char **argv, const json_t *object);

/* The number of option -`opt`; false: not usable, reported. */
bool tool_number(char **argv, int opt, double min, double max, double *value);

/* The types of option -t, "12f3i". False: not usable, reported. */
bool tool_types(char **argv, const char *text, struct signal_list **out);

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
int tool_set(char **argv, json_t *object, const char *assignment, bool lists,
	     json_t *keep);

/* Ordinary memory: unused room for long samples costs nothing. */
extern struct memory_type tool_memory;

#endif
