/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probe points for perf, bpftrace and SystemTap (USDT).
 *
 * PROBE(name, arguments...) is one nop in the code and a note in the file with its
 * address and the places of the arguments, so the arguments should be values that exist
 * anyway: integers, at most twelve. (clang stores them on the stack; gcc describes
 * them where they are.) busbar-probes(7) documents each probe. Without <sys/sdt.h>
 * (meson option `usdt`) nothing is generated.
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

/* Never executed: lets the compiler check the arguments and count them as used. */
#define PROBE(name, ...)                                 \
	do {                                             \
		if (0)                                   \
			probe_arguments(0, __VA_ARGS__); \
	} while (0)
#endif

#endif
