#include "driver/soft/kernels/threads.h"

// libgomp's, whichever compiler is used: oneDNN was built with it. <omp.h>
// would be that of the compiler.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int);
}

namespace rknnd::soft {

SingleThreaded::SingleThreaded() : before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}

SingleThreaded::~SingleThreaded() { omp_set_num_threads(before_); }

void SingleThreaded::Forever() { omp_set_num_threads(1); }

}  // namespace rknnd::soft
