/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar bench formats`: how fast each format of the registry writes and reads
 * samples in memory, in the processor time of one thread, and as a ratio to
 * memcpy() of the same bytes in the same run.
 */
#ifndef BENCH_FORMATS_H
#define BENCH_FORMATS_H

struct format_type;

int bench_formats_main(int argc, char **argv);

/* json, written and read by the library jansson alone (formats_jansson.c). */
extern const struct format_type bench_format_jansson;

#endif
