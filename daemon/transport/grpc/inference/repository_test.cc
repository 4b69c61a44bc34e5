// Tests of the repository on a real loop and core: what is served, what stays
// served when something goes wrong, and what is said about the rest.

#include "daemon/transport/grpc/inference/repository.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/values/sha256.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/transport/session/testing/test_daemon.h"
#include "gtest/gtest.h"

namespace rknnd::transport {
namespace {

namespace fs = std::filesystem;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr char kModel[] = "bytes=16";
constexpr char kOtherModel[] = "bytes=32";

// Calls a test when a line is written, on the loop.
class HookedLog final : public EventLog {
 public:
  void Write(Severity /*severity*/, const std::string& text) override {
    if (hook) hook(text);
  }
  std::function<void(const std::string&)> hook;
};

class RepositoryTest : public ::testing::Test {
 protected:
  ~RepositoryTest() override { StopRepository(); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((fs::path(root_.path()) / path).parent_path());
    // As maintainers should: never a half of it.
    std::ofstream(root_.path() + "/new") << text;
    fs::rename(root_.path() + "/new", fs::path(root_.path()) / path);
  }
  absl::Status Start(bool folder = true) {
    GrpcOptions options;
    if (folder) options.model_repository = root_.path();
    GrpcEnvironment environment;
    environment.loop = &daemon_.loop();
    environment.service = &daemon_.service();
    environment.log = &log_;
    absl::Status started;
    daemon_.RunOnLoop([&] {
      auto made = Repository::Create(options, environment);
      started = made.status();
      if (made.ok()) repository_ = *std::move(made);
    });
    return started;
  }
  void StartAndSettle() {
    ASSERT_TRUE(Start().ok());
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!repository_->settled()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      daemon_.RunOnLoop([] {});
    }
  }
  void StopRepository() {
    if (repository_ == nullptr) return;
    daemon_.RunOnLoop([&] {
      repository_->Stop();
      repository_ = nullptr;
    });
  }
  static absl::Status Await(std::future<absl::Status> answer) {
    if (answer.wait_for(kPatience) != std::future_status::ready) {
      return absl::UnknownError("not answered");
    }
    return answer.get();
  }
  std::future<absl::Status> StartLoad(Repository::LoadRequest request) {
    auto promise = std::make_shared<std::promise<absl::Status>>();
    auto answer = promise->get_future();
    repository_->Load(std::move(request), [promise](absl::Status status) {
      promise->set_value(std::move(status));
    });
    return answer;
  }
  static Repository::LoadRequest Named(const std::string& name) {
    Repository::LoadRequest request;
    request.name = name;
    return request;
  }
  absl::Status Load(const std::string& name, const std::string& config = "") {
    auto request = Named(name);
    request.config = config;
    return Await(StartLoad(std::move(request)));
  }
  absl::Status LoadFile(const std::string& name, const std::string& bytes) {
    auto request = Named(name);
    request.files = {{"1/model.onnx", bytes}};
    return Await(StartLoad(std::move(request)));
  }
  absl::Status Unload(const std::string& name) {
    auto promise = std::make_shared<std::promise<absl::Status>>();
    repository_->Unload("", name, [promise](absl::Status status) {
      promise->set_value(std::move(status));
    });
    return Await(promise->get_future());
  }
  // "name version STATE", in the index's order.
  std::vector<std::string> Index() {
    std::vector<std::string> lines;
    for (const Repository::Entry& entry : repository_->Index()) {
      lines.push_back(entry.name + " " + entry.version + " " + entry.state);
    }
    return lines;
  }
  std::string ReasonOf(const std::string& name) {
    for (const Repository::Entry& entry : repository_->Index()) {
      if (entry.name == name) return entry.reason;
    }
    return "not in the index";
  }
  // The version that a name and version mean; or the code of why none.
  std::string Find(const std::string& name, const std::string& version = "") {
    const auto found = repository_->Find(name, version);
    return found.ok() ? found->version
                      : absl::StatusCodeToString(found.status().code());
  }
  core::ModelId IdOf(const std::string& name) {
    const auto found = repository_->Find(name, "");
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->id : core::ModelId{};
  }
  // Contexts of all loaded models.
  uint32_t Contexts() { return daemon_.Status().contexts; }

