// In which order messages leave.

#include "client/remote/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "rknnd/v1/remote.pb.h"

namespace rknnd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Takes as many as it is told.
class NarrowStream final : public Stream {
 public:
  bool HasRoom() override { return room_ > 0; }
  void Send(std::unique_ptr<v1::ToDaemon> message) override {
    --room_;
    sent_.push_back(message->ping().token());
  }
  std::vector<std::unique_ptr<v1::ToClient>> Receive() override { return {}; }
  std::optional<base::Error> End() override { return std::nullopt; }
  void Cancel() override {}
  bool AwaitEnd(base::Nanoseconds /*timeout*/) override { return true; }

  void set_room(int room) { room_ = room; }
  [[nodiscard]] const std::vector<uint64_t>& sent() const { return sent_; }

 private:
  int room_ = 0;
  std::vector<uint64_t> sent_;
};

std::unique_ptr<v1::ToDaemon> Message(uint64_t number) {
  auto message = std::make_unique<v1::ToDaemon>();
  message->mutable_ping()->set_token(number);
  return message;
}

Outbox::Source Several(uint64_t first, int count) {
  return [first, count]() mutable -> std::unique_ptr<v1::ToDaemon> {
    return count-- > 0 ? Message(first++) : nullptr;
  };
}

class OutboxTest : public testing::Test {
 protected:
  void Pump(int room) {
    stream_.set_room(room);
    outbox_.Pump();
  }
  NarrowStream stream_;
  Outbox outbox_{&stream_};
};

TEST_F(OutboxTest, NothingIsMadeBeforeThereIsRoomForIt) {
  int made = 0;
  outbox_.SendAll([&]() -> std::unique_ptr<v1::ToDaemon> {
    return made < 3 ? Message(++made) : nullptr;
  });
  EXPECT_EQ(made, 0);
  Pump(1);
  EXPECT_EQ(made, 1);
  Pump(9);
  EXPECT_THAT(stream_.sent(), ElementsAre(1, 2, 3));
}

TEST_F(OutboxTest, MessagesOfOneKindKeepTheirOrder) {
  outbox_.Send(Message(1));
  outbox_.SendAll(Several(10, 2));
  outbox_.Send(Message(2));
  EXPECT_THAT(stream_.sent(), IsEmpty());
  Pump(9);
  EXPECT_THAT(stream_.sent(), ElementsAre(1, 10, 11, 2));
}

TEST_F(OutboxTest, ALargeTransferBeginsBehindItsFrameAndSharesTheWay) {
  outbox_.Send(Message(1));
  outbox_.SendBeside(Several(100, 4));
  Pump(2);
  EXPECT_THAT(stream_.sent(), ElementsAre(1, 100));
  outbox_.SendAll(Several(10, 3));
  Pump(4);
  // Neither waits for all of the other.
  EXPECT_THAT(stream_.sent(), ElementsAre(1, 100, 101, 10, 102, 11));
  Pump(9);
  EXPECT_THAT(stream_.sent(), ElementsAre(1, 100, 101, 10, 102, 11, 103, 12));
}

}  // namespace
}  // namespace rknnd::client
