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
  ssize_t Move(size_t most) {
    rest_.clear();
    return pipe_.Move(from_.near.get(), to_.near.get(), most, &rest_);
  }

  PayloadPipe pipe_;
  Pair from_, to_;
  std::vector<std::byte> rest_;
};

TEST_F(PayloadPipeTest, NoMoreIsMovedThanAskedFor) {
  ASSERT_TRUE(pipe_.Fits(to_.near.get()));
  EXPECT_EQ(Move(5), PayloadPipe::kLater);
  Put(from_.far, "payload, and a header");
  EXPECT_EQ(Move(7), 7);
  EXPECT_TRUE(rest_.empty());
  EXPECT_EQ(Get(to_.far), "payload");
  EXPECT_EQ(Get(from_.near), ", and a header");
}

TEST_F(PayloadPipeTest, WhatDoesNotFitIsKept) {
  std::string sent;
  for (char letter = 'a'; pipe_.Fits(to_.near.get()); ++letter) {
    const std::string piece(50'000, letter);
    Put(from_.far, piece);
    ASSERT_EQ(Move(piece.size()), static_cast<ssize_t>(piece.size()));
    ASSERT_TRUE(rest_.empty());
    sent += piece;
  }
  // It does not ask again whether it fits.
  for (int i = 0; i < 20 && rest_.empty(); ++i) {
    const std::string piece(50'000, 'z');
    Put(from_.far, piece);
    ASSERT_EQ(Move(piece.size()), static_cast<ssize_t>(piece.size()));
    sent += piece;
  }
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
  EXPECT_FALSE(pipe_.Fits(to_.near.get()));
  // Nobody takes it any more.
  signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(Move(10), 4);
  EXPECT_TRUE(rest_.empty());
  from_.far.reset();
  EXPECT_EQ(Move(10), 0);
}

TEST_F(PayloadPipeTest, WhatCannotBeMovedIsReadFromThenOn) {
  // No bytes come out of an eventfd by splice.
  const base::UniqueFd strange(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  EXPECT_EQ(pipe_.Move(strange.get(), to_.near.get(), 8, &rest_),
            PayloadPipe::kCannotMove);
  EXPECT_FALSE(pipe_.Fits(to_.near.get()));
}

}  // namespace
}  // namespace rknnd::transport