  core::testing::TemporaryFolder root_;
  HookedLog log_;
  testing::TestDaemon daemon_;
  std::unique_ptr<Repository> repository_;
};

core::ModelId HashOf(const std::string& model) {
  return base::Sha256Of(std::as_bytes(std::span(model.data(), model.size())));
}

using Lines = std::vector<std::string>;

TEST_F(RepositoryTest, FolderIsServedAndABrokenModelStopsNoOther) {
  Write("a.onnx", kModel);
  Write("b/1/model.onnx", "refuse=on-purpose");
  Write("c/2/model.onnx", kOtherModel);
  StartAndSettle();
  EXPECT_EQ(Index(), (Lines{"a 1 READY", "b 1 UNAVAILABLE", "c 2 READY"}));
  EXPECT_NE(ReasonOf("b").find("on-purpose"), std::string::npos);
  EXPECT_EQ(Find("a"), "1");
  EXPECT_EQ(Find("b"), "UNAVAILABLE");
  EXPECT_EQ(Find("c"), "2");
  EXPECT_EQ(Find("c", "1"), "NOT_FOUND");
  EXPECT_EQ(Find("d"), "NOT_FOUND");
  EXPECT_EQ(IdOf("a"), HashOf(kModel));
  EXPECT_EQ(Contexts(), 2U);
}

TEST_F(RepositoryTest, FolderThatIsNotThereIsAnError) {
  fs::remove_all(root_.path());
  EXPECT_EQ(Start().code(), absl::StatusCode::kNotFound);
}

TEST_F(RepositoryTest, WithoutAFolderNothingIsServedAndAllIsSettled) {
  ASSERT_TRUE(Start(/*folder=*/false).ok());
  EXPECT_TRUE(repository_->settled());
  EXPECT_TRUE(Index().empty());
  EXPECT_EQ(Load("m").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Index().empty());
}

TEST_F(RepositoryTest, NewestVersionIsServedUnlessAConfigAsksForOthers) {
  Write("m/9/model.onnx", kModel);
  Write("m/10/model.onnx", kOtherModel);
  StartAndSettle();
  EXPECT_EQ(Index(), Lines{"m 10 READY"});
  ASSERT_TRUE(Load("m", R"({"version_policy":{"all":{}}})").ok());
  EXPECT_EQ(Index(), (Lines{"m 10 READY", "m 9 READY"}));
  EXPECT_EQ(Find("m"), "10");
  EXPECT_EQ(Find("m", "9"), "9");
  ASSERT_TRUE(
      Load("m", R"({"version_policy":{"specific":{"versions":[9]}}})").ok());
  EXPECT_EQ(Index(), Lines{"m 9 READY"});
  EXPECT_EQ(Find("m"), "9");
  EXPECT_EQ(Contexts(), 1U);
  EXPECT_EQ(Load("m", "nonsense").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Find("m"), "9");
}

TEST_F(RepositoryTest, ModelThatCameLaterIsServedOnceItIsLoaded) {
  StartAndSettle();
  Write("later.onnx", kModel);
  EXPECT_EQ(Find("later"), "NOT_FOUND");
  ASSERT_TRUE(Load("later").ok());
  EXPECT_EQ(Find("later"), "1");
  EXPECT_EQ(Load("never").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Index(), Lines{"later 1 READY"});
}

TEST_F(RepositoryTest, LoadingAgainTakesAChangedFileAndNothingElseDoes) {
  Write("m.onnx", kModel);
  StartAndSettle();
  const core::ModelId before = IdOf("m");
  const uint32_t loads = daemon_.device().loads();
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(daemon_.device().loads(), loads);
  Write("m.onnx", kOtherModel);
  EXPECT_EQ(IdOf("m"), before);
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(IdOf("m"), HashOf(kOtherModel));
  // What it was is kept by those alone who still run it.
  EXPECT_EQ(Contexts(), 1U);
}

TEST_F(RepositoryTest, WhatIsServedStaysWhenLoadingAgainFails) {
  Write("m/1/model.onnx", kModel);
  StartAndSettle();
  Write("m/1/model.onnx", "refuse=worse");
  EXPECT_FALSE(Load("m").ok());
  EXPECT_EQ(Index(), Lines{"m 1 READY"});
  EXPECT_NE(ReasonOf("m").find("worse"), std::string::npos);
  EXPECT_EQ(IdOf("m"), HashOf(kModel));
  // Nor does a newer version that is broken take the place of a good one.
  Write("m/1/model.onnx", kModel);
  Write("m/2/model.onnx", "refuse=worse");
  EXPECT_FALSE(Load("m").ok());
  EXPECT_EQ(Index(), (Lines{"m 2 UNAVAILABLE", "m 1 READY"}));
  EXPECT_EQ(Find("m"), "1");
  EXPECT_EQ(Find("m", "2"), "UNAVAILABLE");
  fs::remove_all(root_.path() + "/m");
  EXPECT_EQ(Load("m").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Find("m"), "1");
}

TEST_F(RepositoryTest, UnloadedModelIsUnavailableUntilItIsLoadedAgain) {
  Write("m.onnx", kModel);
  StartAndSettle();
  ASSERT_TRUE(Unload("m").ok());
  EXPECT_EQ(Index(), Lines{"m 1 UNAVAILABLE"});
  EXPECT_EQ(ReasonOf("m"), "unloaded");
  EXPECT_EQ(Find("m"), "UNAVAILABLE");
  EXPECT_EQ(Contexts(), 0U);
  EXPECT_TRUE(Unload("m").ok());
  EXPECT_EQ(Unload("other").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(Find("m"), "1");
}

TEST_F(RepositoryTest, FilesOfARequestAreServedAndForgottenWithIt) {
  ASSERT_TRUE(Start(/*folder=*/false).ok());
  ASSERT_TRUE(LoadFile("sent", kModel).ok());
  EXPECT_EQ(Index(), Lines{"sent 1 READY"});
  EXPECT_EQ(IdOf("sent"), HashOf(kModel));
  ASSERT_TRUE(Unload("sent").ok());
  EXPECT_TRUE(Index().empty());
  EXPECT_EQ(Contexts(), 0U);
}

TEST_F(RepositoryTest, FilesOfARequestTakeTheFoldersPlaceUntilThatIsLoaded) {
  Write("m.onnx", kModel);
  StartAndSettle();
  ASSERT_TRUE(LoadFile("m", kOtherModel).ok());
  EXPECT_EQ(IdOf("m"), HashOf(kOtherModel));
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(IdOf("m"), HashOf(kModel));
  EXPECT_EQ(Contexts(), 1U);
}

TEST_F(RepositoryTest, FilesOfNoUseLeaveNoNameBehind) {
  ASSERT_TRUE(Start(/*folder=*/false).ok());
  EXPECT_FALSE(LoadFile("sent", "refuse=on-purpose").ok());
  auto request = Named("sent");
  request.files = {{"1/../../etc/passwd", "x"}};
  EXPECT_EQ(Await(StartLoad(std::move(request))).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Index().empty());
}

TEST_F(RepositoryTest, NamesThatLeadElsewhereAreRefused) {
  StartAndSettle();
  for (const char* name : {"", "..", "../m", "/etc/passwd", "a/b", ".m"}) {
    EXPECT_EQ(Load(name).code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(Unload(name).code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(Find(name), "NOT_FOUND") << name;
  }
}

TEST_F(RepositoryTest, OtherRepositoriesAreNotFound) {
  Write("m.onnx", kModel);
  StartAndSettle();
  auto request = Named("m");
  request.repository = "elsewhere";
  EXPECT_EQ(Await(StartLoad(request)).code(), absl::StatusCode::kNotFound);
  for (const auto& own :
       {root_.path(), fs::path(root_.path()).filename().string()}) {
    request.repository = own;
    EXPECT_TRUE(Await(StartLoad(request)).ok()) << own;
  }
}

TEST_F(RepositoryTest, ClientsHaveABoundTogether) {
  ASSERT_TRUE(Start(/*folder=*/false).ok());
  for (int i = 0; i < 256; ++i) {
    ASSERT_TRUE(LoadFile("m" + std::to_string(i), kModel).ok());
  }
  EXPECT_EQ(LoadFile("one-more", kModel).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(LoadFile("m7", kOtherModel).ok());
  ASSERT_TRUE(Unload("m8").ok());
  EXPECT_TRUE(LoadFile("one-more", kModel).ok());
}

TEST_F(RepositoryTest, WhoWaitsTooLongIsToldAndTheLoadGoesOn) {
  Write("first.onnx", kModel);
  Write("second.onnx", kOtherModel);
  StartAndSettle();
  ASSERT_TRUE(Unload("first").ok());
  ASSERT_TRUE(Unload("second").ok());
  // The second waits while the first is loaded, which takes its time.
  log_.hook = [this](const std::string& line) {
    if (line.find("'first'") == std::string::npos) return;
    daemon_.clock().Advance(121 * base::kSecond);
  };
  std::future<absl::Status> first, second;
  daemon_.RunOnLoop([&] {
    first = StartLoad(Named("first"));
    second = StartLoad(Named("second"));
  });
  EXPECT_TRUE(Await(std::move(first)).ok());
  EXPECT_EQ(Await(std::move(second)).code(),
            absl::StatusCode::kDeadlineExceeded);
  // Behind it in the queue.
  EXPECT_TRUE(Unload("first").ok());
  EXPECT_EQ(Find("second"), "1");
  daemon_.RunOnLoop([this] { log_.hook = nullptr; });
}

TEST_F(RepositoryTest, StoppingAnswersAllWhoWait) {
  Write("m.onnx", kModel);
  ASSERT_TRUE(Start().ok());
  std::vector<std::future<absl::Status>> answers;
  daemon_.RunOnLoop([&] {
    for (int i = 0; i < 3; ++i) answers.push_back(StartLoad(Named("m")));
    repository_->Stop();
    answers.push_back(StartLoad(Named("m")));
  });
  for (auto& answer : answers) {
    EXPECT_EQ(Await(std::move(answer)).code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(Contexts(), 0U);
}

TEST_F(RepositoryTest, QueueHasABound) {
  Write("m.onnx", kModel);
  StartAndSettle();
  std::vector<std::future<absl::Status>> answers;
  daemon_.RunOnLoop([&] {
    for (int i = 0; i < 100; ++i) answers.push_back(StartLoad(Named("m")));
  });
  int refused = 0;
  for (auto& answer : answers) {
    const absl::Status status = Await(std::move(answer));
    if (absl::IsResourceExhausted(status)) {
      ++refused;
    } else {
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  // All came in one turn of the loop, which had begun with one of them.
  EXPECT_EQ(refused, 35);
}

}  // namespace
}  // namespace rknnd::transport
