/* SPDX-License-Identifier: MIT */
/* Counts what the calling thread allocates: takes the place of the C library's malloc in the test program. */
#pragma once
#include <stdint.h>

/* Allocations of the calling thread so far. Always 0 where a sanitizer has a malloc of its own: see allocations_are_counted. */
uint64_t allocations_of_this_thread(void);
int allocations_are_counted(void);
