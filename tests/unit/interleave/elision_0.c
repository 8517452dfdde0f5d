/* SPDX-License-Identifier: BSD-2-Clause */
#define ELISION_THREAD 0
#include "elision_thread.h"
