// Every verb on every kind of context: each is answered, by OK or by an error
// with words, and a neighbour's frames are right before and after it.

#include "daemon/core/testing/context_verbs.h"

#include <filesystem>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/values/model_options.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::ContextVerb;
using testing::ContextVerbs;
using testing::InitFlag;
using testing::InitFlags;
using testing::kVerbBuffer;
using testing::kVerbBufferBytes;
using testing::TestSession;

constexpr uint32_t kContext = 5;

// What the context is when it is asked.
enum class Moment {
  kReady,
  kLoading,    // its model is being loaded
  kPreparing,  // its model is there, its room to run is not
  kWrong,      // there is none of that number
  kOthers,     // it is another session's
  kDestroyed,  // there was one
  kLeaving,    // it is destroyed before what was asked has been done
  kBroken,     // its model's kernels could not be made
  kOwnerGone,  // that shares the weights of a model which has gone since
  kRunning,    // a job of it is on its core
  kClosed,     // its session has ended
};

struct Kind {
  std::string name;
  Moment moment = Moment::kReady;
  uint32_t flags = 0;
  std::string model = "weight=1000 internal=4096 layers=3 sram=8192";
};

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds = {
      {"Loading", Moment::kLoading},
      {"Preparing", Moment::kPreparing},
      {"Wrong", Moment::kWrong},
      {"Others", Moment::kOthers},
      {"Destroyed", Moment::kDestroyed},
      {"DestroyedInfo", Moment::kDestroyed, kInfoOnly},
      {"Leaving", Moment::kLeaving},
      {"LeavingInfo", Moment::kLeaving, kInfoOnly},
      {"Broken", Moment::kBroken},
      {"OwnerGone", Moment::kOwnerGone},
      {"OwnerGoneInfo", Moment::kOwnerGone, kInfoOnly},
      {"Running", Moment::kRunning},
      {"Closed", Moment::kClosed},
      {"Shapes", Moment::kReady, 0, "internal=4096 row=32 row=8"},
      {"ShapesInfo", Moment::kReady, kInfoOnly, "internal=4096 row=32 row=8"},
      {"Batch", Moment::kReady, 0, "internal=4096 batch=4"},
      {"NoInternal", Moment::kReady, 0, "inputs=2 outputs=2"},
      {"Described", Moment::kReady, kInfoOnly, "described=rk3576 internal=64"},
  };
  for (const InitFlag& flag : InitFlags()) {
    // Shared SRAM is SRAM.
    const uint32_t with = flag.bits == kShareSram ? kEnableSram : 0;
    kinds.push_back({flag.name, Moment::kReady, flag.bits | with});
    if (flag.bits == kInfoOnly) continue;
    kinds.push_back({absl::StrCat(flag.name, "Info"), Moment::kReady,
                     flag.bits | with | kInfoOnly});
    kinds.push_back({absl::StrCat(flag.name, "Described"), Moment::kReady,
                     flag.bits | with | kInfoOnly,
                     "described=rk3576 internal=64 sram=8192"});
  }
  return kinds;
}

class ContextVerbsTest
    : public testing::CoreTest,
      public ::testing::WithParamInterface<std::tuple<Kind, ContextVerb>> {
 protected:
  ContextVerbsTest() {
    options.cache_dir = folder_.path();
    device.set_compiler("fake");
    StartService();
  }

  base::UniqueFd Sealed(const std::string& bytes) {
    auto fd = base::MakeImmutableMemfd(
        "model", std::as_bytes(std::span(bytes.data(), bytes.size())));
    EXPECT_TRUE(fd.ok());
    return fd.ok() ? *std::move(fd) : base::UniqueFd();
  }

  // A context of `kind` with number kContext, and whose session asks.
  TestSession Make(const Kind& kind) {
    if (kind.moment == Moment::kBroken) SpoilForm(kind.model);
    TestSession session = Open();
    EXPECT_TRUE(AllocateNow(session, kVerbBuffer, kVerbBufferBytes, 0).ok());
    switch (kind.moment) {
      case Moment::kWrong:
        break;
      case Moment::kLoading:
        StartUpload(session, kind.model, kind.model, &ignored_);
        StartCreate(session, kContext, kind.model, &ignored_);
        break;
      case Moment::kPreparing:
        EXPECT_EQ(Upload(session, kind.model), absl::OkStatus());
        StartCreate(session, kContext, kind.model, &ignored_);
        break;
      case Moment::kOthers: {
        const TestSession other = Open(200, 1001);
        MakeReady(other, kContext, kind.model);
        break;
      }
      case Moment::kBroken:
        EXPECT_EQ(Create(session, kContext, kind.model), absl::OkStatus());
        Advance(base::kSecond);
        device.FailFinish(absl::OkStatus());
        break;
      case Moment::kOwnerGone:
        MakeFollower(session, kind);
        break;
      case Moment::kRunning:
        MakeReady(session, kContext, kind.model, kind.flags);
        device.HoldJobs(true);
        EXPECT_TRUE(Submit(session, kContext, 0).ok());
        RunReady();
        EXPECT_EQ(device.held(), 1U);
        break;
      case Moment::kReady:
      case Moment::kDestroyed:
      case Moment::kLeaving:
      case Moment::kClosed:
        EXPECT_EQ(Upload(session, kind.model), absl::OkStatus());
        EXPECT_EQ(Create(session, kContext, kind.model, kind.flags),
                  absl::OkStatus());
        if (kind.moment == Moment::kDestroyed) {
          EXPECT_TRUE(session->DestroyContext(kContext).ok());
        }
        if (kind.moment == Moment::kClosed) {
          service->CloseSession(session->id());
        }
        break;
    }
    return session;
  }

  // The model's compiled form is taken, and its kernels cannot be made then.
  void SpoilForm(const std::string& model) {
    EXPECT_EQ(Upload(Open(), model), absl::OkStatus());
    StartService();
    device.FailFinish(absl::DataLossError("the form was cut"));
  }

  // Whose owner is no longer loaded, nor on disk.
  void MakeFollower(const TestSession& session, const Kind& kind) {
    const std::string owner = "weight=1000 name=owner";
    ModelUpload upload;
    upload.options = base::WithWeightsOf("", Id(owner));
    upload.id = Id(kind.model, upload.options);
    upload.name = "follower.onnx";
    upload.bytes = Sealed(kind.model);
    upload.weights_of = Sealed(owner);
    ContextRequest request;
    request.number = kContext;
    request.model = upload.id;
    request.flags = kind.flags | 0x20;
    absl::Status answer = absl::UnknownError("never answered");
    session->UploadModel(std::move(upload),
                         [&](const absl::Status& done) { answer = done; });
    RunLoops();
    EXPECT_EQ(answer, absl::OkStatus());
    session->CreateContext(request,
                           [&](const auto& made) { answer = made.status(); });
    RunLoops();
    EXPECT_EQ(answer, absl::OkStatus());
    Advance(base::kSecond * 3600);
    for (const auto& file :
         std::filesystem::directory_iterator(folder_.path())) {
      std::filesystem::remove(file);
    }
  }

  std::vector<absl::Status> ignored_;

 private:
  testing::TemporaryFolder folder_;
};

