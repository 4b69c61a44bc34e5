// What tests have their device start in place of `rknnd --device-worker`. With
// an argument it is a worker that has lost its mind: it answers the first order
// with as many bytes as that says, and floods the socket.

#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/posix/socket.h"
#include "driver/rknnrt/protocol.h"
#include "driver/rknnrt/worker/worker.h"

int main(int argc, char** argv) {
  if (argc < 2) rknnd::rknnrt::RunWorker();
  const auto size = static_cast<size_t>(std::atoi(argv[1]));
  std::vector<std::byte> order(4096);
  (void)rknnd::base::ReceiveMessage(rknnd::rknnrt::kWorkerSocket, order,
                                    rknnd::base::Block::kYes)
      .ok();
  const std::vector<std::byte> garbage(size, std::byte{0xa5});
  for (int i = 0; i < 100; ++i) {
    (void)rknnd::base::SendMessage(rknnd::rknnrt::kWorkerSocket, garbage, {},
                                   rknnd::base::Block::kNo)
        .ok();
  }
  return 0;
}
