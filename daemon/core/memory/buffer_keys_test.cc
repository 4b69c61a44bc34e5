// Tests of keys: one session's buffer is bound by another without a copy and
// without a second charge, and is gone there when its owner gives it up,
// whatever is on its way.

#include "daemon/core/memory/buffer_keys.h"

#include <fcntl.h>

#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using driver::Direction;
using testing::TestSession;

constexpr char kKeyedModel[] = "bytes=16";

class BufferKeysTest : public testing::CoreTest {
 protected:
  BufferKeysTest() : owner_(Open(100)), other_(Open(200)) {}

  BufferKey KeyOf(uint32_t buffer) {
    auto key = owner_->GetBufferKey(buffer);
    EXPECT_TRUE(key.ok()) << key.status();
    return key.ok() ? key->key : BufferKey{};
  }
  absl::Status Adopt(uint32_t buffer, const BufferKey& key) {
    return other_->AdoptBuffer(buffer, key).status();
  }
  // A context of the other session whose input is the owner's buffer 7, as its
  // buffer 9.
  BufferKey MakeReadyWithAdopted() {
    MakeReady(other_, 1, kKeyedModel);
    EXPECT_TRUE(AllocateNow(owner_, 7, kPage, 0).ok());
    const BufferKey key = KeyOf(7);
    EXPECT_TRUE(Adopt(9, key).ok());
    EXPECT_TRUE(other_->Bind(BindTo(1, Direction::kInput, 0, 9, kPage)).ok());
    return key;
  }
  absl::StatusCode RunOther(uint32_t slot) {
    const size_t before = other_.sink->count();
    EXPECT_TRUE(Submit(other_, 1, slot, ++sequence_).ok());
    RunReady();
    EXPECT_EQ(other_.sink->count(), before + 1);
    return other_.sink->all().back().status.code();
  }

  TestSession owner_, other_;
  uint32_t sequence_ = 0;
};

TEST_F(BufferKeysTest, KeyIsTheSameForEachQuestionAndNoOtherBuffers) {
  std::set<BufferKey> keys;
  for (uint32_t buffer = 1; buffer <= 100; ++buffer) {
    ASSERT_TRUE(AllocateNow(owner_, buffer, kPage, 0).ok());
    const BufferKey key = KeyOf(buffer);
    EXPECT_EQ(KeyOf(buffer), key);
    EXPECT_TRUE(keys.insert(key).second);
  }
  EXPECT_FALSE(keys.contains(BufferKey{}));
}

TEST_F(BufferKeysTest, TextIsThirtyTwoDigitsAndNothingElse) {
  ASSERT_TRUE(AllocateNow(owner_, 1, kPage, 0).ok());
  const BufferKey key = KeyOf(1);
  const std::string text = ToText(key);
  EXPECT_EQ(text.size(), 32U);
  EXPECT_EQ(ParseBufferKey(text), key);
  EXPECT_EQ(ParseBufferKey("000102030405060708090A0b0c0d0e0f")->back(), 15);
  EXPECT_EQ(ParseBufferKey(text.substr(1)), std::nullopt);
  EXPECT_EQ(ParseBufferKey(text + "0"), std::nullopt);
  EXPECT_EQ(ParseBufferKey("/" + text.substr(1)), std::nullopt);
  EXPECT_EQ(ParseBufferKey(std::string(32, '\0')), std::nullopt);
  EXPECT_EQ(ParseBufferKey(""), std::nullopt);
}

