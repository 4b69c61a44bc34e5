// The C API's side of `./dev bench python`: microseconds of one run, bound and
// with arrays copied in and out, of the model that the Python side runs too.
//
//   rknnd-bench-python MODEL RUNS

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "client/include/rknn_api.h"

namespace rknnd::bench {
namespace {

void Check(int code, const char* what) {
  if (code == RKNN_SUCC) return;
  std::fprintf(stderr, "%s: %d\n", what, code);
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): there is one thread
}

rknn_tensor_attr Ask(rknn_context context, rknn_query_cmd which) {
  rknn_tensor_attr attr{};
  Check(rknn_query(context, which, &attr, sizeof attr), "rknn_query");
  return attr;
}

template <class Body>
double Median(int runs, Body body) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto begin = Clock::now();
    body();
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count());
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<size_t>(runs) / 2];
}

int Main(int argc, char** argv) {
  const int runs = argc == 3 ? std::atoi(argv[2]) : 0;
  if (runs < 1) {
    std::fputs("usage: rknnd-bench-python MODEL RUNS\n", stderr);
    return 2;
  }
  rknn_context copied = 0;
  Check(rknn_init(&copied, argv[1], 0, 0, nullptr), "rknn_init");
  const rknn_tensor_attr in = Ask(copied, RKNN_QUERY_INPUT_ATTR);
  const rknn_tensor_attr out = Ask(copied, RKNN_QUERY_OUTPUT_ATTR);
  std::vector<float> from(in.n_elems);
  std::vector<float> to(out.n_elems);
  const double copies = Median(runs, [&] {
    rknn_input input{};
    input.buf = from.data();
    input.size = static_cast<uint32_t>(from.size() * sizeof(float));
    input.type = RKNN_TENSOR_FLOAT32;
    input.fmt = in.fmt;
    rknn_output output{};
    output.want_float = 1;
    output.is_prealloc = 1;
    output.buf = to.data();
    output.size = static_cast<uint32_t>(to.size() * sizeof(float));
    Check(rknn_inputs_set(copied, 1, &input), "rknn_inputs_set");
    Check(rknn_run(copied, nullptr), "rknn_run");
    Check(rknn_outputs_get(copied, 1, &output, nullptr), "rknn_outputs_get");
  });

  rknn_context bound = 0;
  Check(rknn_dup_context(&copied, &bound), "rknn_dup_context");
  std::vector<rknn_tensor_mem*> memories;
  for (const rknn_tensor_attr& attr : {in, out}) {
    rknn_tensor_attr native = attr;
    native.w_stride = 0;
    memories.push_back(rknn_create_mem(bound, attr.size));
    Check(rknn_set_io_mem(bound, memories.back(), &native), "rknn_set_io_mem");
  }
  const double direct =
      Median(runs, [&] { Check(rknn_run(bound, nullptr), "rknn_run"); });
  for (rknn_tensor_mem* memory : memories) rknn_destroy_mem(bound, memory);
  Check(rknn_destroy(bound), "rknn_destroy");
  Check(rknn_destroy(copied), "rknn_destroy");
  std::printf("{\"bound_us\": %.3f, \"copied_us\": %.3f}\n", direct, copies);
  return 0;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) { return rknnd::bench::Main(argc, argv); }
