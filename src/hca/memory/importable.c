/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that can be imported; see import.h. The lists are under process.lock. */
#include "hca/object/importable.h"

#include "hca/memory/import.h"
#include "hca/share/process.h"
#include "util/list.h"

void hca_importable_add(struct list *all, struct hca_importable *object,
			struct ibv_context *context, uint32_t handle)
{
	object->context = context;
	object->handle = handle;
	pthread_mutex_lock(&hca_process.lock);
	list_push(all, &object->entry);
	pthread_mutex_unlock(&hca_process.lock);
}

struct hca_importable *hca_importable_get(struct list *all,
					  const struct ibv_context *context,
					  uint32_t handle)
{
	struct hca_importable *found = NULL;

	pthread_mutex_lock(&hca_process.lock);
	list_for_each(o, all, struct hca_importable, entry) {
		if (o->handle == handle && o->context->device == context->device &&
		    !hca_context_inherited(o->context)) {
			atomic_fetch_add(&o->users, 1);
			found = o;
			break;
		}
	}
	pthread_mutex_unlock(&hca_process.lock);
	return found;
}

bool hca_importable_remove(struct hca_importable *object)
{
	bool unused;

	/* process.lock keeps other threads from importing it between test and removal. */
	pthread_mutex_lock(&hca_process.lock);
	unused = atomic_load(&object->users) == 0;
	if (unused)
		list_remove(&object->entry);
	pthread_mutex_unlock(&hca_process.lock);
	return unused;
}
