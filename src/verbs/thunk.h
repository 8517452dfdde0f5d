/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private function is a jump through a pointer, which points to its stub or, when the
 * system's library is open, to that library's function. The prototypes differ between
 * nodes, so all argument registers must be passed unchanged, which C cannot express.
 * For the generated code only.
 */
#ifndef VERBS_THUNK_H
#define VERBS_THUNK_H

#if defined(__x86_64__)
#define VERBS_CAN_FORWARD 1
#define VERBS_THUNK_CODE(slot) "endbr64\njmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
/* x16 and x17 are reserved for linkers: a call may change them. */
#define VERBS_CAN_FORWARD 1
#define VERBS_THUNK_CODE(slot)                   \
	"hint #34\nadrp x16, " slot "\n"         \
	"ldr x17, [x16, #:lo12:" slot "]\nbr x17\n"
#else
/* Without a jump for this machine there are only stubs, and the system's library is
 * not opened. */
#define VERBS_CAN_FORWARD 0
#endif

#if VERBS_CAN_FORWARD
#define VERBS_THUNK_LABEL(name)                                            \
	".pushsection .text\n.p2align 4\n"                                 \
	".globl verbs_thunk_" #name "\n.hidden verbs_thunk_" #name "\n"    \
	".type verbs_thunk_" #name ", %function\n"                         \
	"verbs_thunk_" #name ":\n" VERBS_THUNK_CODE("verbs_jump_" #name)   \
	".size verbs_thunk_" #name ", .-verbs_thunk_" #name "\n.popsection\n"
#else
#define VERBS_THUNK_LABEL(name) \
	".set verbs_thunk_" #name ", verbs_stub_" #name "\n"
#endif

/* verbs_thunk_<name> jumps to *verbs_jump_<name>, which is initially the stub. */
#define VERBS_THUNK(name)                                                    \
	__attribute__((visibility("hidden"))) extern verbs_jump              \
		verbs_jump_##name;                                           \
	__attribute__((used)) verbs_jump verbs_jump_##name =                 \
		(verbs_jump)verbs_stub_##name;                               \
	__asm__(VERBS_THUNK_LABEL(name))

#endif
