/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bodies behind the symbols of private and old nodes: what the generated stubs call,
 * and the few private functions that are called by programs and not by providers.
 */
#define LOG_ROOM "verbs"
#include "verbs/abi.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>

#include "hca/hca.h"
#include "util/log.h"
#include "verbs/abi-aliases.h"
#include "verbs/system.h"

int verbs_missing(const char *name)
{
	log_debug("private function %s has no effect here", name);
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

int verbs_refuse(const char *name)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		log_error("%s: this program was built against the 1.0 interface of libibverbs, whose structures differ; rebuild it against 1.1 or later",
			  name);
	errno = ENOSYS;
	return ENOSYS;
}

/* Numbered as in the provider interface; IB and RoCE v1 look the same in sysfs. */
enum ibv_gid_type_sysfs {
	GID_TYPE_SYSFS_IB_ROCE_V1,
	GID_TYPE_SYSFS_ROCE_V2,
};

int verbs_private_ibv_query_gid_type(struct ibv_context *context, uint8_t port,
				     unsigned int index,
				     enum ibv_gid_type_sysfs *type);
extern verbs_jump verbs_jump_ibv_query_gid_type;

/* 0 even for an empty entry: ibv_devinfo and pyverbs ask for every index. */
EXPORT int verbs_private_ibv_query_gid_type(struct ibv_context *context,
					    uint8_t port, unsigned int index,
					    enum ibv_gid_type_sysfs *type)
{
	struct ibv_gid_entry entry = { 0 };
	int ret;

	if (verbs_foreign(context))
		return verbs_jump_ibv_query_gid_type ?
			       ((__typeof__(&verbs_private_ibv_query_gid_type))
					verbs_jump_ibv_query_gid_type)(
				       context, port, index, type) :
			       verbs_minus1(-EOPNOTSUPP);
	if (!context || !type)
		return verbs_minus1(-EINVAL);
	ret = hca_gid_query(context, port, index, &entry);
	if (ret && ret != -ENODATA)
		return verbs_minus1(ret);
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ?
			GID_TYPE_SYSFS_ROCE_V2 :
			GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}
__asm__(VERBS_ALIASES_ibv_query_gid_type);
