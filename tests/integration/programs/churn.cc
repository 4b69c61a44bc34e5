// Memories and contexts of the runner that come and go, thousands of times:
// what is left afterwards is what leaks.

#include <unistd.h>

#include <cstdlib>

#include "tests/integration/programs/commands.h"

namespace rknnd::integration {
namespace {

int Number(const std::string& word) { return std::atoi(word.c_str()); }

}  // namespace

Reply Commands::ChurnMemories(const Words& words) {
  const rknn_context context = Context(words[1]);
  const auto size = static_cast<uint32_t>(Number(words[2]));
  for (int i = 0; i < Number(words[3]); ++i) {
    rknn_tensor_mem* mem = rknn_create_mem(context, size);
    if (mem == nullptr) return Answer(RKNN_ERR_FAIL);
    const int code = rknn_destroy_mem(context, mem);
    if (code != RKNN_SUCC) return Answer(code);
  }
  return {};
}

Reply Commands::ChurnImports(const Words& words) {
  const rknn_context context = Context(words[1]);
  rknn_tensor_mem* const memory = Mem(words[2]);
  if (memory == nullptr) return {kBadCommand, "no such memory"};
  for (int i = 0; i < Number(words[3]); ++i) {
    rknn_tensor_mem* mem =
        rknn_create_mem_from_fd(context, memory->fd, nullptr, memory->size, 0);
    if (mem == nullptr) return Answer(RKNN_ERR_FAIL);
    const int code = rknn_destroy_mem(context, mem);
    if (code != RKNN_SUCC) return Answer(code);
  }
  return {};
}

Reply Commands::ChurnContexts(const Words& words) {
  std::string path = words[1];
  for (int i = 0; i < Number(words[2]); ++i) {
    rknn_context context = 0;
    int code = rknn_init(&context, path.data(), 0, 0, nullptr);
    if (code != RKNN_SUCC) return Answer(code);
    rknn_context twin = 0;
    code = rknn_dup_context(&context, &twin);
    if (code != RKNN_SUCC) return Answer(code);
    // In either order.
    code = rknn_destroy(i % 2 == 0 ? context : twin);
    if (code == RKNN_SUCC) code = rknn_destroy(i % 2 == 0 ? twin : context);
    if (code != RKNN_SUCC) return Answer(code);
  }
  return {};
}

Reply Commands::Shrink(const Words& words) {
  const rknn_tensor_mem* mem = Mem(words[1]);
  if (mem == nullptr) return {kBadCommand, "no such memory"};
  return {ftruncate(mem->fd, 0) == 0 ? RKNN_SUCC : RKNN_ERR_FAIL, ""};
}

Reply Commands::CloseFd(const Words& words) {
  const auto found = memories_.find(words[1]);
  if (found == memories_.end() || !found->second.fd.valid()) {
    return {kBadCommand, "no such memory of ours"};
  }
  found->second.fd.reset();
  return {};
}

}  // namespace rknnd::integration
