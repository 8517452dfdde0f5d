/* SPDX-License-Identifier: BSD-2-Clause */
/* See alloc.h. */
#include "alloc.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
extern const char __executable_start;

char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
FILE *__real_open_memstream(char **buf, size_t *size);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_asprintf(char **out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
FILE *__wrap_open_memstream(char **buf, size_t *size);

static _Thread_local unsigned left, failing;
static _Thread_local const void *failed_at;

static bool fails(const void *at)
{
	if (!failing)
		return false;
	if (left) {
		left--;
		return false;
	}
	failing--;
	if (!failed_at)
		failed_at = at;
	errno = ENOMEM;
	return true;
}

#define FAILS() fails(__builtin_return_address(0))

void *__wrap_malloc(size_t size)
{
	return FAILS() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return FAILS() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return FAILS() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return FAILS() ? NULL : __real_reallocarray(p, n, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return FAILS() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *s)
{
	return FAILS() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return FAILS() ? NULL : __real_strndup(s, n);
}

int __wrap_asprintf(char **out, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (FAILS())
		return -1;
	va_start(ap, fmt);
	n = vasprintf(out, fmt, ap);
	va_end(ap);
	return n;
}

FILE *__wrap_open_memstream(char **buf, size_t *size)
{
	return FAILS() ? NULL : __real_open_memstream(buf, size);
}

void alloc_init(void)
{
	json_set_alloc_funcs(__wrap_malloc, free);
}

void alloc_fail(unsigned after, unsigned count)
{
	left = after;
	failing = count;
	failed_at = NULL;
}

bool alloc_succeed(void)
{
	failing = 0;
	return failed_at;
}

const void *alloc_failed_at(void)
{
	return (const void *)((const char *)failed_at - &__executable_start);
}
