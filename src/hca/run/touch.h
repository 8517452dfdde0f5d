/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A look at memory of the program before the adapter copies from or to it. Registration pins
 * nothing, so a program may have unmapped a buffer since; a copy would then end the program by
 * a signal. These functions touch one byte of each page with an instruction whose fault is an
 * answer: the handler of SIGSEGV and SIGBUS finds it in a table and continues elsewhere, as
 * the kernel does with its own copies from user memory. Where memory is mapped they cost an
 * instruction a page, and no system call.
 *
 * A page that another thread of the program unmaps between the look and the copy ends it all
 * the same, as does any page where the program has replaced the handler.
 */
#ifndef HCA_TOUCH_H
#define HCA_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/container_of.h"

/* The distance of looks; no page is smaller. */
#define HCA_TOUCH_PAGE 4096u

/* When the adapter starts and stops; one thread at a time. */
void hca_touch_start(void);
void hca_touch_stop(void);

/* An instruction that may fault, and the place to continue at: as distances from the fields
 * themselves, so that the table needs no relocation. */
struct hca_touch_entry {
	int32_t instruction, elsewhere;
};

#define HCA_TOUCH_ENTRY(label)                 \
	".pushsection busbar_touch, \"a\"\n\t" \
	".balign 4\n\t"                        \
	".long " label " - .\n\t"              \
	".long %l[missing] - .\n\t"            \
	".popsection\n\t"

#if defined(__x86_64__)
#define HCA_TOUCH_READ "771: cmpb $0, (%0)\n\t" HCA_TOUCH_ENTRY("771b")
#define HCA_TOUCH_WRITE "771: orb $0, (%0)\n\t" HCA_TOUCH_ENTRY("771b")
#define HCA_TOUCH_ATOMIC "771: lock orb $0, (%0)\n\t" HCA_TOUCH_ENTRY("771b")
#define HCA_TOUCH_CLOBBERS "cc", "memory"
#elif defined(__aarch64__)
#define HCA_TOUCH_READ "771: ldrb w9, [%0]\n\t" HCA_TOUCH_ENTRY("771b")
#define HCA_TOUCH_WRITE                                                    \
	"771: ldrb w9, [%0]\n\t" HCA_TOUCH_ENTRY("771b")                   \
	"772: strb w9, [%0]\n\t" HCA_TOUCH_ENTRY("772b")
#define HCA_TOUCH_ATOMIC                                                   \
	"771: ldxrb w9, [%0]\n\t" HCA_TOUCH_ENTRY("771b")                  \
	"772: stxrb w10, w9, [%0]\n\t" HCA_TOUCH_ENTRY("772b")             \
	"cbnz w10, 771b\n\t"
#define HCA_TOUCH_CLOBBERS "x9", "x10", "memory"
#endif

#ifdef HCA_TOUCH_READ
/* True: the byte is there. It is not changed. */
#define HCA_TOUCH_FUNCTION(name, code)                                             \
	static inline bool name(const void *at)                                    \
	{                                                                          \
		__asm__ goto(code : : "r"(at) : HCA_TOUCH_CLOBBERS : missing);     \
		return true;                                                       \
	missing:                                                                   \
		return false;                                                      \
	}
#else
#define HCA_TOUCH_FUNCTION(name, code)          \
	static inline bool name(const void *at) \
	{                                       \
		(void)at;                       \
		return true;                    \
	}
#endif

HCA_TOUCH_FUNCTION(hca_touch_one_read, HCA_TOUCH_READ)
/* Stores the byte that it has read: only for memory that the caller writes to next. */
HCA_TOUCH_FUNCTION(hca_touch_one_write, HCA_TOUCH_WRITE)
/* As hca_touch_one_write(), by an atomic instruction: no store of another thread is lost. */
HCA_TOUCH_FUNCTION(hca_touch_atomic, HCA_TOUCH_ATOMIC)

bool hca_touch_more(const uint8_t *at, size_t length, bool write);

/* May all of [at, at + length) be read, or be written? */
static inline bool hca_touch_read(const void *at, size_t length)
{
	if (unlikely(length > HCA_TOUCH_PAGE - (uintptr_t)at % HCA_TOUCH_PAGE))
		return hca_touch_more(at, length, false);
	return !length || hca_touch_one_read(at);
}

static inline bool hca_touch_write(void *at, size_t length)
{
	if (unlikely(length > HCA_TOUCH_PAGE - (uintptr_t)at % HCA_TOUCH_PAGE))
		return hca_touch_more(at, length, true);
	return !length || hca_touch_one_write(at);
}

#endif
