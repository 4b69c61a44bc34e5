// What a matrix product costs beside oneDNN's of the same sizes, on one thread:
// oneDNN's has B in the form that it likes best, made once; ours reads B where
// the program has it, in each run. The two take turns, so that whatever else
// the machine does meets both; the best of each counts. Exits with 1 when a
// figure is not what is asked.
//
//   rknnd-bench-matmul [--out FILE] [--seconds S]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <dnnl.hpp>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/posix/mapping.h"
#include "bench/common/figures.h"
#include "driver/matmul/matmul_layout.h"
#include "driver/matmul/matmul_spec.h"
#include "driver/soft/kernels/threads.h"
#include "driver/soft/matmul/matmul_kernel.h"
#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::bench {
namespace {

using matmul::Layout;
using matmul::Shape;

// Of all matrices, byte by byte: a usual number of any type.
constexpr std::byte kNumber{0x3c};
constexpr double kMostOfOneDnn = 1.15;
constexpr double kLeastOfInt4 = 1.5;
constexpr int32_t kHalves = 1, kBytes = 2, kBytesByInt4 = 11;

// As memory of programs begins with a page.
base::Mapping Pages(size_t bytes) {
  auto mapping = base::Mapping::Anonymous(bytes);
  if (!mapping) throw std::runtime_error(mapping.error().message);
  std::fill_n(mapping->data(), bytes, kNumber);
  return *std::move(mapping);
}

// Ours, on memory of its own.
class Product {
 public:
  Product(int32_t type, const Shape& shape, Layout layout, const char* soc) {
    matmul::Spec spec;
    spec.type = type;
    spec.b_layout = layout;
    spec.shapes = {shape};
    if (const auto checked = matmul::Check(spec, soc); !checked) {
      throw std::runtime_error(checked.error().message);
    }
    const matmul::Blocks blocks = matmul::BlocksOf(type, soc);
    const matmul::Forms forms = matmul::FormsOf(spec, shape, blocks);
    kernel_ = std::make_unique<soft::MatmulKernel>(spec, shape, blocks);
    a_ = Pages(forms.a.bytes);
    b_ = Pages(forms.b.bytes);
    c_ = Pages(forms.c.bytes);
    scratch_ = Pages(kernel_->scratch_size());
  }
  void Run() {
    kernel_->Run({0, 1}, {.a = a_.data(), .b = b_.data(), .c = c_.data()},
                 scratch_.data());
  }
  [[nodiscard]] const char* name() const { return kernel_->name(); }

