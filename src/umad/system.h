/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system's libibumad.so.3, for devices of the kernel. It is opened by its absolute path when
 * the kernel has management devices (/sys/class/infiniband_mad), and never closed.
 */
#ifndef UMAD_SYSTEM_H
#define UMAD_SYSTEM_H

/* The function of the system's library, or NULL. */
void *umad_system_find(const char *name);

/* Calls the function of that name in the system's library, or gives `missing`. */
#define UMAD_SYSTEM(missing, function, ...)                                        \
	({                                                                         \
		__typeof__(&(function)) system_ = (__typeof__(&(function)))        \
			umad_system_find(#function);                               \
		system_ ? system_(__VA_ARGS__) : (missing);                        \
	})

#endif
