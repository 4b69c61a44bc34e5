// That the campaign's checkers see what they are there for, with real daemons
// and real clients.

#include "tests/torture/clients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <functional>

#include "base/posix/child_process.h"
#include "tests/torture/network_files.h"
#include "tests/torture/observer.h"
#include "tests/torture/service_manager.h"

namespace rknnd::torture {
namespace {

constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

class ClientsTest : public testing::Test {
 protected:
  ClientsTest() : folder_(*base::TemporaryFolder::Make()) {
    ServiceManager::Options service;
    service.folder = folder_.path();
    service.programs = RKNND_BINARY_ROOT "/bin";
    service.arguments = {"--device", "soft",        "--cache-dir",
                         "",         "--log-level", "1"};
    service_.emplace(service);
    service_->Start();
    service_->AwaitReady();
    Clients::Options clients;
    clients.folder = folder_.path();
    clients.programs = RKNND_BINARY_ROOT "/bin";
    clients.target = service_->target();
    clients_.emplace(clients);
  }

  size_t StartClient(Work work, const NetworkFile& file) {
    const size_t place = clients_->Add({work, {file}, base::kMillisecond});
    clients_->Start(place);
    return place;
  }
  bool Eventually(const std::function<bool()>& condition) {
    const base::Nanoseconds deadline = clock_.Now() + kPatience;
    while (!condition()) {
      if (clock_.Now() > deadline) return false;
      poll(nullptr, 0, 2);
    }
    return true;
  }
  std::optional<int> End(size_t place) {
    clients_->StopAll();
    std::optional<int> ended;
    EXPECT_TRUE(Eventually([&] {
      ended = clients_->Ended(place);
      return ended.has_value();
    }));
    return ended;
  }

  const base::MonotonicClock clock_;
  const base::TemporaryFolder folder_;
  std::optional<ServiceManager> service_;
  std::optional<Clients> clients_;
};

class EachWorkTest : public ClientsTest,
                     public testing::WithParamInterface<int> {};

TEST_P(EachWorkTest, HasNothingToTellOfAGoodDaemon) {
  const NetworkFile file = WriteNetwork(folder_.path(), {1, 100, 3});
  const size_t place = StartClient(static_cast<Work>(GetParam()), file);
  EXPECT_TRUE(Eventually([&] { return clients_->page(place).right >= 10; }));
  EXPECT_EQ(End(place), 0);
  for (const Note& note : clients_->TakeNotes(place)) {
    ADD_FAILURE() << note.call << ": " << note.text;
  }
  EXPECT_EQ(clients_->counts().answered, clients_->counts().right);
}

TEST_P(EachWorkTest, LosesNothingWithADaemon) {
  const NetworkFile file = WriteNetwork(folder_.path(), {1, 100, 3});
  const size_t place = StartClient(static_cast<Work>(GetParam()), file);
  const LedgerPage& page = clients_->page(place);
  EXPECT_TRUE(Eventually([&] { return page.right >= 10; }));
  service_->Kill();
  service_->Start();
  service_->AwaitReady();
  const uint64_t before = page.right;
  EXPECT_TRUE(Eventually([&] { return page.right >= before + 10; }));
  EXPECT_EQ(End(place), 0);
  for (const Note& note : clients_->TakeNotes(place)) {
    ADD_FAILURE() << note.call << ": " << note.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Works, EachWorkTest, testing::Range(0, kWorks),
                         [](const testing::TestParamInfo<int>& work) {
                           return std::string(
                               NameOf(static_cast<Work>(work.param)));
                         });

// The client believes in another network than the one in the file.
TEST_F(ClientsTest, TellOfWrongAnswers) {
  NetworkFile file = WriteNetwork(folder_.path(), {1, 100, 3});
  file.network.salt = 2;
  const size_t place = StartClient(Work::kSync, file);
  std::vector<Note> notes;
  EXPECT_TRUE(Eventually([&] {
    notes = clients_->TakeNotes(place);
    return !notes.empty();
  }));
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes.front().kind, NoteKind::kWrong);
  EXPECT_EQ(clients_->counts().right, 0U);
  EXPECT_EQ(End(place), 0);
}

TEST_F(ClientsTest, TellOfErrors) {
  NetworkFile file = WriteNetwork(folder_.path(), {1, 100, 3});
  file.path += ".gone";
  const size_t place = StartClient(Work::kSync, file);
  std::vector<Note> notes;
  EXPECT_TRUE(Eventually([&] {
    notes = clients_->TakeNotes(place);
    return !notes.empty();
  }));
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes.front().kind, NoteKind::kError);
  EXPECT_EQ(notes.front().call, "rknn_init");
  EXPECT_THAT(notes.front().text, testing::HasSubstr(".gone"));
}

TEST_F(ClientsTest, LeaveNothingWhenTheyAreKilled) {
  const NetworkFile file = WriteNetwork(folder_.path(), {1, 100, 3});
  const size_t place = StartClient(Work::kQueue, file);
  EXPECT_TRUE(Eventually([&] { return clients_->page(place).right >= 10; }));
  const auto held = HoldingsOf(service_->target());
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held->contexts, 1U);
  clients_->Kill(place);
  EXPECT_TRUE(Eventually([&] {
    const auto now = HoldingsOf(service_->target());
    return now.ok() && now->sessions + now->contexts + now->buffers == 0;
  }));
}

}  // namespace
}  // namespace rknnd::torture
