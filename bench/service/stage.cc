// See stage.h.

#include "bench/service/stage.h"

#include <array>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "bench/common/measures.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

using torture::Work;

constexpr double kPatience = 60;
constexpr double kLook = 0.002;

constexpr std::array<Work, 4> kWorks = {Work::kSync, Work::kQueue,
                                        Work::kVendor, Work::kImported};

void Await(const char* what, const std::function<bool()>& condition) {
  const double deadline = SecondsNow() + kPatience;
  while (!condition()) {
    if (SecondsNow() > deadline) {
      throw std::runtime_error(std::string(what) + " in time");
    }
    SleepFor(kLook);
  }
}

torture::ServiceManager::Options ServiceOptions(const Stage::Options& options,
                                                const std::string& folder) {
  torture::ServiceManager::Options service;
  service.folder = folder;
  service.arguments = {"--device",    "soft",
                       "--soc",       "rk3588",
                       "--pace",      options.paced ? "on" : "off",
                       "--cache-dir", options.cache ? folder + "/cache" : "",
                       "--log-level", "1"};
  if (!options.config.empty()) {
    const std::string path = folder + "/rknnd.toml";
    std::ofstream(path) << options.config;
    service.arguments.insert(service.arguments.end(), {"--config", path});
  }
  service.watchdog = options.watchdog;
  return service;
}

torture::Clients::Options ClientOptions(const std::string& folder,
                                        const std::string& target) {
  torture::Clients::Options clients;
  clients.folder = folder;
  clients.target = target;
  return clients;
}

}  // namespace

Stage::Stage(const Options& options)
    : folder_(client::MakeTemporaryFolder()),
      service_(ServiceOptions(options, folder_.path())),
      clients_(ClientOptions(folder_.path(), service_.target())) {
  service_.Start();
  service_.AwaitReady();
}

void Stage::AddClients(int count,
                       const std::vector<torture::NetworkFile>& networks,
                       base::Nanoseconds period) {
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    clients_.Add({kWorks.at(i % kWorks.size()),
                  {networks.at(i % networks.size())},
                  period});
  }
}

void Stage::StartClients() {
  for (size_t i = 0; i < clients_.size(); ++i) clients_.Start(i);
  AwaitAnswers(1);
}

void Stage::AwaitAnswers(uint64_t more) {
  std::vector<uint64_t> wanted;
  for (size_t i = 0; i < clients_.size(); ++i) {
    wanted.push_back(clients_.page(i).answered + more);
  }
  Await("clients had no answers", [&] {
    service_.Hear();
    for (size_t i = 0; i < clients_.size(); ++i) {
      if (clients_.page(i).answered < wanted.at(i)) return false;
    }
    return true;
  });
}

int Stage::EndClients() {
  clients_.StopAll();
  int bad = 0;
  const double deadline = SecondsNow() + kPatience;
  for (size_t i = 0; i < clients_.size(); ++i) {
    std::optional<int> code;
    while (!(code = clients_.Ended(i)) && SecondsNow() < deadline) {
      SleepFor(kLook);
    }
    if (!code || *code != 0) ++bad;
  }
  return bad;
}

std::vector<std::string> Stage::TakeNotes() {
  std::vector<std::string> texts;
  for (size_t i = 0; i < clients_.size(); ++i) {
    for (const torture::Note& note : clients_.TakeNotes(i)) {
      texts.push_back(std::string(torture::NameOf(note.kind)) + ", " +
                      note.call + " " + std::to_string(note.code) + ": " +
                      note.text);
    }
  }
  return texts;
}

void Stage::AwaitNothingHeld() {
  Await("the daemon did not let go of what clients had", [&] {
    const auto held = torture::HoldingsOf(service_.target());
    return held.ok() && held->nothing();
  });
}

}  // namespace rknnd::bench
