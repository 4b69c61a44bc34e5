// See checked_context.h.

#include "tests/torture/checked_context.h"

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/posix/memfd.h"

namespace rknnd::torture {
namespace {

int32_t* DataOf(const rknn_tensor_mem& memory) {
  auto* const begin = static_cast<std::byte*>(memory.virt_addr);
  return reinterpret_cast<int32_t*>(begin + memory.offset);
}

}  // namespace

CheckedContext::CheckedContext(const Witness& witness, const NetworkFile& file,
                               From from)
    : witness_(witness), network_(file.network), arithmetic_(file.network) {
  std::string model = file.path;
  uint32_t size = 0;  // 0: it is a path
  if (from == From::kBytes) {
    std::ifstream stream(file.path, std::ios::binary);
    model.assign(std::istreambuf_iterator<char>(stream), {});
    size = static_cast<uint32_t>(model.size());
  }
  if (!witness_.Good(rknn_init(&context_, model.data(), size, 0, nullptr),
                     "rknn_init")) {
    context_ = 0;
    return;
  }
  witness_.page().contexts.fetch_add(1);
}

CheckedContext::CheckedContext(const Witness& witness, const NetworkFile& file,
                               const CheckedContext& other)
    : witness_(witness), network_(file.network), arithmetic_(file.network) {
  rknn_context from = other.get();
  if (!witness_.Good(rknn_dup_context(&from, &context_), "rknn_dup_context")) {
    context_ = 0;
    return;
  }
  witness_.page().contexts.fetch_add(1);
}

CheckedContext::~CheckedContext() {
  if (!valid()) return;
  for (const Set& set : sets_) {
    for (const Memory* memory : {&set.input, &set.output}) {
      witness_.Good(rknn_destroy_mem(context_, memory->mem),
                    "rknn_destroy_mem");
    }
  }
  witness_.Good(rknn_destroy(context_), "rknn_destroy");
}

std::optional<CheckedContext::Memory> CheckedContext::Allocate() {
  Memory memory;
  memory.mem =
      rknn_create_mem(context_, static_cast<uint32_t>(network_.bytes()));
  if (memory.mem != nullptr) return memory;
  witness_.Good(RKNN_ERR_FAIL, "rknn_create_mem");
  return std::nullopt;
}

std::optional<CheckedContext::Memory> CheckedContext::MakeAndImport() {
  auto fd = base::MakeMemfd("torture-frame", network_.bytes());
  if (!fd) {
    witness_.Tell(NoteKind::kError, RKNN_ERR_FAIL, "memfd_create", 0,
                  fd.error().message);
    return std::nullopt;
  }
  std::optional<Memory> memory = Import(fd->get(), 0);
  if (memory) memory->fd = *std::move(fd);
  return memory;
}

std::optional<CheckedContext::Memory> CheckedContext::Import(int fd,
                                                             uint64_t offset) {
  auto mapping = base::Mapping::OfFd(fd, 0, offset + network_.bytes(),
                                     base::Mapping::Access::kReadWrite);
  if (!mapping) {
    witness_.Tell(NoteKind::kError, RKNN_ERR_FAIL, "mmap", 0,
                  mapping.error().message);
    return std::nullopt;
  }
  Memory memory;
  memory.mapping = *std::move(mapping);
  memory.mem = rknn_create_mem_from_fd(context_, fd, memory.mapping.data(),
                                       static_cast<uint32_t>(network_.bytes()),
                                       static_cast<int32_t>(offset));
  if (memory.mem != nullptr) return memory;
  witness_.Good(RKNN_ERR_FAIL, "rknn_create_mem_from_fd");
  return std::nullopt;
}

bool CheckedContext::Bind(size_t set, const Memory& memory,
                          rknn_query_cmd which) {
  rknn_tensor_attr attr{};
  if (!witness_.Good(rknn_query(context_, which, &attr, sizeof attr),
                     "rknn_query")) {
    return false;
  }
  attr.type = RKNN_TENSOR_INT32;
  return witness_.Good(
      rknnd_set_io_mem(context_, static_cast<uint32_t>(set), memory.mem, &attr),
      "rknnd_set_io_mem");
}

bool CheckedContext::Add(std::optional<Memory> input,
                         std::optional<Memory> output) {
  const size_t number = sets_.size();
  Set set;
  if (input) set.input = *std::move(input);
  if (output) set.output = *std::move(output);
  const bool made = set.input.mem != nullptr && set.output.mem != nullptr;
  if (made && Bind(number, set.input, RKNN_QUERY_INPUT_ATTR) &&
      Bind(number, set.output, RKNN_QUERY_OUTPUT_ATTR)) {
    sets_.push_back(std::move(set));
    return true;
  }
  for (const Memory* memory : {&set.input, &set.output}) {
    if (memory->mem == nullptr) continue;
    witness_.Good(rknn_destroy_mem(context_, memory->mem), "rknn_destroy_mem");
  }
  return false;
}

bool CheckedContext::AddAllocatedSet() { return Add(Allocate(), Allocate()); }

bool CheckedContext::AddImportedSet() {
  return Add(MakeAndImport(), MakeAndImport());
}

bool CheckedContext::AddSharedSet(int inputs, uint64_t offset) {
  return Add(Import(inputs, offset), Allocate());
}

int32_t* CheckedContext::input(size_t set) const {
  return DataOf(*sets_.at(set).input.mem);
}

int32_t* CheckedContext::output(size_t set) const {
  return DataOf(*sets_.at(set).output.mem);
}

bool CheckedContext::SyncInput(size_t set) const {
  return Sync(sets_.at(set).input, RKNN_MEMORY_SYNC_TO_DEVICE);
}

bool CheckedContext::SyncOutput(size_t set) const {
  return Sync(sets_.at(set).output, RKNN_MEMORY_SYNC_FROM_DEVICE);
}

bool CheckedContext::Sync(const Memory& memory, rknn_mem_sync_mode mode) const {
  return witness_.Good(rknn_mem_sync(context_, memory.mem, mode),
                       "rknn_mem_sync");
}

}  // namespace rknnd::torture
