// cmocka with what its header wants to see first.
#ifndef IOAT_TESTS_CMOCKA_ALL_H
#define IOAT_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
