/* SPDX-License-Identifier: BSD-2-Clause */
/* The listener of this library, for the functions that call it; see data.h. */
#ifndef PRELOAD_LISTENER_H
#define PRELOAD_LISTENER_H

#include "preload/data.h"

/* No member is NULL. */
extern struct preload_listener preload_listener;

#endif
