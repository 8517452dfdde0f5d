/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs find below /sys and /dev of devices that the kernel does not know.
 * In a module, because it needs verbs.
 */
#ifndef CLI_EXEC_TREE_H
#define CLI_EXEC_TREE_H

/*
 * Writes the entries of all such devices below the folder `root`
 * ("ROOT/sys/class/infiniband/soft0" ...), by what verbs say of them. 0, or a negative
 * errno, logged.
 */
int cli_exec_tree(const char *root);

#endif
