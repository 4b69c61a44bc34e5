// Avahi and the bus belong to the system: not hostile, but they may be missing,
// slow or restarted at any time. No call waits for them.

#include "daemon/network/advertisement.h"

#include <sys/epoll.h>
#include <systemd/sd-bus.h>

#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rknnd {
namespace {

constexpr char kAvahi[] = "org.freedesktop.Avahi";
constexpr char kServer[] = "org.freedesktop.Avahi.Server";
constexpr char kEntryGroup[] = "org.freedesktop.Avahi.EntryGroup";
constexpr char kType[] = "_rknnd._tcp";
// All interfaces and protocols, as Avahi has them.
constexpr int32_t kAny = -1;
constexpr uint64_t kAnswerTimeoutUs = 5'000'000;

// sd-bus tells of a new owner of Avahi's name by this.
constexpr char kOwnerChanges[] =
    "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',"
    "arg0='org.freedesktop.Avahi'";

}  // namespace

uint16_t PortToAdvertise(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    if (absl::StartsWith(address, "unix:") ||
        absl::StartsWith(address, "ipv4:127.") ||
        absl::StartsWith(address, "ipv6:[::1]")) {
      continue;
    }
    uint32_t port = 0;
    if (absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) {
      return static_cast<uint16_t>(port);
    }
  }
  return 0;
}

std::unique_ptr<Advertisement> Advertisement::Publish(
    AdvertisedService service, base::EventLoop* loop,
    transport::FailureLog* notes) {
  sd_bus* bus = nullptr;
  // Does not wait: what is sent stays in a queue until the bus has answered.
  if (service.port == 0 || sd_bus_open_system(&bus) < 0) return nullptr;
  return PublishBy(bus, std::move(service), loop, notes);
}

std::unique_ptr<Advertisement> Advertisement::PublishBy(
    sd_bus* bus, AdvertisedService service, base::EventLoop* loop,
    transport::FailureLog* notes) {
  std::unique_ptr<Advertisement> advertisement(
      new Advertisement(bus, std::move(service), loop, notes));
  Advertisement* const self = advertisement.get();
  auto watch = loop->Watch(sd_bus_get_fd(bus), EPOLLIN,
                           [self](uint32_t) { self->Pump(); });
  if (!watch.ok()) return nullptr;
  self->watch_ = *watch;
  sd_bus_set_method_call_timeout(bus, kAnswerTimeoutUs);
  // Avahi comes, or comes again: what it knew is lost.
  sd_bus_add_match_async(
      bus, nullptr, kOwnerChanges,
      [](sd_bus_message* signal, void* object, sd_bus_error* /*error*/) {
        const char *name = nullptr, *before = nullptr, *now = nullptr;
        if (sd_bus_message_read(signal, "sss", &name, &before, &now) > 0 &&
            *now != '\0') {
          static_cast<Advertisement*>(object)->AskForGroup();
        }
        return 0;
      },
      nullptr, self);
  self->AskForGroup();
  self->Pump();
  return advertisement;
}

Advertisement::Advertisement(sd_bus* bus, AdvertisedService service,
                             base::EventLoop* loop,
                             transport::FailureLog* notes)
    : service_(std::move(service)), loop_(loop), notes_(notes), bus_(bus) {}

Advertisement::~Advertisement() { Close(); }

void Advertisement::Close() {
  if (timer_ != 0) loop_->CancelTimer(std::exchange(timer_, 0));
  if (watch_ != 0) loop_->Unwatch(std::exchange(watch_, 0));
  // Avahi takes back what a connection has published when that ends.
  if (bus_ != nullptr) sd_bus_close_unref(std::exchange(bus_, nullptr));
}

void Advertisement::Pump() {
  if (timer_ != 0) loop_->CancelTimer(std::exchange(timer_, 0));
  int result = 0;
  do {
    result = sd_bus_process(bus_, nullptr);
  } while (result > 0);
  const int events = result < 0 ? result : sd_bus_get_events(bus_);
  if (events < 0) return Close();
  // poll's and epoll's bits are the same.
  loop_->ChangeEvents(watch_, static_cast<uint32_t>(events));
  uint64_t due_us = 0;
  if (sd_bus_get_timeout(bus_, &due_us) < 0 ||
      due_us == std::numeric_limits<uint64_t>::max()) {
    return;
  }
  const base::Nanoseconds due =
      static_cast<base::Nanoseconds>(due_us) * base::kMicrosecond;
  timer_ = loop_->RunAfter(due - clock_.Now(), [this] {
    timer_ = 0;
    Pump();
  });
}

bool Advertisement::IsGood(sd_bus_message* reply) {
  const sd_bus_error* const error = sd_bus_message_get_error(reply);
  if (error == nullptr) return true;
  // Not installed or not running: when it comes, its name has a new owner.
  if (sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) == 0 &&
      sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) == 0) {
    notes_->Note(
        absl::StrCat("the gRPC port is not advertised: Avahi: ", error->name,
                     ": ", error->message == nullptr ? "" : error->message));
  }
  return false;
}

void Advertisement::AskForGroup() {
  sd_bus_call_method_async(
      bus_, nullptr, kAvahi, "/", kServer, "EntryGroupNew",
      [](sd_bus_message* reply, void* object, sd_bus_error* /*error*/) {
        auto* const self = static_cast<Advertisement*>(object);
        const char* group = nullptr;
        if (self->IsGood(reply) &&
            sd_bus_message_read(reply, "o", &group) > 0) {
          self->Describe(group);
        }
        return 0;
      },
      this, "");
}

void Advertisement::Describe(const std::string& group) {
  group_ = group;
  sd_bus_message* call = nullptr;
  if (sd_bus_message_new_method_call(bus_, &call, kAvahi, group.c_str(),
                                     kEntryGroup, "AddService") < 0) {
    return;
  }
  // Interface, protocol, flags, name, type, domain, host, port; then the texts.
  sd_bus_message_append(call, "iiussssq", kAny, kAny, uint32_t{0},
                        service_.name.c_str(), kType, "", "", service_.port);
  sd_bus_message_open_container(call, 'a', "ay");
  for (const std::string& text : service_.text) {
    sd_bus_message_append_array(call, 'y', text.data(), text.size());
  }
  sd_bus_message_close_container(call);
  sd_bus_call_async(
      bus_, nullptr, call,
      [](sd_bus_message* reply, void* object, sd_bus_error* /*error*/) {
        auto* const self = static_cast<Advertisement*>(object);
        if (self->IsGood(reply)) self->Commit();
        return 0;
      },
      this, 0);
  sd_bus_message_unref(call);
}

void Advertisement::Commit() {
  sd_bus_call_method_async(
      bus_, nullptr, kAvahi, group_.c_str(), kEntryGroup, "Commit",
      [](sd_bus_message* reply, void* object, sd_bus_error* /*error*/) {
        static_cast<Advertisement*>(object)->IsGood(reply);
        return 0;
      },
      this, "");
}

}  // namespace rknnd
