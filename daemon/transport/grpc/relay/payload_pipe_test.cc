#include "daemon/transport/grpc/relay/payload_pipe.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "base/posix/unique_fd.h"

namespace rknnd::transport {
namespace {

class PayloadPipeTest : public ::testing::Test {
 protected:
  struct Pair {
    Pair() {
      std::array<int, 2> ends{};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           0, ends.data()),
                0);
      near.reset(ends[0]);
      far.reset(ends[1]);
    }
    base::UniqueFd near, far;
  };

  // Puts all of `text` into `fd`, which has room for it.
  static void Put(const base::UniqueFd& fd, const std::string& text) {
    ASSERT_EQ(write(fd.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  static std::string Get(const base::UniqueFd& fd) {
    std::string text(1 << 20, 0);
    const ssize_t got = read(fd.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }
  [[nodiscard]] size_t Waiting() const {
    return PayloadPipe::Waiting(from_.near.get());
  }
  [[nodiscard]] bool Takes() const {
    return PayloadPipe::Takes(to_.near.get());
  }
  ssize_t Move(size_t most) {
    rest_.clear();
    return pipe_.Move(from_.near.get(), to_.near.get(), most, &rest_);
  }

  PayloadPipe pipe_;
  Pair from_, to_;
  std::vector<std::byte> rest_;
};

TEST_F(PayloadPipeTest, NoMoreIsMovedThanAskedFor) {
  EXPECT_EQ(Move(5), PayloadPipe::kLater);
  EXPECT_EQ(Waiting(), 0U);
  Put(from_.far, "payload, and a header");
  EXPECT_EQ(Waiting(), 21U);
  EXPECT_EQ(Move(7), 7);
  EXPECT_TRUE(rest_.empty());
  EXPECT_EQ(Get(to_.far), "payload");
  EXPECT_EQ(Get(from_.near), ", and a header");
}

TEST_F(PayloadPipeTest, WhatDoesNotFitIsKept) {
  constexpr size_t kPiece = 50'000;
  std::string sent;
  bool took = true;
  // Until some is left of one that was moved although it was full.
  for (char letter = 'a'; letter <= 'z' && rest_.empty(); ++letter) {
    const std::string piece(kPiece, letter);
    Put(from_.far, piece);
    took = Takes();
    ASSERT_EQ(Move(kPiece), static_cast<ssize_t>(kPiece));
    sent += piece;
  }
  EXPECT_FALSE(took);
  ASSERT_FALSE(rest_.empty());
  std::string came;
  for (std::string more = Get(to_.far); !more.empty(); more = Get(to_.far)) {
    came += more;
  }
  came.append(reinterpret_cast<const char*>(rest_.data()), rest_.size());
  EXPECT_TRUE(came == sent);
}

TEST_F(PayloadPipeTest, EndsAreToldApart) {
  Put(from_.far, "last");
  to_.far.reset();
  EXPECT_FALSE(Takes());
  // Nobody takes it any more, which whoever writes it finds out.
  signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(Move(10), 4);
  EXPECT_EQ(rest_.size(), 4U);
  from_.far.reset();
  EXPECT_EQ(Move(10), 0);
}

TEST_F(PayloadPipeTest, WhatCannotBeMovedIsReadFromThenOn) {
  // No bytes come out of an eventfd by splice.
  const base::UniqueFd strange(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  EXPECT_EQ(pipe_.Move(strange.get(), to_.near.get(), 8, &rest_),
            PayloadPipe::kCannotMove);
  EXPECT_FALSE(pipe_.works());
}

}  // namespace
}  // namespace rknnd::transport
