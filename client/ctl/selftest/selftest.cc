#include "client/ctl/selftest/selftest.h"

#include <fcntl.h>
#include <linux/dma-heap.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/posix/memfd.h"
#include "base/posix/unique_fd.h"
#include "base/values/sha256.h"
#include "client/ctl/board/doctor.h"
#include "client/ctl/board/operate.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/models/network.h"
#include "client/ctl/models/network_inputs.h"
#include "client/ctl/models/on_target.h"
#include "client/ctl/selftest/network.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr char kBuiltIn[] = "built-in network";
// One, two and three cores; the driver has no jobs for other sets.
constexpr std::array kMasks = {RKNN_NPU_CORE_0, RKNN_NPU_CORE_1,
                               RKNN_NPU_CORE_2, RKNN_NPU_CORE_0_1,
                               RKNN_NPU_CORE_0_1_2};
constexpr std::array kHeaps = {"/dev/dma_heap/system",
                               "/dev/dma_heap/system-uncached",
                               "/dev/dma_heap/reserved", "/dev/dma_heap/cma"};
// What of the doctor's findings is the NPU's.
constexpr std::array kChecks = {"driver", "driver-version", "device-node",
                                "iommu", "npu"};
constexpr auto kBetweenResets = std::chrono::milliseconds(300);
constexpr int kResets = 3;

// One network, how to call it, and the hash of what it has to answer.
struct Case {
  std::string name, path;
  std::vector<std::string> inputs;
  std::string answer;
};

Expected<std::unique_ptr<Network>> Load(const Case& of, uint32_t flags = 0) {
  return LoadWithInputs(of.path, of.inputs, flags);
}

Expected<std::string> Answer(Network& network) {
  if (Expected<void> run = network.Run(); !run) return std::move(run).error();
  const Expected<std::vector<TensorOutput>> outputs = network.GetOutputs();
  if (!outputs) return outputs.error();
  base::Sha256 hash;
  for (const TensorOutput& output : *outputs) hash.Update(output.bytes);
  return base::ToHex(hash.Finish());
}

// Empty: as it has to be.
std::string WhatIsWrong(const Case& of, Network& network) {
  const Expected<std::string> answer = Answer(network);
  if (!answer) return answer.error().message;
  if (*answer == of.answer) return {};
  return "the answer is not the emulated NPU's; 'rknnctl record' there and "
         "'rknnctl record --compare' here name the first layer that differs";
}

// Memory of another exporter; invalid: there is none to be had.
base::UniqueFd MakeDmaBuf(uint64_t bytes) {
  for (const char* path : kHeaps) {
    const base::UniqueFd heap(open(path, O_RDWR | O_CLOEXEC));
    if (!heap.valid()) continue;
    dma_heap_allocation_data wanted = {};
    wanted.len = bytes;
    wanted.fd_flags = O_RDWR | O_CLOEXEC;
    if (ioctl(heap.get(), DMA_HEAP_IOCTL_ALLOC, &wanted) == 0) {
      return base::UniqueFd(static_cast<int>(wanted.fd));
    }
  }
  return {};
}

class SelfTester {
 public:
  explicit SelfTester(const SelfTestOptions& options) : options_(options) {}

  Expected<SelfTestAnswer> Run() {
    if (Expected<void> made = MakeCases(); !made) {
      return std::move(made).error();
    }
    TestDoctor();
    if (TestDevice()) {
      for (const Case& of : cases_) TestNetwork(of);
      TestRuns("runs", nullptr);
      if (options_.reset) TestReset();
      TestSram();
      TestDmaBuf();
    }
    return Report();
  }

 private:
  enum class Result { kPassed, kFailed, kSkipped };

  void Add(const std::string& step, Result result, const std::string& text) {
    static constexpr const char* kNames[] = {"passed", "FAILED", "skipped"};
    static constexpr const char* kJson[] = {"passed", "failed", "skipped"};
    const auto number = static_cast<size_t>(result);
    failed_ |= result == Result::kFailed;
    steps_.push_back(
        {{"step", step}, {"result", kJson[number]}, {"text", text}});
    table_.Add({step, kNames[number], Printable(text)});
  }

