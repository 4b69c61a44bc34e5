// A worker process: hosts the vendor's library for the daemon, which may lose
// it at any moment. `rknnd --device-worker` is one.

#ifndef DRIVER_RKNNRT_WORKER_WORKER_H_
#define DRIVER_RKNNRT_WORKER_WORKER_H_

namespace rknnd::rknnrt {

// Serves the daemon at the other end of kWorkerSocket until that is closed.
// Before any other thread is there. Ends the process.
[[noreturn]] void RunWorker();

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_WORKER_WORKER_H_
