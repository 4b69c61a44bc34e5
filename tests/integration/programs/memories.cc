// Memories of the runner: made, brought, bound, spoilt.

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/posix/socket.h"
#include "rknnd.h"
#include "tests/integration/programs/commands.h"

namespace rknnd::integration {
namespace {

constexpr uint64_t kHugePage = uint64_t{1} << 21;

uint64_t Number(const std::string& word) {
  return std::strtoull(word.c_str(), nullptr, 0);
}

base::UniqueFd Memfd(uint64_t size, unsigned int flags, int seals) {
  base::UniqueFd fd(memfd_create("runner", MFD_CLOEXEC | flags));
  if (fd.valid() && ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return {};
  }
  if (fd.valid() && seals != 0) fcntl(fd.get(), F_ADD_SEALS, seals);
  return fd;
}

// From a process that hands out descriptors at a socket: "PATH:INDEX", the one
// to take.
base::UniqueFd TakeFrom(const std::string& where) {
  const size_t colon = where.rfind(':');
  if (colon == std::string::npos) return {};
  const auto socket = base::ConnectUnix(where.substr(0, colon));
  if (!socket) return {};
  std::array<std::byte, 1> bytes{};
  auto message = base::ReceiveMessage(socket->get(), bytes, base::Block::kYes);
  const uint64_t index = Number(where.substr(colon + 1));
  if (!message || index >= message->fds.size()) return {};
  return std::move(message->fds[index]);
}

// A descriptor of some kind, good or bad; invalid: this machine has none.
base::UniqueFd Make(const std::string& kind, uint64_t size) {
  int pair[2] = {-1, -1};
  if (kind == "sealed") {
    return Memfd(size, MFD_ALLOW_SEALING, F_SEAL_SHRINK | F_SEAL_GROW);
  }
  if (kind == "readonly") {
    // A second descriptor of the same memory that allows no more.
    const base::UniqueFd whole =
        Memfd(size, MFD_ALLOW_SEALING, F_SEAL_SHRINK | F_SEAL_GROW);
    const std::string path = "/proc/self/fd/" + std::to_string(whole.get());
    return base::UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  constexpr char kFrom[] = "from:";
  if (kind.rfind(kFrom, 0) == 0) return TakeFrom(kind.substr(strlen(kFrom)));
  if (kind == "unsealed") return Memfd(size, MFD_ALLOW_SEALING, 0);
  if (kind == "unsealable") return Memfd(size, 0, 0);
  if (kind == "hugetlb") {
    // Whole pages; that none are set aside does not matter before they are
    // used.
    return Memfd(std::max(size, kHugePage), MFD_ALLOW_SEALING | MFD_HUGETLB,
                 F_SEAL_SHRINK);
  }
  if (kind == "pipe" && pipe2(pair, O_CLOEXEC) == 0) {
    const base::UniqueFd other(pair[1]);
    return base::UniqueFd(pair[0]);
  }
  if (kind == "socket" &&
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
    const base::UniqueFd other(pair[1]);
    return base::UniqueFd(pair[0]);
  }
  if (kind == "eventfd") return base::UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (kind == "device") {
    return base::UniqueFd(open("/dev/zero", O_RDWR | O_CLOEXEC));
  }
  if (kind == "file") {
    return base::UniqueFd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  }
  return {};
}

}  // namespace

rknn_tensor_mem* Commands::Mem(const std::string& name) const {
  const auto found = memories_.find(name);
  return found == memories_.end() ? nullptr : found->second.mem;
}

Reply Commands::Create(const Words& words) {
  Memory memory;
  memory.context = Context(words[2]);
  memory.mem = rknn_create_mem2(memory.context, Number(words[3]),
                                words.size() > 4 ? Number(words[4]) : 0);
  if (memory.mem == nullptr) return Answer(RKNN_ERR_FAIL);
  memories_[words[1]] = std::move(memory);
  return {};
}

Reply Commands::Import(const Words& words) {
  Memory memory;
  memory.context = Context(words[2]);
  int number = -1;
  if (words[3] == "closed") {
    // A number that was a descriptor a moment ago.
    number = Memfd(4096, 0, 0).release();
    close(number);
  } else {
    memory.fd = Make(words[3], Number(words[4]));
    if (!memory.fd.valid()) {
      return {kNotOnThisMachine, "no " + words[3] + " to be had here"};
    }
    number = memory.fd.get();
  }
  memory.mem = rknn_create_mem_from_fd(memory.context, number, nullptr,
                                       static_cast<uint32_t>(Number(words[5])),
                                       static_cast<int32_t>(Number(words[6])));
  if (memory.mem == nullptr) return Answer(RKNN_ERR_FAIL);
  memories_[words[1]] = std::move(memory);
  return {};
}

Reply Commands::DestroyMemory(const Words& words) {
  return Answer(rknn_destroy_mem(Context(words[1]), Mem(words[2])));
}

Reply Commands::Bind(const Words& words) {
  const rknn_context context = Context(words[1]);
  const std::vector<rknn_tensor_attr> attrs =
      Attributes(context, words[3] == "in");
  const uint64_t index = Number(words[4]);
  // With an index of the test's making: an attribute of nothing.
  rknn_tensor_attr attr =
      index < attrs.size() ? attrs[index] : rknn_tensor_attr{};
  attr.index = static_cast<uint32_t>(index);
  if (words.size() > 5 && words[5] == "native") {
    const int code =
        rknn_query(context,
                   words[3] == "in" ? RKNN_QUERY_NATIVE_INPUT_ATTR
                                    : RKNN_QUERY_NATIVE_OUTPUT_ATTR,
                   &attr, sizeof attr);
    if (code != RKNN_SUCC) return Answer(code);
    attr.pass_through = 1;
    return Answer(rknn_set_io_mem(context, Mem(words[2]), &attr));
  }
  attr.type = words.size() > 5 ? static_cast<rknn_tensor_type>(Number(words[5]))
                               : RKNN_TENSOR_FLOAT32;
  return Answer(rknn_set_io_mem(context, Mem(words[2]), &attr));
}

Reply Commands::BindAll(const Words& words) {
  const rknn_context context = Context(words[1]);
  for (const bool inputs : {true, false}) {
    for (rknn_tensor_attr& attr : Attributes(context, inputs)) {
      const uint32_t size =
          std::max(attr.n_elems * static_cast<uint32_t>(sizeof(float)),
                   attr.size_with_stride);
      rknn_tensor_mem* mem = rknn_create_mem(context, size);
      if (mem == nullptr) return Answer(RKNN_ERR_FAIL);
      Memory& memory = memories_[words[1] + (inputs ? ".in" : ".out") +
                                 std::to_string(attr.index)];
      memory.mem = mem;
      memory.context = context;
      attr.type = RKNN_TENSOR_FLOAT32;
      if (attr.fmt == RKNN_TENSOR_NHWC) attr.fmt = RKNN_TENSOR_NCHW;
      const int code = rknn_set_io_mem(context, mem, &attr);
      if (code != RKNN_SUCC) return Answer(code);
    }
  }
  return {};
}

Reply Commands::SetFrame(const Words& words) {
  rknnd_frame frame{};
  frame.format = static_cast<uint32_t>(Number(words[3]));
  frame.width = static_cast<uint32_t>(Number(words[4]));
  frame.height = static_cast<uint32_t>(Number(words[5]));
  frame.planes[0].memory = Mem(words[2]);
  if (frame.format == RKNND_PIXEL_NV12 || frame.format == RKNND_PIXEL_NV21) {
    frame.planes[1].memory = Mem(words[2]);
    frame.planes[1].offset = uint64_t{frame.width} * frame.height;
  }
  return Answer(rknnd_set_input_frame(Context(words[1]), 0, &frame));
}

Reply Commands::Fill(const Words& words) {
  rknn_tensor_mem* mem = Mem(words[1]);
  const std::vector<char> bytes = ReadFile(words[2]);
  if (mem == nullptr || bytes.size() > mem->size) {
    return {kBadCommand, "no such memory, or too small"};
  }
  std::memcpy(static_cast<char*>(mem->virt_addr) + mem->offset, bytes.data(),
              bytes.size());
  return Answer(rknn_mem_sync(memories_[words[1]].context, mem,
                              RKNN_MEMORY_SYNC_TO_DEVICE));
}

Reply Commands::HashMemory(const Words& words) {
  rknn_tensor_mem* mem = Mem(words[1]);
  const uint64_t count = Number(words[2]);
  if (mem == nullptr || count > mem->size) {
    return {kBadCommand, "no such memory, or too small"};
  }
  const int code = rknn_mem_sync(memories_[words[1]].context, mem,
                                 RKNN_MEMORY_SYNC_FROM_DEVICE);
  Hash hash;
  hash.Add(static_cast<const char*>(mem->virt_addr) + mem->offset, count);
  return Answer(code, hash.text());
}

Reply Commands::CompareMemory(const Words& words) {
  rknn_tensor_mem* mem = Mem(words[1]);
  const std::vector<char> wanted = ReadFile(words[2]);
  if (mem == nullptr || wanted.size() > mem->size) {
    return {kBadCommand, "no such memory, or too small"};
  }
  const int code = rknn_mem_sync(memories_[words[1]].context, mem,
                                 RKNN_MEMORY_SYNC_FROM_DEVICE);
  std::vector<float> got(wanted.size() / sizeof(float));
  std::memcpy(got.data(),
              static_cast<const char*>(mem->virt_addr) + mem->offset,
              wanted.size());
  return Answer(code,
                std::to_string(RelativeError(got.data(), got.size(), wanted)));
}

Reply Commands::PunchHole(const Words& words) {
  rknn_tensor_mem* mem = Mem(words[1]);
  if (mem == nullptr) return {kBadCommand, "no such memory"};
  if (fallocate(mem->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>(mem->size)) != 0) {
    return {kNotOnThisMachine, "this memory cannot have holes"};
  }
  return {};
}

Reply Commands::AskKey(const Words& words) {
  rknnd_buffer_key key{};
  const int code = rknnd_query_buffer_key(Context(words[1]), Mem(words[2]),
                                          &key, sizeof key);
  return Answer(code, std::string(key.text) + " " + std::to_string(key.offset) +
                          " " + std::to_string(key.size));
}

Reply Commands::Peek(const Words& words) {
  rknn_tensor_mem* mem = Mem(words[1]);
  const uint64_t offset = Number(words[2]);
  const uint64_t count = Number(words[3]);
  if (mem == nullptr || offset > mem->size || count > mem->size - offset) {
    return {kBadCommand, "no such memory, or too small"};
  }
  const auto* bytes = static_cast<const uint8_t*>(mem->virt_addr) +
                      static_cast<size_t>(mem->offset) + offset;
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return {RKNN_SUCC, text};
}

Reply Commands::Poke(const Words& words) {
  rknn_tensor_mem* mem = Mem(words[1]);
  const uint64_t offset = Number(words[2]);
  if (mem == nullptr || offset >= mem->size) {
    return {kBadCommand, "no such memory, or too small"};
  }
  auto* bytes =
      static_cast<uint8_t*>(mem->virt_addr) + static_cast<size_t>(mem->offset);
  bytes[offset] = static_cast<uint8_t>(Number(words[3]));
  return {};
}

}  // namespace rknnd::integration
