#include "tests/vm/dma_bufs.h"

#include <drm.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <linux/videodev2.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include "base/posix/memfd.h"

namespace rknnd::vm {
namespace {

constexpr int kNodes = 16;  // of a kind, at most, in the guest

template <class Argument>
void Call(int fd, unsigned long request,  // NOLINT(google-runtime-int): ioctl's
          Argument* argument, const char* what) {
  while (ioctl(fd, request, argument) != 0) {
    if (errno == EINTR) continue;
    throw std::system_error(errno, std::generic_category(), what);
  }
}

base::UniqueFd OpenNode(const std::string& path) {
  return base::UniqueFd(open(path.c_str(), O_RDWR | O_CLOEXEC));
}

// The DRM node that may make dumb buffers.
base::UniqueFd OpenVgem() {
  for (int i = 0; i < kNodes; ++i) {
    base::UniqueFd node = OpenNode("/dev/dri/card" + std::to_string(i));
    std::array<char, 32> name{};
    drm_version version{};
    version.name = name.data();
    version.name_len = name.size() - 1;
    if (node.valid() && ioctl(node.get(), DRM_IOCTL_VERSION, &version) == 0 &&
        std::strcmp(name.data(), "vgem") == 0) {
      return node;
    }
  }
  throw std::runtime_error("no vgem here");
}

base::UniqueFd OpenVivid() {
  for (int i = 0; i < kNodes; ++i) {
    base::UniqueFd node = OpenNode("/dev/video" + std::to_string(i));
    v4l2_capability capability{};
    if (node.valid() && ioctl(node.get(), VIDIOC_QUERYCAP, &capability) == 0 &&
        (capability.device_caps & V4L2_CAP_VIDEO_CAPTURE) != 0) {
      return node;
    }
  }
  throw std::runtime_error("no camera here");
}

// The CPU's access to a dma-buf, told to the kernel.
class CpuAccess {
 public:
  CpuAccess(int fd, uint64_t flags) : fd_(fd), flags_(flags) {
    dma_buf_sync sync{DMA_BUF_SYNC_START | flags_};
    Call(fd_, DMA_BUF_IOCTL_SYNC, &sync, "DMA_BUF_IOCTL_SYNC");
  }
  ~CpuAccess() {
    dma_buf_sync sync{DMA_BUF_SYNC_END | flags_};
    ioctl(fd_, DMA_BUF_IOCTL_SYNC, &sync);
  }
  CpuAccess(const CpuAccess&) = delete;
  CpuAccess& operator=(const CpuAccess&) = delete;

 private:
  const int fd_;
  const uint64_t flags_;
};

}  // namespace

DmaBuf::DmaBuf(base::UniqueFd fd, size_t size, base::Mapping::Access access)
    : fd_(std::move(fd)) {
  auto mapping = base::Mapping::OfFd(fd_.get(), 0, size, access);
  if (!mapping) throw std::runtime_error(mapping.error().message);
  mapping_ = *std::move(mapping);
}

void DmaBuf::Save(const std::string& path, size_t size) const {
  const CpuAccess access(fd(), DMA_BUF_SYNC_READ);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(mapping_.data()),
             static_cast<std::streamsize>(std::min(size, mapping_.size())));
  if (!file.flush()) throw std::runtime_error("cannot write '" + path + "'");
}

void DmaBuf::Load(const std::string& path) {
  const CpuAccess access(fd(), DMA_BUF_SYNC_WRITE);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read '" + path + "'");
  file.read(reinterpret_cast<char*>(mapping_.data()),
            static_cast<std::streamsize>(mapping_.size()));
}

