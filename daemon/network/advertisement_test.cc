// Against an Avahi that is played by the test, at the other end of a socket.

#include "daemon/network/advertisement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/transport/session/testing/recorded_lines.h"

namespace rknnd {
namespace {

using transport::testing::RecordedLines;

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AdvertisementTest : public ::testing::Test {
 protected:
  AdvertisementTest() : loop_(*base::EventLoop::Create(&clock_)) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                         ends),
              0);
    EXPECT_EQ(sd_bus_new(&bus_), 0);
    EXPECT_EQ(sd_bus_set_fd(bus_, ends[0], ends[0]), 0);
    EXPECT_GE(sd_bus_start(bus_), 0);
    EXPECT_EQ(sd_bus_new(&avahi_), 0);
    EXPECT_EQ(sd_bus_set_fd(avahi_, ends[1], ends[1]), 0);
    sd_id128_t id{};
    EXPECT_EQ(sd_id128_randomize(&id), 0);
    EXPECT_GE(sd_bus_set_server(avahi_, 1, id), 0);
    EXPECT_GE(sd_bus_start(avahi_), 0);
  }
  ~AdvertisementTest() override { sd_bus_close_unref(avahi_); }

  std::unique_ptr<Advertisement> Publish() {
    return Advertisement::PublishBy(
        bus_, {"rknnd on board7", 8001, {"soc=rk3588", "tls=1"}}, loop_.get(),
        &notes_);
  }

  // The next call that comes: its name. What it carries is in told_. Answered
  // with `error` unless that is empty.
  std::string Serve(const std::string& error = "") {
    for (int round = 0; round < 10'000; ++round) {
      loop_->Quit();
      loop_->Run();
      sd_bus_message* call = nullptr;
      if (sd_bus_process(avahi_, &call) < 0) break;
      if (call == nullptr) {
        poll(nullptr, 0, 1);
        continue;
      }
      const char* member = sd_bus_message_get_member(call);
      const std::string name = member == nullptr ? "" : member;
      if (!error.empty()) {
        sd_bus_reply_method_errorf(call, error.c_str(), "so it is");
      } else if (name == "EntryGroupNew") {
        sd_bus_reply_method_return(call, "o", "/group");
      } else {
        if (name == "AddService") ReadService(call);
        EXPECT_STREQ(sd_bus_message_get_path(call), "/group");
        sd_bus_reply_method_return(call, "");
      }
      sd_bus_message_unref(call);
      return name;
    }
    return "nothing";
  }

  void ReadService(sd_bus_message* call) {
    int interface = 0;
    int protocol = 0;
    uint32_t flags = 0;
    uint16_t port = 0;
    const char *name = nullptr, *type = nullptr, *domain = nullptr,
               *host = nullptr;
    ASSERT_GT(sd_bus_message_read(call, "iiussssq", &interface, &protocol,
                                  &flags, &name, &type, &domain, &host, &port),
              0);
    told_ = {name, type, std::to_string(port)};
    ASSERT_GT(sd_bus_message_enter_container(call, 'a', "ay"), 0);
    const void* text = nullptr;
    size_t size = 0;
    while (sd_bus_message_read_array(call, 'y', &text, &size) > 0) {
      told_.emplace_back(static_cast<const char*>(text), size);
    }
  }

  base::MonotonicClock clock_;
  RecordedLines log_;
  transport::FailureLog notes_{&log_, &clock_};
  std::unique_ptr<base::EventLoop> loop_;
  sd_bus* bus_ = nullptr;  // the advertisement's
  sd_bus* avahi_ = nullptr;
  std::vector<std::string> told_;
};

TEST_F(AdvertisementTest, NamesThePortToAvahi) {
  const auto advertisement = Publish();
  ASSERT_NE(advertisement, nullptr);
  EXPECT_EQ(Serve(), "EntryGroupNew");
  EXPECT_EQ(Serve(), "AddService");
  EXPECT_THAT(told_, ElementsAre("rknnd on board7", "_rknnd._tcp", "8001",
                                 "soc=rk3588", "tls=1"));
  EXPECT_EQ(Serve(), "Commit");
  EXPECT_TRUE(log_.lines.empty());
}

TEST_F(AdvertisementTest, WithoutAvahiItIsQuiet) {
  const auto advertisement = Publish();
  EXPECT_EQ(Serve("org.freedesktop.DBus.Error.ServiceUnknown"),
            "EntryGroupNew");
  loop_->Quit();
  loop_->Run();
  EXPECT_TRUE(log_.lines.empty());
}

TEST_F(AdvertisementTest, WhatAvahiRefusesIsSaid) {
  const auto advertisement = Publish();
  EXPECT_EQ(Serve(), "EntryGroupNew");
  EXPECT_EQ(Serve("org.freedesktop.Avahi.CollisionError"), "AddService");
  for (int i = 0; i < 1000 && log_.lines.empty(); ++i) {
    loop_->Quit();
    loop_->Run();
  }
  EXPECT_THAT(log_.lines, Contains(HasSubstr("CollisionError")));
}

TEST_F(AdvertisementTest, ABusThatIsLostIsLeft) {
  const auto advertisement = Publish();
  sd_bus_close(avahi_);
  for (int i = 0; i < 10; ++i) {
    loop_->Quit();
    loop_->Run();
  }
}

TEST(PortToAdvertiseTest, IsOneThatOthersCanReach) {
  EXPECT_EQ(PortToAdvertise({}), 0);
  EXPECT_EQ(
      PortToAdvertise({"unix:/run/x:9", "ipv4:127.0.0.1:80", "ipv6:[::1]:80"}),
      0);
  EXPECT_EQ(PortToAdvertise({"ipv4:127.0.0.1:80", "ipv6:[::]:8001"}), 8001);
  EXPECT_EQ(PortToAdvertise({"ipv4:192.0.2.7:9000"}), 9000);
}

}  // namespace
}  // namespace rknnd
