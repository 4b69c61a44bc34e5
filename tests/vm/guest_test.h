// The fixture of tests in the guest: an integration test with givers of
// dma-bufs, and with the kernel's own word on which of them are left.

#ifndef TESTS_VM_GUEST_TEST_H_
#define TESTS_VM_GUEST_TEST_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::vm {

using integration::Done;
using integration::Eventually;
using integration::Fails;
using integration::Reply;
using integration::Right;

// A process of giver.cc. Thread: any, one at a time.
class Giver {
 public:
  // `what`: the arguments behind the socket.
  Giver(std::string socket, const std::vector<std::string>& what);

  // Its answer's value; fails the test where that is an error.
  std::string Do(const std::string& command);
  void Send(const std::string& command);
  std::string Receive();
  void Kill();
  // In order, and until it is gone.
  void End();

  // As `import` of the runner wants it: the buffer of this number.
  [[nodiscard]] std::string From(int index) const {
    return "from:" + socket_ + ":" + std::to_string(index);
  }

 private:
  const std::string socket_;
  base::ChildProcess process_;
};

class GuestTest : public integration::IntegrationTest {
 protected:
  std::unique_ptr<Giver> StartGiver(const std::vector<std::string>& what);

  // `client` imports the giver's buffer of this number: "MEM CTX", and bytes.
  static Reply Import(integration::ClientProcess& client, Giver& giver,
                      int index, const std::string& names, size_t bytes);

  // DMA_BUF_IOCTL_SYNC of this daemon's jobs so far, by its own count.
  struct Syncs {
    uint64_t done = 0, skipped = 0;
  };
  Syncs CountSyncs();
  // The same by the kernel's, of all processes: calls that began an access of
  // the CPU, and all calls.
  struct KernelSyncs {
    uint64_t begun = 0, calls = 0;
  };
  static KernelSyncs CountKernelSyncs();
  // What `rknnctl buffers` says of all buffers: their heaps.
  std::vector<std::string> Heaps();

  // dma-bufs of the whole machine, by the kernel's own list.
  static size_t DmaBufs();
  // The exporters of the dma-bufs that a process has open, and whether it has
  // any mapped.
  static std::vector<std::string> Exporters(pid_t process);
  static bool MapsDmaBufs(pid_t process);

 private:
  int givers_ = 0;
};

}  // namespace rknnd::vm

#endif  // TESTS_VM_GUEST_TEST_H_