std::vector<DmaBuf> MakeUdmabufs(size_t size, int count) {
  const base::UniqueFd node = OpenNode("/dev/udmabuf");
  std::vector<DmaBuf> buffers;
  for (int i = 0; i < count; ++i) {
    const auto memory = base::MakeMemfd("giver", size);
    if (!memory) throw std::runtime_error(memory.error().message);
    udmabuf_create create{};
    create.memfd = static_cast<uint32_t>(memory->get());
    create.flags = UDMABUF_FLAGS_CLOEXEC;
    create.size = size;
    base::UniqueFd fd(ioctl(node.get(), UDMABUF_CREATE, &create));
    if (!fd.valid()) {
      throw std::system_error(errno, std::generic_category(), "UDMABUF_CREATE");
    }
    buffers.emplace_back(std::move(fd), size,
                         base::Mapping::Access::kReadWrite);
  }
  return buffers;
}

std::vector<DmaBuf> MakePrimeBuffers(size_t size, int count) {
  // Its handles end with it; what was handed out stays.
  const base::UniqueFd node = OpenVgem();
  std::vector<DmaBuf> buffers;
  for (int i = 0; i < count; ++i) {
    drm_mode_create_dumb create{};
    create.width = static_cast<uint32_t>(size / 4);
    create.height = 1;
    create.bpp = 32;
    Call(node.get(), DRM_IOCTL_MODE_CREATE_DUMB, &create, "dumb buffer");
    drm_prime_handle prime{};
    prime.handle = create.handle;
    prime.flags = DRM_CLOEXEC | DRM_RDWR;
    Call(node.get(), DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime, "PRIME export");
    buffers.emplace_back(base::UniqueFd(prime.fd), create.size,
                         base::Mapping::Access::kReadWrite);
  }
  return buffers;
}

Camera::Camera(const Options& options) : node_(OpenVivid()) {
  if (options.fourcc.size() != 4) throw std::runtime_error("no such fourcc");
  int webcam = 0;
  Call(node_.get(), VIDIOC_S_INPUT, &webcam, "VIDIOC_S_INPUT");
  v4l2_format format{};
  format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  format.fmt.pix.width = options.width;
  format.fmt.pix.height = options.height;
  std::memcpy(&format.fmt.pix.pixelformat, options.fourcc.data(), 4);
  Call(node_.get(), VIDIOC_S_FMT, &format, "VIDIOC_S_FMT");
  if (format.fmt.pix.width != options.width ||
      format.fmt.pix.height != options.height) {
    throw std::runtime_error("the camera has no such picture");
  }
  frame_size_ = format.fmt.pix.sizeimage;
  v4l2_streamparm rate{};
  rate.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  rate.parm.capture.timeperframe = {1, 30};
  Call(node_.get(), VIDIOC_S_PARM, &rate, "VIDIOC_S_PARM");

  v4l2_requestbuffers request{};
  request.count = static_cast<uint32_t>(options.buffers);
  request.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  request.memory = V4L2_MEMORY_MMAP;
  Call(node_.get(), VIDIOC_REQBUFS, &request, "VIDIOC_REQBUFS");
  for (uint32_t i = 0; i < request.count; ++i) {
    v4l2_exportbuffer exported{};
    exported.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    exported.index = i;
    exported.flags = O_CLOEXEC | (options.writable ? O_RDWR : O_RDONLY);
    Call(node_.get(), VIDIOC_EXPBUF, &exported, "VIDIOC_EXPBUF");
    buffers_.emplace_back(base::UniqueFd(exported.fd), frame_size_,
                          options.writable ? base::Mapping::Access::kReadWrite
                                           : base::Mapping::Access::kRead);
    GiveBack(i);
  }
  int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  Call(node_.get(), VIDIOC_STREAMON, &type, "VIDIOC_STREAMON");
}

uint32_t Camera::NextFrame() {
  v4l2_buffer buffer{};
  buffer.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  buffer.memory = V4L2_MEMORY_MMAP;
  Call(node_.get(), VIDIOC_DQBUF, &buffer, "VIDIOC_DQBUF");
  return buffer.index;
}

void Camera::GiveBack(uint32_t number) {
  v4l2_buffer buffer{};
  buffer.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  buffer.memory = V4L2_MEMORY_MMAP;
  buffer.index = number;
  Call(node_.get(), VIDIOC_QBUF, &buffer, "VIDIOC_QBUF");
}

}  // namespace rknnd::vm
