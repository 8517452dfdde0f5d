/* SPDX-License-Identifier: BSD-2-Clause */
/* Which connector an identifier uses. */
#include "rdmacm/object/connector.h"

#include <errno.h>

#include "rdmacm/object/id.h"

const struct cma_connector *cma_connectors[CMA_CONNECTORS];

int cma_connector_open(struct cma_id *id, enum cma_connector_number number)
{
	return id->sides[number] ? 0 : cma_connectors[number]->open(id);
}

int cma_connector_choose(struct cma_id *id, const struct ibv_device *device)
{
	for (enum cma_connector_number i = 0; i < CMA_CONNECTORS; i++) {
		if (cma_connectors[i]->transport != device->transport_type)
			continue;
		id->connector = cma_connectors[i];
		return cma_connector_open(id, i);
	}
	return -EOPNOTSUPP;
}

int cma_connectors_find_way(bool local)
{
	int ret = -ENETUNREACH;

	for (enum cma_connector_number i = 0; i < CMA_CONNECTORS && ret < 0; i++)
		ret = cma_connectors[i]->find_way(local);
	return ret;
}
