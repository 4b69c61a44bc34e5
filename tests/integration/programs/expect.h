/* What the C programs of these tests share: a broken expectation is printed and
 * counted in `faults`, a call that never fails ends the program with 2. */

#ifndef TESTS_INTEGRATION_PROGRAMS_EXPECT_H_
#define TESTS_INTEGRATION_PROGRAMS_EXPECT_H_

#include <stdio.h>
#include <stdlib.h>

#include "rknn_api.h"

static int faults = 0;

#define EXPECT(condition)                                \
  do {                                                   \
    if (!(condition)) {                                  \
      printf("line %d: not %s\n", __LINE__, #condition); \
      ++faults;                                          \
    }                                                    \
  } while (0)

#define MUST(call)                                        \
  do {                                                    \
    int must_code = (call);                               \
    if (must_code != RKNN_SUCC) {                         \
      fprintf(stderr, "%s gives %d\n", #call, must_code); \
      exit(2);                                            \
    }                                                     \
  } while (0)

#endif /* TESTS_INTEGRATION_PROGRAMS_EXPECT_H_ */
