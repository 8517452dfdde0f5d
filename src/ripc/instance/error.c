/* SPDX-License-Identifier: BSD-2-Clause */
/* The sentence for a thread's last error. */
#include <stdarg.h>
#include <stdio.h>

#include "ripc/instance/instance.h"

static _Thread_local char sentence[256];

int ripc_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	return err;
}

const char *ripc_error(void)
{
	return sentence[0] ? sentence : "no error";
}
