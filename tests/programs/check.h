/* A wrong answer is printed on the error stream, and ends the program with 1.
 * Needs no header of the API. */

#ifndef TESTS_PROGRAMS_CHECK_H_
#define TESTS_PROGRAMS_CHECK_H_

#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                         \
  do {                                                            \
    if (!(condition)) {                                           \
      fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
      exit(1);                                                    \
    }                                                             \
  } while (0)

#endif /* TESTS_PROGRAMS_CHECK_H_ */
