#include "client/rknnrt/memory_registry.h"

#include <gtest/gtest.h>

namespace rknnd::client {
namespace {

TEST(MemoryRegistryTest, PointerLeadsToItsMemoryUntilItIsRemoved) {
  MemoryRegistry registry;
  auto memory = std::make_shared<TensorMemory>();
  rknn_tensor_mem* const api = registry.Add(memory);
  EXPECT_EQ(registry.Find(api), memory);
  EXPECT_EQ(registry.Remove(api), memory);
  EXPECT_EQ(registry.Find(api), nullptr);
  EXPECT_EQ(registry.Remove(api), nullptr);
}

TEST(MemoryRegistryTest, UnknownPointersAreNotFollowed) {
  MemoryRegistry registry;
  EXPECT_EQ(registry.Find(nullptr), nullptr);
  EXPECT_EQ(registry.Remove(reinterpret_cast<rknn_tensor_mem*>(8)), nullptr);
}

}  // namespace
}  // namespace rknnd::client
