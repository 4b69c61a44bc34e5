// A run that waits for another driver's fence: a sync_file of a buffer that
// vgem, as a GPU does, has not finished yet. Run by tests in the guest, as a
// program of the daemon's.
//
//   vm_sync_file MODEL
//
// Exit code 0: all is as it should be; 1: what is not, is said.

#include <drm.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "rknnd.hpp"

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience(60'000);
constexpr int kNodes = 16;

void Require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

template <class Argument>
void Call(int fd, unsigned long request,  // NOLINT(google-runtime-int): ioctl's
          Argument* argument, const char* what) {
  while (ioctl(fd, request, argument) != 0) {
    if (errno == EINTR) continue;
    throw std::system_error(errno, std::generic_category(), what);
  }
}

// vgem's calls of its own, which no package's header has: it stands in for a
// GPU's work, which ends when it is told to, or fails after ten seconds.
struct FenceAttach {
  uint32_t handle, flags, fence, pad;
};
struct FenceSignal {
  uint32_t fence, flags;
};
constexpr uint32_t kForWriting = 1;
constexpr auto kAttach = DRM_IOWR(DRM_COMMAND_BASE + 1, FenceAttach);
constexpr auto kSignal = DRM_IOW(DRM_COMMAND_BASE + 2, FenceSignal);

// A buffer that vgem's "GPU" writes.
class Rendering {
 public:
  Rendering() {
    for (int i = 0; i < kNodes && !node_; ++i) {
      const std::string path = "/dev/dri/card" + std::to_string(i);
      rknnd::Fence node(open(path.c_str(), O_RDWR | O_CLOEXEC));
      std::array<char, 32> name{};
      drm_version version{};
      version.name = name.data();
      version.name_len = name.size() - 1;
      if (node && ioctl(node.fd(), DRM_IOCTL_VERSION, &version) == 0 &&
          std::strcmp(name.data(), "vgem") == 0) {
        node_ = std::move(node);
      }
    }
    Require(bool(node_), "no vgem here");
    drm_mode_create_dumb create{};
    create.width = 1024;
    create.height = 1;
    create.bpp = 32;
    Call(node_.fd(), DRM_IOCTL_MODE_CREATE_DUMB, &create, "dumb buffer");
    drm_prime_handle prime{};
    prime.handle = create.handle;
    prime.flags = DRM_CLOEXEC | DRM_RDWR;
    Call(node_.fd(), DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime, "PRIME export");
    buffer_ = rknnd::Fence(prime.fd);
    FenceAttach attach{};
    attach.handle = create.handle;
    attach.flags = kForWriting;
    Call(node_.fd(), kAttach, &attach, "VGEM_FENCE_ATTACH");
    fence_ = attach.fence;
  }

  // What can be read when the picture is there.
  [[nodiscard]] rknnd::Fence ExportFence() const {
    dma_buf_export_sync_file exported{};
    exported.flags = DMA_BUF_SYNC_READ;
    exported.fd = -1;
    Call(buffer_.fd(), DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &exported,
         "EXPORT_SYNC_FILE");
    return rknnd::Fence(exported.fd);
  }
  [[nodiscard]] int buffer() const { return buffer_.fd(); }
  void End() {
    FenceSignal signal{};
    signal.fence = fence_;
    Call(node_.fd(), kSignal, &signal, "VGEM_FENCE_SIGNAL");
  }

 private:
  rknnd::Fence node_, buffer_;
  uint32_t fence_ = 0;
};

void Main(const std::string& model) {
  rknnd::Context context = rknnd::Context::FromFile(model);
  std::vector<rknnd::Memory> memories;
  for (uint32_t i = 0; i < context.inputs().size(); ++i) {
    memories.push_back(context.AllocateInput(i));
    context.BindInput(i, memories.back());
  }
  for (uint32_t i = 0; i < context.outputs().size(); ++i) {
    memories.push_back(context.AllocateOutput(i));
    context.BindOutput(i, memories.back());
  }

  Rendering rendering;
  // What waits for the GPU is the run, not this program.
  {
    const rknnd::Fence drawn = rendering.ExportFence();
    context.Submit(rknnd::RunOptions().After(drawn));
  }
  Require(!context.WaitFor(0, milliseconds(50)), "it ran before the picture");
  rendering.End();
  const auto run = context.WaitFor(0, kPatience);
  Require(run.has_value() && run->ok(), "it did not run behind the picture");

  // One that is signalled already.
  context.Submit(rknnd::RunOptions().After(rendering.ExportFence()));
  Require(context.Wait().ok(), "a fence that was signalled holds a run up");

  // The buffer itself is none, and the way to one is told.
  try {
    context.Submit(rknnd::RunOptions().After(rendering.buffer()));
    Require(false, "a dma-buf was taken for a fence");
  } catch (const rknnd::Error& error) {
    Require(
        std::strstr(error.what(), "DMA_BUF_IOCTL_EXPORT_SYNC_FILE") != nullptr,
        error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    Main(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vm_sync_file: %s\n", error.what());
    return 1;
  }
}
