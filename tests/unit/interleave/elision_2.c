/* SPDX-License-Identifier: BSD-2-Clause */
#define ELISION_THREAD 2
#include "elision_thread.h"