  // The networks, and their answers on the emulated NPU. Before this process
  // has called the library or started a thread.
  Expected<void> MakeCases() {
    const std::span<const std::byte> bytes = SelfTestNetwork();
    Expected<base::UniqueFd> file =
        base::MakeMemfd("rknnctl-selftest", bytes.size());
    if (!file) return std::move(file).error();
    if (pwrite(file->get(), bytes.data(), bytes.size(), 0) !=
        static_cast<ssize_t>(bytes.size())) {
      return base::ErrnoError(errno, "write the built-in network");
    }
    built_in_ = *std::move(file);
    cases_.push_back(
        {kBuiltIn, "/proc/self/fd/" + std::to_string(built_in_.get()), {}, {}});
    for (const SelfTestCase& of : options_.cases) {
      cases_.push_back({of.file, of.file, of.inputs, {}});
    }
    const Expected<Json> answers =
        OnTarget("local:", "ran the networks on the emulated NPU",
                 [this]() -> Expected<Json> {
                   Json list = Json::array();
                   for (const Case& of : cases_) {
                     Expected<std::unique_ptr<Network>> network = Load(of);
                     if (!network) return std::move(network).error();
                     Expected<std::string> answer = Answer(**network);
                     if (!answer) return std::move(answer).error();
                     list.push_back(*std::move(answer));
                   }
                   return list;
                 });
    if (!answers) return answers.error();
    for (size_t i = 0; i < cases_.size(); ++i) {
      cases_[i].answer = (*answers)[i].get<std::string>();
    }
    return {};
  }

  void TestDoctor() {
    const Diagnosis diagnosis = Diagnose(options_.target);
    std::string bad;
    size_t seen = 0;
    for (const Finding& finding : diagnosis.findings) {
      bool is_ours = false;
      for (const char* check : kChecks) is_ours |= finding.check == check;
      if (!is_ours) continue;
      ++seen;
      if (finding.severity != Severity::kError) continue;
      bad += (bad.empty() ? "" : "; ") + finding.check + ": " + finding.text;
    }
    doctor_ = DiagnosisOutput(diagnosis, false).json;
    Add("doctor", bad.empty() ? Result::kPassed : Result::kFailed,
        bad.empty() ? FormatCount(seen, "finding") + " of the NPU, no error"
                    : bad);
  }

  // False: there is no daemon to go on with.
  bool TestDevice() {
    Expected<ControlConnection> daemon =
        ControlConnection::Open(options_.target);
    Expected<wire::Report> status =
        daemon ? daemon->Ask(rknnd_v1_ReportKind_REPORT_STATUS)
               : Expected<wire::Report>(daemon.error());
    if (!status) {
      Add("device", Result::kFailed, status.error().message);
      return false;
    }
    cores_ = std::max<uint32_t>(daemon->welcome().cores, 1);
    sram_total_ = status->sram_total;
    status_ = StatusOutput(*status, *status, 0, daemon->AskNpu()).json;
    const Json& device = status_["device"];
    const bool is_npu = device["kind"] == "rknpu";
    Add("device", Result::kPassed,
        std::string(is_npu ? "the NPU" : "no NPU, an emulated one") + " of " +
            device["soc"].get<std::string>() + ", " +
            FormatCount(cores_, "core") + ", driver " +
            device["driver"].get<std::string>());
    return true;
  }

  void TestNetwork(const Case& of) {
    Expected<std::unique_ptr<Network>> network = Load(of);
    if (!network) {
      Add("network", Result::kFailed, of.name + ": " + network.error().message);
      return;
    }
    std::string right;
    std::string wrong;
    for (const rknn_core_mask mask : kMasks) {
      if ((static_cast<uint32_t>(mask) >> cores_) != 0) continue;
      const std::string number = std::to_string(static_cast<int>(mask));
      const Expected<void> set = (*network)->SetCoreMask(mask);
      const std::string fault =
          set ? WhatIsWrong(of, **network) : set.error().message;
      if (fault.empty()) {
        right += (right.empty() ? "" : ", ") + number;
      } else {
        wrong +=
            (wrong.empty() ? "" : "; ") + ("mask " + number) + ": " + fault;
      }
    }
    Add("network", wrong.empty() ? Result::kPassed : Result::kFailed,
        of.name + ": " +
            (wrong.empty() ? "right to the byte with masks " + right : wrong));
  }

