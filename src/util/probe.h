/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probe points for perf, bpftrace and SystemTap (USDT).
 *
 * PROBE(name, arguments...) leaves one nop in the code and a note in the file
 * that says where it is and where the arguments are at that place, so give it
 * what is at hand anyway: integers, at most twelve. (clang stores the arguments
 * on the stack besides; gcc describes them where they are.) busbar-probes(7)
 * documents each probe. Without <sys/sdt.h> (meson option `usdt`) nothing is left.
 */
#ifndef UTIL_PROBE_H
#define UTIL_PROBE_H

#ifdef UTIL_HAVE_USDT
#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#define PROBE(name, ...) STAP_PROBEV(busbar, name, __VA_ARGS__)
#else
static inline void probe_arguments(int first, ...)
{
}

/* Never runs: keeps the arguments used and checked. */
#define PROBE(name, ...)                                 \
	do {                                             \
		if (0)                                   \
			probe_arguments(0, __VA_ARGS__); \
	} while (0)
#endif

#endif
