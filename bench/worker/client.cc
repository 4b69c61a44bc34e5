#include "bench/worker/client.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/posix/clock.h"
#include "bench/common/failure.h"
#include "client/include/rknn_api.h"

namespace rknnd::bench {
namespace {

constexpr int kNumbers = 16;  // of the smallest network

bool StdinIsClosed() {
  pollfd in = {STDIN_FILENO, POLLIN, 0};
  return poll(&in, 1, 0) > 0;
}

rknn_tensor_mem* BindFloats(rknn_context context, rknn_query_cmd which) {
  rknn_tensor_attr attr{};
  if (rknn_query(context, which, &attr, sizeof attr) != RKNN_SUCC) {
    Fail("rknn_query");
  }
  attr.type = RKNN_TENSOR_FLOAT32;
  rknn_tensor_mem* const memory =
      rknn_create_mem(context, attr.n_elems * sizeof(float));
  if (memory == nullptr || rknn_set_io_mem(context, memory, &attr) != 0) {
    Fail("rknn_set_io_mem");
  }
  return memory;
}

}  // namespace

int RunClient(const std::string& model) {
  rknn_context context = 0;
  std::string path = model;
  if (rknn_init(&context, path.data(), 0, 0, nullptr) != RKNN_SUCC) {
    Fail("rknn_init");
  }
  auto* const in = static_cast<float*>(
      BindFloats(context, RKNN_QUERY_INPUT_ATTR)->virt_addr);
  auto* const out = static_cast<float*>(
      BindFloats(context, RKNN_QUERY_OUTPUT_ATTR)->virt_addr);
  const base::MonotonicClock clock;
  ClientCounts counts;
  for (uint64_t run = 0; !StdinIsClosed(); ++run) {
    for (int i = 0; i < kNumbers; ++i) {
      in[i] = static_cast<float>(run % 1000) - static_cast<float>(i);
      out[i] = -1;
    }
    const base::Nanoseconds begun = clock.Now();
    const int code = rknn_run(context, nullptr);
    counts.longest_ns = std::max(counts.longest_ns, clock.Now() - begun);
    if (code != RKNN_SUCC) {
      if (counts.failed++ == 0) counts.error = rknnd_last_error();
      continue;
    }
    const bool right = std::equal(in, in + kNumbers, out, [](float x, float y) {
      return y == std::max(x, 0.0F);
    });
    ++(right ? counts.right : counts.wrong);
  }
  rknn_destroy(context);
  std::printf("%s\n", nlohmann::json{{"right", counts.right},
                                     {"wrong", counts.wrong},
                                     {"failed", counts.failed},
                                     {"longest_ns", counts.longest_ns},
                                     {"error", counts.error}}
                          .dump()
                          .c_str());
  return 0;
}

}  // namespace rknnd::bench
