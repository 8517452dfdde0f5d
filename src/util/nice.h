/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The nice value of a whole process: how its threads share the processors with
 * others of the normal class, SCHED_OTHER; see sched(7).
 */
#ifndef UTIL_NICE_H
#define UTIL_NICE_H

/*
 * Gives all threads of this process the nice value, -20 (most of the processor) to
 * 19, but leaves alone those that do not have the value `was`: they chose theirs.
 * Threads started later inherit it. Returns 0 or -errno of the first refusal: -EACCES
 * without CAP_SYS_NICE or a limit (RLIMIT_NICE) that allows it.
 */
int nice_set(int value, int was);

/*
 * Linux may share the processors between sessions first and between the threads of
 * a session then (autogroup); a nice value counts only inside the session until that
 * of its group is set, too. Does so if this process is the leader of its session,
 * whose other programs are its children then. Returns 0 if it is done or there are no
 * such groups, -EXDEV if the session is another's, or -errno of the refusal.
 */
int nice_set_session(int value);

#endif
