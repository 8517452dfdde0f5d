/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar doctor`: findings, and addresses as text. */
#include "cli/doctor.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

static bool found;

__attribute__((format(printf, 2, 0)))
static void say(const char *mark, const char *format, va_list args)
{
	printf("%-4s ", mark);
	vprintf(format, args);
	putchar('\n');
}

static void say_remedy(const char *remedy)
{
	if (remedy)
		printf("     -> %s\n", remedy);
	fflush(stdout);
}

void doctor_good(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("ok", format, args);
	va_end(args);
	fflush(stdout);
}

void doctor_note(const char *remedy, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("note", format, args);
	va_end(args);
	say_remedy(remedy);
}

void doctor_bad(const char *remedy, const char *format, ...)
{
	va_list args;

	found = true;
	va_start(args, format);
	say("BAD", format, args);
	va_end(args);
	say_remedy(remedy);
}

bool doctor_found(void)
{
	return found;
}

bool doctor_is_v4(const struct sockaddr_in6 *address)
{
	return IN6_IS_ADDR_V4MAPPED(&address->sin6_addr);
}

const char *doctor_text(const struct sockaddr_in6 *address, char *to)
{
	const uint8_t *bytes = address->sin6_addr.s6_addr;
	const char *text = doctor_is_v4(address) ?
		inet_ntop(AF_INET, bytes + 12, to, INET6_ADDRSTRLEN) :
		inet_ntop(AF_INET6, bytes, to, INET6_ADDRSTRLEN);

	return text ? text : "?";
}
