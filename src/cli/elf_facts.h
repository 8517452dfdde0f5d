/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts about a program file that `busbar exec` needs before it starts the program: will
 * the dynamic loader use LD_LIBRARY_PATH? Only reads files.
 */
#ifndef CLI_ELF_FACTS_H
#define CLI_ELF_FACTS_H

#include <stdbool.h>

struct elf_facts {
	bool elf;        /* an ELF file of this machine's word size */
	bool foreign;    /* an ELF file of another word size or machine */
	bool linked;     /* has a dynamic loader */
	bool rpath;      /* DT_RPATH without DT_RUNPATH: precedes LD_LIBRARY_PATH */
	bool secure;     /* set-user-id, set-group-id or file capabilities */
};

/* 0, or the negative errno of opening or reading `path`. */
int elf_facts_read(const char *path, struct elf_facts *facts);

/*
 * The numbers N of the nodes IBVERBS_PRIVATE_N in a library, at most `max`; returns how
 * many were found (0 also if the file cannot be read).
 */
unsigned elf_private_versions(const char *path, unsigned versions[],
			      unsigned max);

#endif
