/* SPDX-License-Identifier: BSD-2-Clause */
/* src/transport/shm/move/tx.c with its own shm_wake(); other sources call the replacement. */
#undef shm_wake
#include "../../../src/transport/shm/move/tx.c"
#include "transport/shm/move/send.h"