TEST_F(BufferKeysTest, OnlyAnExistingBufferHasAKey) {
  EXPECT_EQ(owner_->GetBufferKey(1).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(owner_->GetBufferKey(0).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(BufferKeysTest, GuessedKeyIsNotFound) {
  ASSERT_TRUE(AllocateNow(owner_, 1, kPage, 0).ok());
  BufferKey key = KeyOf(1);
  key.back() ^= 1;
  EXPECT_EQ(Adopt(1, key).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(service->FindBuffer(key).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Adopt(1, BufferKey{}).code(), absl::StatusCode::kNotFound);
}

TEST_F(BufferKeysTest, AdoptedBufferIsTheSameMemoryAndChargedOnce) {
  MakeReadyWithAdopted();
  const uint64_t io = memory().io;
  const size_t memories = device.memories();
  const uint64_t held = service->Sessions()[1].memory;
  ASSERT_TRUE(Adopt(10, KeyOf(7)).ok());
  EXPECT_EQ(memory().io, io);
  EXPECT_EQ(device.memories(), memories);
  EXPECT_EQ(service->Sessions()[1].memory, held);
  EXPECT_EQ(RunOther(0), absl::StatusCode::kOk);
}

TEST_F(BufferKeysTest, FindBufferGivesTheKernelsSize) {
  ASSERT_TRUE(AllocateNow(owner_, 1, 5000, 0).ok());
  const auto found = service->FindBuffer(KeyOf(1));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size, 2 * kPage);
  EXPECT_FALSE(found->read_only);
}

TEST_F(BufferKeysTest, UsedNumberIsRefusedBothWays) {
  ASSERT_TRUE(AllocateNow(owner_, 1, kPage, 0).ok());
  ASSERT_TRUE(AllocateNow(other_, 5, kPage, 0).ok());
  const BufferKey key = KeyOf(1);
  EXPECT_EQ(Adopt(5, key).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Adopt(0, key).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(Adopt(6, key).ok());
  EXPECT_EQ(Adopt(6, key).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(AllocateNow(other_, 6, kPage, 0).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(BufferKeysTest, AdoptedBuffersCountAgainstTheLimit) {
  StopService();
  options.limits.buffers = 2;
  StartService();
  owner_ = Open(100);
  other_ = Open(200);
  ASSERT_TRUE(AllocateNow(owner_, 1, kPage, 0).ok());
  const BufferKey key = KeyOf(1);
  ASSERT_TRUE(Adopt(1, key).ok());
  ASSERT_TRUE(Adopt(2, key).ok());
  EXPECT_EQ(Adopt(3, key).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(BufferKeysTest, RangeBeyondTheBufferIsRefused) {
  MakeReadyWithAdopted();
  auto bind = BindTo(1, Direction::kInput, 0, 9, kPage);
  bind.offset = kPage - 8;
  EXPECT_EQ(other_->Bind(bind).code(), absl::StatusCode::kInvalidArgument);
  bind.offset = UINT64_MAX - 8;
  EXPECT_EQ(other_->Bind(bind).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunOther(0), absl::StatusCode::kOk);
}

TEST_F(BufferKeysTest, ReadOnlyMemoryIsNoOutputHereEither) {
  MakeReady(other_, 1, kKeyedModel);
  auto fd = base::MakeMemfd("frame", kPage);
  ASSERT_TRUE(fd.ok());
  const std::string path = "/proc/self/fd/" + std::to_string(fd->get());
  base::UniqueFd reader(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(reader.valid());
  const auto imported = ImportNow(owner_, 7, std::move(reader), 0);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto key = owner_->GetBufferKey(7);
  ASSERT_TRUE(key.ok());
  EXPECT_TRUE(key->read_only);
  ASSERT_TRUE(Adopt(9, key->key).ok());
  EXPECT_TRUE(other_->Bind(BindTo(1, Direction::kInput, 0, 9, kPage)).ok());
  EXPECT_EQ(other_->Bind(BindTo(1, Direction::kOutput, 0, 9, kPage)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(BufferKeysTest, ReleasedBufferIsUnboundAndFreedEverywhere) {
  const BufferKey key = MakeReadyWithAdopted();
  const uint64_t before = memory().io;
  ASSERT_TRUE(owner_->ReleaseBuffer(7).ok());
  EXPECT_EQ(memory().io, before - kPage);
  EXPECT_EQ(RunOther(0), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(other_->Bind(BindTo(1, Direction::kInput, 0, 9, kPage)).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Adopt(9, key).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(other_->ReleaseBuffer(9).code(), absl::StatusCode::kNotFound);
}

TEST_F(BufferKeysTest, ANewBufferOfTheSameNumberHasAnotherKey) {
  ASSERT_TRUE(AllocateNow(owner_, 7, kPage, 0).ok());
  const BufferKey key = KeyOf(7);
  ASSERT_TRUE(owner_->ReleaseBuffer(7).ok());
  ASSERT_TRUE(AllocateNow(owner_, 7, kPage, 0).ok());
  EXPECT_NE(KeyOf(7), key);
}

TEST_F(BufferKeysTest, OwnersEndTakesItFromEveryoneButARunningJob) {
  const BufferKey key = MakeReadyWithAdopted();
  const uint64_t before = memory().io;
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(other_, 1, 0, ++sequence_).ok());
  RunReady();
  ASSERT_EQ(device.held(), 1U);
  service->CloseSession(owner_->id());
  EXPECT_EQ(Adopt(11, key).code(), absl::StatusCode::kNotFound);
  // The job has it, and the owner's account pays until it ends.
  EXPECT_EQ(memory().io, before);
  device.Release();
  RunReady();
  RunLoops();
  ASSERT_EQ(other_.sink->count(), 1U);
  EXPECT_TRUE(other_.sink->last().status.ok());
  EXPECT_EQ(memory().io, before - kPage);
  device.HoldJobs(false);
  EXPECT_EQ(RunOther(0), absl::StatusCode::kFailedPrecondition);
}

TEST_F(BufferKeysTest, BindingsOfOtherSetsGoToo) {
  MakeReadyWithAdopted();
  ASSERT_TRUE(other_->Bind(BindTo(1, Direction::kInput, 0, 100, kPage)).ok());
  auto bind = BindTo(1, Direction::kInput, 0, 9, kPage);
  bind.set = 3;
  ASSERT_TRUE(other_->Bind(bind).ok());
  const uint64_t before = memory().io;
  ASSERT_TRUE(owner_->ReleaseBuffer(7).ok());
  // Set 3 is as set 0 again.
  EXPECT_EQ(memory().io, before - kPage);
  JobSubmission job;
  job.context = 1;
  job.sequence = ++sequence_;
  job.set = 3;
  ASSERT_TRUE(other_->gate()->Submit(job).ok());
  RunReady();
  EXPECT_TRUE(other_.sink->last().status.ok()) << other_.sink->last().status;
}

TEST_F(BufferKeysTest, AdopterGivesItsNumberUpAlone) {
  const BufferKey key = MakeReadyWithAdopted();
  const uint64_t before = memory().io;
  ASSERT_TRUE(other_->ReleaseBuffer(9).ok());
  EXPECT_EQ(RunOther(0), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(memory().io, before);
  EXPECT_TRUE(Adopt(9, key).ok());
  ASSERT_TRUE(owner_->ReleaseBuffer(7).ok());
  EXPECT_EQ(memory().io, before - kPage);
}

TEST_F(BufferKeysTest, TwoNumbersOfOneKeyKeepTheBindingsUntilTheLast) {
  const BufferKey key = MakeReadyWithAdopted();
  ASSERT_TRUE(Adopt(10, key).ok());
  ASSERT_TRUE(other_->ReleaseBuffer(9).ok());
  EXPECT_EQ(RunOther(0), absl::StatusCode::kOk);
  ASSERT_TRUE(other_->ReleaseBuffer(10).ok());
  EXPECT_EQ(RunOther(0), absl::StatusCode::kFailedPrecondition);
}

TEST_F(BufferKeysTest, AdoptersEndLeavesTheOwnerAlone) {
  const BufferKey key = MakeReadyWithAdopted();
  service->CloseSession(other_->id());
  EXPECT_TRUE(service->FindBuffer(key).ok());
  EXPECT_EQ(memory().io, kPage);
  ASSERT_TRUE(owner_->ReleaseBuffer(7).ok());
  EXPECT_EQ(memory().io, 0U);
  EXPECT_EQ(device.memories(), 0U);
}

TEST_F(BufferKeysTest, ObserverHearsOfEachKeyOnceAndOfNoBufferWithoutOne) {
  std::vector<BufferKey> gone;
  service->set_key_gone([&](const BufferKey& key) { gone.push_back(key); });
  ASSERT_TRUE(AllocateNow(owner_, 1, kPage, 0).ok());
  ASSERT_TRUE(AllocateNow(owner_, 2, kPage, 0).ok());
  ASSERT_TRUE(AllocateNow(owner_, 3, kPage, 0).ok());
  const BufferKey first = KeyOf(1), second = KeyOf(2);
  ASSERT_TRUE(owner_->ReleaseBuffer(1).ok());
  EXPECT_EQ(gone, std::vector<BufferKey>{first});
  service->CloseSession(owner_->id());
  EXPECT_EQ(gone, (std::vector<BufferKey>{first, second}));
  service->set_key_gone(nullptr);
}

TEST_F(BufferKeysTest, EndedSessionHasNeitherKeysNorAdoptedBuffers) {
  ASSERT_TRUE(AllocateNow(owner_, 1, kPage, 0).ok());
  const BufferKey key = KeyOf(1);
  service->CloseSession(other_->id());
  EXPECT_EQ(Adopt(1, key).code(), absl::StatusCode::kFailedPrecondition);
  service->CloseSession(owner_->id());
  EXPECT_EQ(owner_->GetBufferKey(1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Sessions that make, name, adopt, bind and release buffers and end, in any
// order: each byte is charged once, to its owner, and nobody runs on memory
// whose owner has given it up.
class BufferKeysHistory : public BufferKeysTest,
                          public ::testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr uint32_t kNumbers = 4, kAdopted = 10, kOwnInput = 100;
  // What a session is thought to have.
  struct Client {
    TestSession session;
    std::map<uint32_t, BufferKey> owned;
    std::map<uint32_t, BufferKey> adopted;
    uint32_t input = kOwnInput;  // what is bound; 0: nothing
  };

  void Connect(Client& client) {
    client = {Open(), {}, {}, kOwnInput};
    MakeReady(client.session, 1, kKeyedModel);
  }
  // As core does for everyone who has adopted it.
  void ForgetKey(const BufferKey& key) {
    for (Client& client : clients_) {
      std::erase_if(client.adopted, [&](const auto& one) {
        if (one.second != key) return false;
        if (client.input == one.first) client.input = 0;
        return true;
      });
    }
  }
  void Step(Client& client, uint32_t choice, uint32_t number) {
    const auto owned = client.owned.find(number);
    const auto adopted = client.adopted.find(kAdopted + number);
    if (choice == 0 && owned == client.owned.end()) {
      ASSERT_TRUE(AllocateNow(client.session, number, kPage, 0).ok());
      const auto key = client.session->GetBufferKey(number);
      ASSERT_TRUE(key.ok());
      client.owned[number] = key->key;
    } else if (choice == 1 && owned != client.owned.end()) {
      const BufferKey key = owned->second;
      client.owned.erase(owned);
      ASSERT_TRUE(client.session->ReleaseBuffer(number).ok());
      ForgetKey(key);
    } else if (choice == 2 && adopted == client.adopted.end()) {
      Client& from = clients_[number % clients_.size()];
      if (&from == &client || from.owned.empty()) return;
      const BufferKey key = from.owned.begin()->second;
      for (const auto& [other, known] : client.adopted) {
        if (known == key) return;
      }
      ASSERT_TRUE(
          client.session->AdoptBuffer(kAdopted + number, key).status().ok());
      client.adopted[kAdopted + number] = key;
    } else if (choice == 3 && adopted != client.adopted.end()) {
      client.adopted.erase(adopted);
      ASSERT_TRUE(client.session->ReleaseBuffer(kAdopted + number).ok());
      if (client.input == kAdopted + number) client.input = 0;
    } else if (choice == 4) {
      const bool own = adopted == client.adopted.end();
      const uint32_t input = own ? kOwnInput : kAdopted + number;
      ASSERT_TRUE(
          client.session->Bind(BindTo(1, Direction::kInput, 0, input, kPage))
              .ok());
      client.input = input;
    } else if (choice == 5 && number == 1) {
      const auto keys = client.owned;
      client.adopted.clear();
      service->CloseSession(client.session->id());
      for (const auto& [unused, key] : keys) ForgetKey(key);
      Connect(client);
    }
  }
  std::array<Client, 3> clients_;
};

TEST_P(BufferKeysHistory, EachByteIsChargedOnceAndNobodyKeepsWhatIsGivenUp) {
  service->CloseSession(owner_->id());
  service->CloseSession(other_->id());
  for (Client& client : clients_) Connect(client);
  std::mt19937 random(GetParam());
  for (int step = 0; step < 400; ++step) {
    Client& client = clients_[random() % clients_.size()];
    ASSERT_NO_FATAL_FAILURE(
        Step(client, random() % 6, 1 + random() % kNumbers));
    uint64_t pages = 0;
    for (const Client& each : clients_) pages += 2 + each.owned.size();
    ASSERT_EQ(memory().io, pages * kPage) << "step " << step;
    ASSERT_TRUE(Submit(client.session, 1, 0, ++sequence_).ok());
    RunReady();
    ASSERT_EQ(client.session.sink->last().status.code(),
              client.input == 0 ? absl::StatusCode::kFailedPrecondition
                                : absl::StatusCode::kOk)
        << "step " << step;
  }
  for (Client& client : clients_) {
    service->CloseSession(client.session->id());
  }
  EXPECT_EQ(memory().io, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BufferKeysHistory, ::testing::Range(0U, 50U));

}  // namespace
}  // namespace rknnd::core
