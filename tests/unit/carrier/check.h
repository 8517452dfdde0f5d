/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of the tests of carriers; they hold with every way of building. */
#ifndef TESTS_UNIT_CARRIER_CHECK_H
#define TESTS_UNIT_CARRIER_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define check(what)                                                             \
	do {                                                                    \
		if (!(what)) {                                                  \
			printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #what); \
			exit(1);                                                \
		}                                                               \
	} while (0)

#define run_test(name)                  \
	do {                            \
		name();                 \
		printf("ok %s\n", #name); \
	} while (0)

#endif