 private:
  std::unique_ptr<soft::MatmulKernel> kernel_;
  base::Mapping a_, b_, c_, scratch_;
};

// oneDNN's; B's form is its own choice.
class Primitive {
 public:
  Primitive(const Shape& shape, bool floats) {
    using dnnl::memory;
    const auto type = floats ? memory::data_type::f32 : memory::data_type::s8;
    const auto sums = floats ? memory::data_type::f32 : memory::data_type::s32;
    const memory::desc a({shape.m, shape.k}, type, memory::format_tag::ab);
    const memory::desc b({shape.k, shape.n}, type, memory::format_tag::any);
    const memory::desc c({shape.m, shape.n}, sums, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc made(dnnl::matmul::desc(a, b, c),
                                            engine_);
    name_ = made.impl_info_str();
    primitive_ = dnnl::matmul(made);
    for (const auto& [argument, desc] :
         {std::pair{DNNL_ARG_SRC, made.src_desc()},
          std::pair{DNNL_ARG_WEIGHTS, made.weights_desc()},
          std::pair{DNNL_ARG_DST, made.dst_desc()}}) {
      dnnl::memory held(desc, engine_);
      std::fill_n(static_cast<std::byte*>(held.get_data_handle()),
                  desc.get_size(), kNumber);
      arguments_.emplace(argument, held);
    }
  }
  void Run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::string name_;
};

// Milliseconds of the best runs, which take turns.
struct Pair {
  double ours = 1e300, other = 1e300;
};
template <class Ours, class Other>
Pair Compare(Ours& ours, Other& other, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto once = [](auto& one, double& best) {
    const Clock::time_point begin = Clock::now();
    one.Run();
    best = std::min(
        best, std::chrono::duration<double, std::milli>(Clock::now() - begin)
                  .count());
  };
  Pair best;
  const Clock::time_point begin = Clock::now();
  int runs = 0;
  do {
    once(ours, best.ours);
    once(other, best.other);
  } while (++runs < 5 ||
           std::chrono::duration<double>(Clock::now() - begin).count() <
               seconds);
  return best;
}

const char* NameOf(Layout layout) {
  switch (layout) {
    case Layout::kNormal:
      return "normal B";
    case Layout::kNative:
      return "native B";
    case Layout::kTransposed:
      break;
  }
  return "transposed B";
}

void BesideOneDnn(int32_t type, const Shape& shape, double seconds,
                  Figures& figures) {
  Primitive other(shape, type == kHalves);
  for (const Layout layout :
       {Layout::kNative, Layout::kTransposed, Layout::kNormal}) {
    Product ours(type, shape, layout, "rk3588");
    const Pair best = Compare(ours, other, seconds);
    const std::string name =
        Text("%s %dx%dx%d, %s", type == kHalves ? "float16" : "int8", shape.m,
             shape.k, shape.n, NameOf(layout));
    const std::string measured =
        Text("%.2f x (%.3f, %.3f ms)", best.ours / best.other, best.ours,
             best.other);
    const nlohmann::json details = {{"ours_ms", best.ours},
                                    {"onednn_ms", best.other},
                                    {"kernel", ours.name()},
                                    {"onednn", other.name()}};
    // The layouts in which a program keeps what it multiplies often.
    if (layout == Layout::kNormal) {
      figures.AddBeside(name, measured, details);
    } else {
      figures.Add(name, Text("<= %.2f x oneDNN", kMostOfOneDnn), measured,
                  best.ours <= kMostOfOneDnn * best.other, details);
    }
  }
}

void Int4BesideBytes(const Shape& shape, double seconds, Figures& figures) {
  for (const Layout layout :
       {Layout::kNative, Layout::kTransposed, Layout::kNormal}) {
    Product bytes(kBytes, shape, layout, "rk3576");
    Product int4(kBytesByInt4, shape, layout, "rk3576");
    const Pair best = Compare(int4, bytes, seconds);
    // Reads of B alone.
    const double rate = double(shape.k) * shape.n / best.other / 1e6;
    const std::string measured =
        Text("%.2f x (%.3f, %.3f ms: %.1f GB/s)", best.other / best.ours,
             best.ours, best.other, rate);
    const nlohmann::json details = {
        {"int4_ms", best.ours}, {"int8_ms", best.other}, {"int8_gbs", rate}};
    const std::string name = Text("int4 weights %dx%dx%d, %s", shape.m, shape.k,
                                  shape.n, NameOf(layout));
    if (layout == Layout::kNormal) {
      figures.AddBeside(name, measured, details);
    } else {
      figures.Add(name, Text(">= %.1f x as fast as int8", kLeastOfInt4),
                  measured, best.other >= kLeastOfInt4 * best.ours, details);
    }
  }
}

bool MeasureAll(double seconds, const std::string& out) {
  soft::SingleThreaded::Forever();
  std::printf("level %s\n", soft::CpuLevelName(soft::CurrentCpuLevel()));
  Figures::PrintHead();
  Figures figures;
  for (const int32_t type : {kBytes, kHalves}) {
    BesideOneDnn(type, {1, 4096, 4096}, seconds, figures);
    BesideOneDnn(type, {256, 1024, 1024}, seconds, figures);
  }
  Int4BesideBytes({1, 4096, 4096}, seconds, figures);
  if (!out.empty()) {
    std::ofstream file(out);
    file << figures.rows().dump(1) << '\n';
    file.close();
    if (!file) throw std::runtime_error("cannot write '" + out + "'");
  }
  return figures.all_hold();
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  CLI::App app("What matrix products take beside oneDNN's");
  std::string out;
  double seconds = 1;
  app.add_option("--out", out);
  app.add_option("--seconds", seconds)->check(CLI::Range(0.1, 60.0));
  CLI11_PARSE(app, argc, argv);
  try {
    return rknnd::bench::MeasureAll(seconds, out) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
