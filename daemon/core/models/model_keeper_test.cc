// Tests of models whose bytes outlive the service.

#include "daemon/core/models/model_keeper.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/posix/memfd.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

constexpr char kKeptModel[] = "weight=1000 internal=5000 name=net";

// As the fd store: what is kept comes back in the next life, once.
class Shelf final : public ModelKeeper {
 public:
  void Keep(const ModelId& id, int bytes, uint64_t size,
            const std::string& name, const std::string& options) override {
    kept[id] = {*base::Duplicate(bytes), size, name, options};
  }
  std::optional<KeptModel> Take(const ModelId& id) override {
    const auto found = before.find(id);
    if (found == before.end()) return std::nullopt;
    KeptModel model = std::move(found->second);
    before.erase(found);
    return model;
  }
  void LetGo(const ModelId& id) override { kept.erase(id); }

  void Restart() {
    before.clear();
    for (const auto& [id, model] : kept) {
      before[id] = {*base::Duplicate(model.bytes.get()), model.size, model.name,
                    model.options};
    }
  }

  std::map<ModelId, KeptModel> kept, before;
};

class ModelKeeperTest : public testing::CoreTest {
 protected:
  ModelKeeperTest() {
    options.keeper = &shelf_;
    StartService();
  }
  void Restart() {
    StopService();
    shelf_.Restart();
    StartService();
  }

  Shelf shelf_;
};

TEST_F(ModelKeeperTest, LoadedModelIsKeptWithNameAndOptions) {
  const TestSession session = Open();
  ASSERT_EQ(Upload(session, kKeptModel, "mean_values: 127"), absl::OkStatus());
  const auto found = shelf_.kept.find(Id(kKeptModel, "mean_values: 127"));
  ASSERT_NE(found, shelf_.kept.end());
  EXPECT_EQ(found->second.name, "m.onnx");
  EXPECT_EQ(found->second.options, "mean_values: 127");
  EXPECT_EQ(found->second.size, sizeof kKeptModel - 1);
}

TEST_F(ModelKeeperTest, NextServiceLoadsItByItsHashAlone) {
  {
    const TestSession session = Open();
    ASSERT_EQ(Upload(session, kKeptModel), absl::OkStatus());
  }
  for (int life = 0; life < 3; ++life) {
    Restart();
    const uint64_t loads = device.loads();
    const TestSession session = Open();
    EXPECT_EQ(Create(session, 1, kKeptModel), absl::OkStatus());
    EXPECT_EQ(device.loads(), loads + 1);
    ASSERT_EQ(service->Models().size(), 1U);
    EXPECT_EQ(service->Models()[0].name, "m.onnx");
    EXPECT_EQ(shelf_.kept.size(), 1U);
  }
}

TEST_F(ModelKeeperTest, EndOfTheServiceLetsGoOfNothing) {
  const TestSession session = Open();
  ASSERT_EQ(Upload(session, kKeptModel), absl::OkStatus());
  ASSERT_EQ(Create(session, 1, kKeptModel), absl::OkStatus());
  StopService();
  EXPECT_EQ(shelf_.kept.size(), 1U);
  StartService();
}

TEST_F(ModelKeeperTest, ModelThatHasGoneIsLetGo) {
  const TestSession session = Open();
  ASSERT_EQ(Upload(session, kKeptModel), absl::OkStatus());
  ASSERT_EQ(Create(session, 1, kKeptModel), absl::OkStatus());
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_EQ(shelf_.kept.size(), 1U) << "it has its grace";
  Advance(options.model_grace);
  EXPECT_TRUE(shelf_.kept.empty());
}

TEST_F(ModelKeeperTest, BytesOfAnotherModelAreNotTaken) {
  const std::string other = "weight=7 internal=7 name=other";
  {
    const TestSession session = Open();
    ASSERT_EQ(Upload(session, kKeptModel), absl::OkStatus());
  }
  shelf_.kept[Id(kKeptModel)].bytes = *base::MakeImmutableMemfd(
      "other", std::as_bytes(std::span(other.data(), other.size())));
  Restart();
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kKeptModel)->code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(shelf_.kept.empty());
  // Its client sends it, and it is kept again.
  EXPECT_EQ(Upload(session, kKeptModel), absl::OkStatus());
  EXPECT_EQ(Create(session, 1, kKeptModel), absl::OkStatus());
  EXPECT_EQ(shelf_.kept.size(), 1U);
}

TEST_F(ModelKeeperTest, ModelThatTheDeviceRefusesIsNotKept) {
  const TestSession session = Open();
  EXPECT_NE(Upload(session, "refuse=FooOp"), absl::OkStatus());
  EXPECT_TRUE(shelf_.kept.empty());
}

TEST_F(ModelKeeperTest, ModelOfTheCacheFolderNeedsNoKeeping) {
  const testing::TemporaryFolder folder;
  options.cache_dir = folder.path();
  StartService();
  {
    const TestSession session = Open();
    ASSERT_EQ(Upload(session, kKeptModel), absl::OkStatus());
  }
  StopService();
  shelf_.kept.clear();
  StartService();
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kKeptModel), absl::OkStatus());
  EXPECT_TRUE(shelf_.kept.empty());
}

TEST_F(ModelKeeperTest, WithoutAKeeperTheClientIsAsked) {
  options.keeper = nullptr;
  StartService();
  {
    const TestSession session = Open();
    ASSERT_EQ(Upload(session, kKeptModel), absl::OkStatus());
  }
  Restart();
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kKeptModel)->code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace rknnd::core
