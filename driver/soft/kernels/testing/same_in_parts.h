// That the parts of a layer, for gangs of two and of three, give the bits of
// the whole. Included by tests only.

#ifndef DRIVER_SOFT_KERNELS_TESTING_SAME_IN_PARTS_H_
#define DRIVER_SOFT_KERNELS_TESTING_SAME_IN_PARTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/testing/one_node.h"

namespace rknnd::soft::testing {

inline int64_t Count(const Shape& shape) {
  return ProductOf(shape, 0, shape.size());
}

// `wanted_parts`: how many there are to be; 0: any number.
inline void ExpectSameInParts(OneNode& node, uint32_t wanted_parts, int block) {
  const auto whole = node.Run(block);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const uint32_t cores : {2U, 3U}) {
    const auto parts = node.RunInParts(cores, block);
    ASSERT_TRUE(parts.ok()) << parts.status();
    if (wanted_parts != 0) {
      EXPECT_EQ(node.parts(), std::min(cores, wanted_parts));
    }
    ASSERT_EQ(whole->size(), parts->size());
    EXPECT_EQ(std::memcmp(whole->data(), parts->data(),
                          whole->size() * sizeof(float)),
              0)
        << cores << " cores, block " << block;
    EXPECT_TRUE(node.padding_is_zero());
  }
}

}  // namespace rknnd::soft::testing

#endif  // DRIVER_SOFT_KERNELS_TESTING_SAME_IN_PARTS_H_
