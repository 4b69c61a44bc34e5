// What clients ask of contexts, in any order: contexts are made with any flags
// of rknn_init, of models of each kind, and every verb is asked of them while
// they are loading, ready, running or gone. Each answers once, with a reason
// where it refuses, and a neighbour's frame is right at the end.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/testing/context_verbs.h"
#include "daemon/core/testing/core_fixture.h"

namespace {

namespace core = rknnd::core;
using core::testing::ContextVerb;
using core::testing::ContextVerbs;

// Longer inputs only take longer.
constexpr size_t kMostBytes = 1024;
constexpr uint32_t kSessions = 2;
constexpr uint32_t kContexts = 3;

void Require(bool holds) {
  if (!holds) std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  [[nodiscard]] bool empty() const { return left_ == 0; }
  uint32_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  uint32_t Below(uint32_t count) { return Byte() % count; }
  uint32_t Word() {
    const uint32_t low = Byte() | Byte() << 8;
    return low | Byte() << 16;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

class Board final : public core::testing::CoreTest {
 public:
  explicit Board(uint32_t cores) : CoreTest(cores) {
    for (uint32_t i = 0; i < kSessions; ++i) Connect(i);
    neighbour_ = Open(900, 1002);
    MakeReady(neighbour_, 1, "name=neighbour");
  }

  void Play(Input input) {
    while (!input.empty()) Act(input);
    device.HoldJobs(false);
    for (int i = 0; i < 3; ++i) {
      RunLoops();
      RunReady();
      while (device.Release()) {
      }
    }
    RunLoops();
    for (const Question& asked : asked_) {
      // Who has gone is not answered any more.
      Require(asked.answers->size() <= 1);
      const bool gone = asked.session != sessions_[asked.place].session;
      Require(gone || asked.answers->size() == 1);
      for (const absl::Status& answer : *asked.answers) {
        Require(answer.ok() != !answer.message().empty());
      }
    }
    (void)service->Contexts();
    (void)service->Memory();
    (void)service->Sram();
    Require(Submit(neighbour_, 1, 0).ok());
    RunReady();
    Require(neighbour_.sink->count() == 1 &&
            neighbour_.sink->last().status.ok());
    Require(device.violations() == 0);
  }

 private:
  using Answers = std::shared_ptr<std::vector<absl::Status>>;
  struct Question {
    uint32_t place;
    std::shared_ptr<core::Session> session;
    Answers answers;
  };

  void TestBody() override {}

  void Connect(uint32_t place) {
    sessions_[place] = Open(static_cast<int32_t>(100 + place), 1000 + place);
    (void)AllocateNow(sessions_[place], core::testing::kVerbBuffer,
                      core::testing::kVerbBufferBytes, 0);
  }

  Answers Note(uint32_t place) {
    auto answers = std::make_shared<std::vector<absl::Status>>();
    asked_.push_back({place, sessions_[place].session, answers});
    return answers;
  }

  void Act(Input& input) {
    static const std::vector<std::string> kModels = {
        "weight=1000 internal=4096 layers=3 sram=8192",
        "internal=4096 row=32 row=8",
        "inputs=2 outputs=2 batch=4 internal=4096",
        "described=rk3576 internal=64",
        "refuse=it",
    };
    const uint32_t action = input.Below(16);
    const uint32_t place = input.Below(kSessions);
    const core::testing::TestSession& session = sessions_[place];
    switch (action) {
      case 0: {
        const std::string& model =
            kModels[input.Below(static_cast<uint32_t>(kModels.size()))];
        const Answers answers = Note(place);
        StartUpload(session, model, model, answers.get());
        uploads_.push_back(answers);
        break;
      }
      case 1:
      case 2: {
        core::ContextRequest request;
        request.number = 1 + input.Below(kContexts);
        request.model =
            Id(kModels[input.Below(static_cast<uint32_t>(kModels.size()))]);
        request.flags = input.Word() & 0x1ffff;
        request.core_mask = input.Below(8);
        session->CreateContext(request,
                               [answers = Note(place)](const auto& made) {
                                 answers->push_back(made.status());
                               });
        break;
      }
      case 3:
        RunLoops();
        break;
      case 4:
        loop.RunOne();
        loader.RunOne();
        break;
      case 5:
        pager.RunOne();
        quick_loader.RunOne();
        break;
      case 6:
        RunReady();
        device.HoldJobs(input.Below(2) == 0);
        break;
      case 7:
        device.Release();
        RunReady();
        break;
      case 8:
        Advance(static_cast<rknnd::base::Nanoseconds>(input.Byte()) *
                rknnd::base::kSecond);
        break;
      case 9:
        service->CloseSession(session->id());
        Connect(place);
        break;
      default: {
        const auto& verbs = ContextVerbs();
        const ContextVerb& verb =
            verbs[input.Word() % static_cast<uint32_t>(verbs.size())];
        const uint32_t context = 1 + input.Below(kContexts + 1);
        verb.ask(*session.session, context,
                 [answers = Note(place)](absl::Status answer) {
                   answers->push_back(std::move(answer));
                 });
        break;
      }
    }
  }

  core::testing::TestSession sessions_[kSessions];
  core::testing::TestSession neighbour_;
  std::vector<Question> asked_;
  std::vector<Answers> uploads_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kMostBytes) return 0;
  static const bool kAborts = [] {
    GTEST_FLAG_SET(break_on_failure, true);
    return true;
  }();
  Require(kAborts);
  Input input(data, size);
  Board board(1 + input.Below(3));
  board.Play(input);
  return 0;
}
