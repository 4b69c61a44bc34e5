// OpenMP's number of threads, which oneDNN reads. One core is one thread: more
// would fight the other cores for the machine.

#ifndef DRIVER_SOFT_KERNELS_THREADS_H_
#define DRIVER_SOFT_KERNELS_THREADS_H_

namespace rknnd::soft {

// The calling thread computes alone while one of these lives on its stack; what
// the host process had set for it is put back. Thread: any.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

  // The same for good: for threads of our own.
  static void Forever();

 private:
  int before_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_THREADS_H_
