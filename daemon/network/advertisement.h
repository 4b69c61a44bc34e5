// Tells the local network of the gRPC port: as a service "_rknnd._tcp" of
// DNS-SD, by the Avahi daemon where that runs. Made by main when the
// configuration says so; nothing depends on it, and a machine without a bus or
// Avahi is left alone.

#ifndef DAEMON_NETWORK_ADVERTISEMENT_H_
#define DAEMON_NETWORK_ADVERTISEMENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "daemon/transport/session/event_log.h"

struct sd_bus;
struct sd_bus_message;

namespace rknnd {

struct AdvertisedService {
  std::string name;               // "rknnd on board7"
  uint16_t port = 0;              // 0: there is nothing to tell of
  std::vector<std::string> text;  // "soc=rk3588"
};

// Of the first of a server's addresses that other machines can reach.
uint16_t PortToAdvertise(const std::vector<std::string>& addresses);

//   nobody -> asking for a group -> describing -> published
//      ^---------- Avahi went ----------+------------'
//
// Thread: loop.
class Advertisement {
 public:
  // Null where there is no system bus. Both outlive it.
  static std::unique_ptr<Advertisement> Publish(AdvertisedService service,
                                                base::EventLoop* loop,
                                                transport::FailureLog* notes);
  // Over a bus of the caller's, which it takes. For tests.
  static std::unique_ptr<Advertisement> PublishBy(sd_bus* bus,
                                                  AdvertisedService service,
                                                  base::EventLoop* loop,
                                                  transport::FailureLog* notes);
  // The service is gone from the network.
  ~Advertisement();
  Advertisement(const Advertisement&) = delete;
  Advertisement& operator=(const Advertisement&) = delete;

 private:
  Advertisement(sd_bus* bus, AdvertisedService service, base::EventLoop* loop,
                transport::FailureLog* notes);

  // Sends and receives what there is.
  void Pump();
  void Close();
  // The three calls that publish; each is followed by the next.
  void AskForGroup();
  void Describe(const std::string& group);
  void Commit();
  // Whether `reply` is good; notes why not, but for an Avahi that is missing.
  bool IsGood(sd_bus_message* reply);

  const AdvertisedService service_;
  base::EventLoop* const loop_;
  transport::FailureLog* const notes_;
  const base::MonotonicClock clock_;  // as sd-bus has it
  sd_bus* bus_;                       // owned; null once it is lost
  std::string group_;
  base::EventLoop::WatchId watch_ = 0;
  base::EventLoop::TimerId timer_ = 0;
};

}  // namespace rknnd

#endif  // DAEMON_NETWORK_ADVERTISEMENT_H_
