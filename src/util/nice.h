/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The nice value of a process: its threads' share of the processors among threads of
 * the class SCHED_OTHER; see sched(7).
 */
#ifndef UTIL_NICE_H
#define UTIL_NICE_H

/*
 * Sets the nice value, -20 (largest share) to 19, of all threads of this process that have
 * the value `was`; threads with another value chose it themselves. Threads started later
 * inherit it. 0, or -errno of the first failure; -EACCES: neither CAP_SYS_NICE nor
 * RLIMIT_NICE allows it.
 */
int nice_set(int value, int was);

/*
 * With autogroups, Linux shares the processors first between sessions and then between
 * the threads of a session: a nice value has an effect only inside the session unless
 * the group's is set as well. Sets it if this process leads its session, whose other
 * processes are then its children. 0: done, or there are no such groups; -EXDEV:
 * another process leads the session; or -errno.
 */
int nice_set_session(int value);

#endif
