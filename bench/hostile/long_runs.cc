// Runs that are as long as the daemon accepts, on each core, without end.

#include <cstdint>
#include <stdexcept>
#include <string>

#include "bench/common/failure.h"
#include "bench/hostile/attack.h"
#include "bench/hostile/models.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"

namespace rknnd::bench {
namespace {

constexpr int kMostProducts = 100;
// A run that is refused is answered at once.
constexpr int kRefusedByMs = 200;

class LongRun {
 public:
  LongRun(int products, rknn_core_mask mask) {
    std::string model = EndlessModel(products);
    if (rknn_init(&context_, model.data(), static_cast<uint32_t>(model.size()),
                  0, nullptr) != RKNN_SUCC) {
      Fail("rknn_init of long products");
    }
    Bind(RKNN_QUERY_INPUT_ATTR);
    Bind(RKNN_QUERY_OUTPUT_ATTR);
    if (rknn_set_core_mask(context_, mask) != RKNN_SUCC) {
      Fail("rknn_set_core_mask");
    }
  }
  ~LongRun() { rknn_destroy(context_); }
  LongRun(const LongRun&) = delete;
  LongRun& operator=(const LongRun&) = delete;

  // Whether it is accepted; then it goes on.
  bool Begin() {
    if (rknnd_submit(context_, nullptr, nullptr) != RKNN_SUCC) return false;
    const int code = rknnd_wait(context_, 0, kRefusedByMs, nullptr, 0);
    return code == RKNN_SUCC || code == RKNN_ERR_TIMEOUT;
  }
  [[noreturn]] void GoOn() {
    for (;;) {
      rknnd_wait(context_, 0, -1, nullptr, 0);
      rknnd_submit(context_, nullptr, nullptr);
    }
  }

 private:
  void Bind(rknn_query_cmd which) {
    rknn_tensor_attr attr{};
    if (rknn_query(context_, which, &attr, sizeof attr) != RKNN_SUCC) {
      Fail("rknn_query");
    }
    rknn_tensor_mem* const mem = rknn_create_mem(
        context_, attr.n_elems * static_cast<uint32_t>(sizeof(float)));
    attr.type = RKNN_TENSOR_FLOAT32;
    if (mem == nullptr || rknn_set_io_mem(context_, mem, &attr) != RKNN_SUCC) {
      Fail("rknn_set_io_mem");
    }
  }

  rknn_context context_ = 0;
};

void RunLongest(int core) {
  const auto mask = static_cast<rknn_core_mask>(1 << core);
  for (int products = kMostProducts; products > 0;
       products = products * 2 / 3) {
    LongRun run(products, mask);
    if (!run.Begin()) continue;
    if (core == 0) {
      Announce("three processes, " + std::to_string(products) + " products");
    }
    run.GoOn();
  }
  throw std::runtime_error("no long run is accepted");
}

}  // namespace

void AttackByLongRuns(const Scene& /*scene*/) { InProcesses(3, RunLongest); }

}  // namespace rknnd::bench
