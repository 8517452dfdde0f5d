/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries below /sys and /dev for devices that the kernel does not know (soft0). In a
 * module, because it needs verbs.
 */
#ifndef CLI_EXEC_TREE_H
#define CLI_EXEC_TREE_H

/*
 * Writes the entries of all such devices below the folder `root`
 * ("ROOT/sys/class/infiniband/soft0" ...), from their attributes. 0, or a negative errno,
 * logged.
 */
int cli_exec_tree(const char *root);

#endif
