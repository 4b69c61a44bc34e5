// What the runner does with memory and models that come from outside: internal
// and weight memory, models in memory of the program's own, tokens.

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/posix/socket.h"
#include "rknnd.h"
#include "tests/integration/programs/commands.h"

namespace rknnd::integration {
namespace {

uint64_t Number(const std::string& word) {
  return std::strtoull(word.c_str(), nullptr, 0);
}

size_t OpenDescriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  size_t count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

}  // namespace

Reply Commands::SetInternal(const Words& words) {
  return Answer(rknn_set_internal_mem(Context(words[1]), Mem(words[2])));
}

Reply Commands::SetWeights(const Words& words) {
  return Answer(rknn_set_weight_mem(Context(words[1]), Mem(words[2])));
}

Reply Commands::AskInternalSize(const Words& words) {
  rknn_mem_size size{};
  const int code =
      rknn_query(Context(words[1]), RKNN_QUERY_MEM_SIZE, &size, sizeof size);
  return Answer(code, std::to_string(size.total_internal_size));
}

// As the guide does it: by fd and virt_addr of another memory.
Reply Commands::ImportOf(const Words& words) {
  const rknn_tensor_mem* const from = Mem(words[3]);
  if (from == nullptr) return {kBadCommand, "no such memory"};
  Memory memory;
  memory.context = Context(words[2]);
  memory.mem = rknn_create_mem_from_fd(
      memory.context, from->fd, from->virt_addr,
      static_cast<uint32_t>(Number(words[4])),
      static_cast<int32_t>(words.size() > 5 ? Number(words[5]) : 0));
  if (memory.mem == nullptr) return Answer(RKNN_ERR_FAIL);
  memories_[words[1]] = std::move(memory);
  return {};
}

// In two steps, so that the other process finds somebody to connect to.
Reply Commands::Listen(const Words& words) {
  auto listener = base::ListenUnix(words[1], 0600);
  if (!listener.ok()) return {kBadCommand, listener.error().message};
  listener_ = *std::move(listener);
  return {};
}

Reply Commands::Hand(const Words& words) {
  const rknn_tensor_mem* const memory = Mem(words[1]);
  if (memory == nullptr) return {kBadCommand, "no such memory"};
  pollfd waits = {listener_.get(), POLLIN, 0};
  poll(&waits, 1, -1);
  auto connection = base::Accept(listener_.get());
  if (!connection.ok() || !connection->valid()) {
    return {kBadCommand, "nobody came"};
  }
  const std::array<std::byte, 1> bytes{};
  const std::array<int, 1> fds = {memory->fd};
  const auto sent =
      base::SendMessage(connection->get(), bytes, fds, base::Block::kYes);
  return {sent.ok() ? RKNN_SUCC : kBadCommand, ""};
}

Reply Commands::Flip(const Words& words) {
  rknn_tensor_mem* const memory = Mem(words[1]);
  if (memory == nullptr) return {kBadCommand, "no such memory"};
  auto* const bytes = static_cast<unsigned char*>(memory->virt_addr);
  size_t set = 0;
  for (uint32_t i = 0; i < memory->size; ++i) {
    set += bytes[i] != 0 ? 1 : 0;
    bytes[i] = static_cast<unsigned char>(~bytes[i]);
  }
  // How many were not 0: proof that it had been filled.
  return {RKNN_SUCC, std::to_string(set)};
}

// MODE: pointer, fd (no pointer), slice (behind 64 bytes of something else);
// then to be refused: short, outside, bad_fd.
Reply Commands::InitZeroCopy(const Words& words) {
  const std::vector<char> model = ReadFile(words[2]);
  const std::string& mode = words[3];
  const size_t lead = mode == "slice" ? 64 : 0;
  const auto size = static_cast<uint32_t>(lead + model.size());
  Memory memory;
  memory.mem = rknn_create_mem2(0, size, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
  if (memory.mem == nullptr) return Answer(RKNN_ERR_FAIL);
  auto* const bytes = static_cast<char*>(memory.mem->virt_addr);
  std::memset(bytes, 0x5a, lead);
  std::copy(model.begin(), model.end(), bytes + lead);
  rknn_init_extend extend{};
  extend.model_buffer_fd = memory.mem->fd;
  extend.model_buffer_flags = memory.mem->flags;
  extend.real_model_size = static_cast<uint32_t>(model.size());
  extend.real_model_offset = static_cast<int32_t>(lead);
  uint32_t said = size;
  void* at = bytes;
  if (mode == "fd" || mode == "bad_fd" || mode == "short") at = nullptr;
  if (mode == "bad_fd") extend.model_buffer_fd = 987654;
  if (mode == "short") said += 1 << 20;
  if (mode == "outside") extend.real_model_offset = 1 << 30;
  rknn_context context = 0;
  const int code =
      rknn_init(&context, at, said, RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, &extend);
  const Reply reply = Answer(code);
  if (code == RKNN_SUCC) {
    contexts_[words[1]] = context;
    memories_[words[1] + ".model"] = std::move(memory);
  } else {
    rknn_destroy_mem(0, memory.mem);
  }
  return reply;
}

Reply Commands::AskModelMemory(const Words& words) {
  rknn_tensor_mem memory{};
  const int code = rknn_query(Context(words[1]), RKNN_QUERY_DEVICE_MEM_INFO,
                              &memory, sizeof memory);
  const rknn_tensor_mem* const known =
      words.size() > 2 ? Mem(words[2]) : nullptr;
  const bool same = known != nullptr && known->fd == memory.fd &&
                    known->virt_addr == memory.virt_addr;
  return Answer(code, (memory.fd < 0 ? "no fd "
                       : same        ? "same "
                                     : "other ") +
                          std::to_string(memory.size));
}

Reply Commands::ChurnFree(const Words& words) {
  size_t before = 0;
  for (uint64_t i = 0; i <= Number(words[1]); ++i) {
    // The first may open the connection.
    if (i == 1) before = OpenDescriptors();
    rknn_tensor_mem* const memory =
        rknn_create_mem2(0, 4096, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
    if (memory == nullptr) return Answer(RKNN_ERR_FAIL);
    // Any context will do, or none.
    const rknn_context context = i % 3 == 0 ? 0 : i % 3 == 1 ? 12345 : 1;
    const int code = rknn_destroy_mem(context, memory);
    if (code != RKNN_SUCC) return Answer(code);
  }
  return {OpenDescriptors() == before ? RKNN_SUCC : kBadCommand,
          "descriptors are left"};
}

Reply Commands::TellToken(const Words& words) {
  rknnd_token token{};
  const int code = rknnd_model_token(Context(words[1]), &token);
  return Answer(code, token.text);
}

Reply Commands::InitFromToken(const Words& words) {
  rknnd_token token{};
  words[2].copy(token.text, sizeof token.text - 1);
  rknn_context context = 0;
  const int code = rknnd_init_from_token(&context, &token);
  if (code == RKNN_SUCC) contexts_[words[1]] = context;
  return Answer(code);
}

}  // namespace rknnd::integration
