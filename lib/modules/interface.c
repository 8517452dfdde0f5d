/* SPDX-License-Identifier: BSD-2-Clause */
/* What the modules of this tree say about their version; see module.h. */
#include "gateway/plugin/module.h"

PLUGIN_MODULE();
