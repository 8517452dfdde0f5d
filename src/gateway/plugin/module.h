/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a module says about how it was built, so that a gateway with other structures
 * refuses it when it is loaded and does not crash later. One file of each module has
 *
 *	#include "gateway/plugin/module.h"
 *
 *	PLUGIN_MODULE();
 *
 * beside its const struct node_type node_NAME, hook_type hook_NAME or format_type
 * format_NAME. Plug-ins that are part of the executable need nothing.
 */
#ifndef GATEWAY_PLUGIN_MODULE_H
#define GATEWAY_PLUGIN_MODULE_H

#include <stdint.h>

#include "gateway/config/config.h"
#include "gateway/plugin/format.h"
#include "gateway/plugin/hook.h"
#include "gateway/plugin/node.h"
#include "gateway/plugin/services.h"
#include "gateway/sample/sample.h"

/*
 * Of all that the headers beside this one declare. It rises by one when a module has
 * to be changed or built again: a function, member or constant is taken away, means
 * something else or lies in another place. The sizes find what was forgotten.
 */
#define PLUGIN_INTERFACE 7

/* Structures that both sides look into, and the order of their sizes. */
#define PLUGIN_STRUCTURES(X) \
	X(node_type) X(node) X(services) X(hook_type) X(hook) X(format_type) \
	X(format) X(sample) X(signal) X(signal_list) X(config_key) X(node_figure)

#define PLUGIN_SIZE_OF(name) (uint32_t)sizeof(struct name),
#define PLUGIN_SIZES { PLUGIN_STRUCTURES(PLUGIN_SIZE_OF) }

/* The first member stays where it is in every version. */
struct plugin_interface {
	uint32_t version; /* PLUGIN_INTERFACE */
	uint32_t sizes[sizeof((uint32_t[])PLUGIN_SIZES) / sizeof(uint32_t)];
};

/* Of a module; seen by the gateway whatever -fvisibility says. */
#define PLUGIN_MODULE() \
	extern const struct plugin_interface busbar_plugin_interface; \
	__attribute__((visibility("default"), used)) \
	const struct plugin_interface busbar_plugin_interface = { \
		.version = PLUGIN_INTERFACE, .sizes = PLUGIN_SIZES, \
	}

#endif