  // All networks in turn from each of the threads, until `meanwhile` has ended,
  // too. It is called once they run, and says what failed.
  void TestRuns(const char* step,
                const std::function<std::string()>& meanwhile) {
    std::atomic<uint64_t> left = options_.runs;
    std::atomic<bool> meanwhile_ended = meanwhile == nullptr;
    std::atomic<uint64_t> done = 0;
    std::atomic<bool> stop = false;
    std::mutex mutex;
    std::string fault;
    const auto fail = [&](const std::string& what) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (fault.empty()) fault = what;
      stop = true;
    };
    const auto work = [&] {
      std::vector<std::unique_ptr<Network>> networks;
      for (const Case& of : cases_) {
        Expected<std::unique_ptr<Network>> network = Load(of);
        if (!network) return fail(of.name + ": " + network.error().message);
        networks.push_back(*std::move(network));
      }
      for (size_t next = 0; !stop; next = (next + 1) % cases_.size()) {
        uint64_t has = left;
        while (has != 0 && !left.compare_exchange_weak(has, has - 1)) {
        }
        if (has == 0 && meanwhile_ended) return;
        const std::string wrong = WhatIsWrong(cases_[next], *networks[next]);
        if (!wrong.empty()) return fail(cases_[next].name + ": " + wrong);
        ++done;
      }
    };
    const auto begun = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < cores_; ++i) threads.emplace_back(work);
    if (meanwhile != nullptr) {
      const std::string what = meanwhile();
      if (!what.empty()) fail(what);
      meanwhile_ended = true;
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun)
            .count();
    if (!fault.empty()) {
      Add(step, Result::kFailed,
          "after " + FormatCount(done, "run") + ": " + fault);
      return;
    }
    Add(step, Result::kPassed,
        FormatCount(done, "run") + " from " + FormatCount(cores_, "thread") +
            ", all right to the byte, " +
            Printed("%.0f", static_cast<double>(done) / seconds) + " a second");
  }

  void TestReset() {
    TestRuns("reset", [this]() -> std::string {
      for (int i = 0; i < kResets; ++i) {
        std::this_thread::sleep_for(kBetweenResets);
        const Expected<Output> reset = Reset(options_.target);
        if (!reset) return reset.error().message;
      }
      return {};
    });
  }

  void TestSram() {
    if (sram_total_ == 0) {
      Add("sram", Result::kSkipped,
          "the NPU has none: 'rknnctl doctor' says why");
      return;
    }
    for (const Case& of : cases_) {
      Expected<std::unique_ptr<Network>> network =
          Load(of, RKNN_FLAG_ENABLE_SRAM);
      const std::string fault =
          network ? WhatIsWrong(of, **network) : network.error().message;
      if (fault.empty()) continue;
      Add("sram", Result::kFailed, of.name + ": " + fault);
      return;
    }
    Add("sram", Result::kPassed,
        "right to the byte with it, of " + FormatBytes(sram_total_));
  }

  void TestDmaBuf() {
    std::string names;
    for (const Case& of : cases_) {
      Expected<std::unique_ptr<Network>> network = Load(of);
      if (!network || (*network)->inputs().size() != 1) continue;
      const Expected<std::vector<TensorInput>> inputs =
          MakeInputs(**network, of.inputs);
      if (!inputs) continue;
      const base::UniqueFd memory = MakeDmaBuf((*inputs)[0].bytes.size());
      if (!memory.valid()) {
        Add("dma-buf", Result::kSkipped,
            "there is no heap in /dev/dma_heap, or only root may open it");
        return;
      }
      const Expected<void> bound =
          (*network)->BindInput(memory.get(), (*inputs)[0]);
      const std::string fault =
          bound ? WhatIsWrong(of, **network) : bound.error().message;
      if (!fault.empty()) {
        Add("dma-buf", Result::kFailed, of.name + ": " + fault);
        return;
      }
      names += (names.empty() ? "" : ", ") + of.name;
    }
    Add("dma-buf", Result::kPassed,
        "right to the byte from another driver's memory: " + names);
  }

  Expected<SelfTestAnswer> Report() {
    SelfTestAnswer answer;
    answer.passed = !failed_;
    answer.output.json = {{"passed", answer.passed},
                          {"steps", steps_},
                          {"doctor", doctor_},
                          {"status", status_}};
    answer.output.text = table_.ToString();
    if (!options_.report.empty()) {
      std::ofstream file(options_.report);
      file << answer.output.json.dump(2) << '\n';
      file.close();
      if (!file) {
        return Error{Code::kUnknown, "cannot write '" + options_.report + "'"};
      }
      answer.output.text += "\nthe report is in " + options_.report + "\n";
    }
    return answer;
  }

  const SelfTestOptions& options_;
  base::UniqueFd built_in_;
  std::vector<Case> cases_;
  uint32_t cores_ = 1;
  uint64_t sram_total_ = 0;
  bool failed_ = false;
  Json steps_ = Json::array();
  Json doctor_, status_;
  Table table_{{{"STEP"}, {"RESULT"}, {"WHAT"}}};
};

}  // namespace

Expected<SelfTestAnswer> SelfTest(const SelfTestOptions& options) {
  return SelfTester(options).Run();
}

}  // namespace rknnd::client