// A program that is served meanwhile.
class Neighbour {
 public:
  explicit Neighbour(TestSession session) : session_(std::move(session)) {}

  // Maps what it gave to the daemon.
  void Keep(const BufferInfo& input, const BufferInfo& output) {
    for (auto [info, mapping] :
         {std::pair{&input, &input_}, std::pair{&output, &output_}}) {
      auto mapped = base::Mapping::OfFd(info->fd.get(), 0, info->size,
                                        base::Mapping::Access::kReadWrite);
      ASSERT_TRUE(mapped.ok());
      *mapping = *std::move(mapped);
    }
  }
  void Write(uint8_t pixel) {
    input_.data()[0] = static_cast<std::byte>(pixel);
    output_.data()[0] = std::byte{0};
  }
  [[nodiscard]] uint8_t answer() const {
    return static_cast<uint8_t>(output_.data()[0]);
  }
  [[nodiscard]] const TestSession& session() const { return session_; }

 private:
  TestSession session_;
  base::Mapping input_, output_;
};

TEST_P(ContextVerbsTest, IsAnsweredAndLeavesTheNeighbourRight) {
  const auto& [kind, verb] = GetParam();
  const TestSession session = Make(kind);
  Neighbour neighbour(Open(300, 1002));
  const auto run = [&](uint8_t pixel, uint32_t slot) {
    neighbour.Write(pixel);
    ASSERT_TRUE(Submit(neighbour.session(), 1, slot, slot + 1).ok());
    RunReady();
    ASSERT_EQ(neighbour.session().sink->count(), slot + 1);
    const JobCompletion frame = neighbour.session().sink->last();
    EXPECT_EQ(frame.status, absl::OkStatus());
    EXPECT_EQ(neighbour.answer(), pixel + 1);
  };
  const auto connect = [&] {
    const TestSession& beside = neighbour.session();
    ASSERT_EQ(Upload(beside, "name=neighbour"), absl::OkStatus());
    ASSERT_EQ(Create(beside, 1, "name=neighbour"), absl::OkStatus());
    auto input = AllocateNow(beside, 1, 16, 0);
    auto output = AllocateNow(beside, 2, 16, 0);
    ASSERT_TRUE(input.ok() && output.ok());
    neighbour.Keep(*input, *output);
    ASSERT_TRUE(
        beside->Bind(BindTo(1, driver::Direction::kInput, 0, 1, 16)).ok());
    ASSERT_TRUE(
        beside->Bind(BindTo(1, driver::Direction::kOutput, 0, 2, 16)).ok());
    run(1, 0);
  };
  // What is on its way must not arrive before the question.
  const bool is_early =
      kind.moment == Moment::kLoading || kind.moment == Moment::kPreparing;
  if (!is_early && kind.moment != Moment::kRunning) connect();

  std::vector<absl::Status> answers;
  verb.ask(*session.session, kContext,
           [&](absl::Status answer) { answers.push_back(std::move(answer)); });
  if (kind.moment == Moment::kLeaving) {
    (void)session->DestroyContext(kContext);
  }
  device.HoldJobs(false);
  RunLoops();
  RunReady();
  while (device.Release()) {
  }
  RunLoops();

  ASSERT_EQ(answers.size(), 1U);
  EXPECT_NE(answers[0].ok(), !answers[0].message().empty()) << answers[0];
  for (const JobCompletion& job : session.sink->all()) {
    EXPECT_NE(job.status.ok(), !job.status.message().empty()) << job.status;
  }
  if (neighbour.session().sink->count() == 0) connect();
  run(41, 1);

  // Nor does its end harm anybody, nor what the daemon tells meanwhile.
  (void)service->Contexts();
  (void)service->Memory();
  (void)service->Sram();
  (void)service->Sessions();
  service->CloseSession(session->id());
  RunLoops();
  run(43, 2);
}

INSTANTIATE_TEST_SUITE_P(
    All, ContextVerbsTest,
    ::testing::Combine(::testing::ValuesIn(Kinds()),
                       ::testing::ValuesIn(ContextVerbs())),
    [](const auto& one) {
      return std::get<0>(one.param).name + "_" + std::get<1>(one.param).name;
    });

}  // namespace
}  // namespace rknnd::core
