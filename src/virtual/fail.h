/* SPDX-License-Identifier: BSD-2-Clause */
/* What must hold in a program in virtual time: it ends where it does not. */
#ifndef VIRTUAL_FAIL_H
#define VIRTUAL_FAIL_H

/* Prints the place and the message, calls `virtual_failing`, and ends the process with status 1. */
_Noreturn void virtual_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Prints what the program was doing; NULL: nothing. */
extern void (*virtual_failing)(void);

#define fail(...) virtual_fail(__FILE__, __LINE__, __VA_ARGS__)
#define expect(cond)                                    \
	do {                                            \
		if (!(cond))                            \
			fail("expected: %s", #cond);    \
	} while (0)
#define expect_eq(got, want)                                                      \
	do {                                                                      \
		long long got_ = (long long)(got), want_ = (long long)(want);     \
		if (got_ != want_)                                                \
			fail("%s is %lld, expected %s = %lld", #got, got_, #want, \
			     want_);                                              \
	} while (0)

#endif
