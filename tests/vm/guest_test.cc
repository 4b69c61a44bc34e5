#include "tests/vm/guest_test.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::vm {
namespace {

using integration::kPatience;
using integration::ReadText;

}  // namespace

Giver::Giver(std::string socket, const std::vector<std::string>& what)
    : socket_(std::move(socket)) {
  base::ChildProcess::Options options;
  options.arguments = {integration::ProgramPath("tests/vm_giver"), socket_};
  options.arguments.insert(options.arguments.end(), what.begin(), what.end());
  auto process = base::ChildProcess::Start(options);
  if (!process) {
    ADD_FAILURE() << process.error().message;
    return;
  }
  process_ = *std::move(process);
  EXPECT_EQ(Receive(), "ready");
}

std::string Giver::Do(const std::string& command) {
  SCOPED_TRACE(command);
  Send(command);
  return Receive();
}

void Giver::Send(const std::string& command) {
  const auto sent = process_.WriteLine(command);
  EXPECT_TRUE(sent.ok()) << command << ": " << sent.error().message;
}

std::string Giver::Receive() {
  const auto line = process_.ReadLine(kPatience);
  if (!line) {
    ADD_FAILURE() << "the giver: " << line.error().message;
    return "";
  }
  EXPECT_EQ(line->substr(0, 2), "0 ") << *line;
  return line->size() > 2 ? line->substr(2) : "";
}

void Giver::Kill() {
  process_.Signal(SIGKILL);
  EXPECT_TRUE(process_.Wait(kPatience).ok());
}

void Giver::End() {
  Send("exit");
  const auto code = process_.Wait(kPatience);
  EXPECT_TRUE(code.ok() && *code == 0);
}

std::unique_ptr<Giver> GuestTest::StartGiver(
    const std::vector<std::string>& what) {
  return std::make_unique<Giver>(
      folder() + "/giver_" + std::to_string(++givers_) + ".sock", what);
}

Reply GuestTest::Import(integration::ClientProcess& client, Giver& giver,
                        int index, const std::string& names, size_t bytes) {
  const std::string size = std::to_string(bytes);
  giver.Send("hand");
  const Reply reply = client.Do("import " + names + " " + giver.From(index) +
                                " " + size + " " + size + " 0");
  giver.Receive();
  return reply;
}

GuestTest::Syncs GuestTest::CountSyncs() {
  const nlohmann::json status =
      integration::AskRknnctl(folder(), daemon().target(), {"status"});
  const nlohmann::json& syncs = status.at("cache_syncs");
  return {syncs.at("done").get<uint64_t>(),
          syncs.at("skipped").get<uint64_t>()};
}

GuestTest::KernelSyncs GuestTest::CountKernelSyncs() {
  // Lines of "NAME HITS MISSES"; init has set the probes.
  std::istringstream profile(ReadText("/sys/kernel/tracing/kprobe_profile"));
  KernelSyncs syncs;
  int found = 0;
  std::string name;
  for (uint64_t hits = 0, misses = 0; profile >> name >> hits >> misses;) {
    if (name != "begin_cpu_access" && name != "ioctl") continue;
    (name == "ioctl" ? syncs.calls : syncs.begun) = hits;
    ++found;
  }
  EXPECT_EQ(found, 2) << profile.str();
  return syncs;
}

std::vector<std::string> GuestTest::Heaps() {
  std::vector<std::string> heaps;
  for (const nlohmann::json& buffer :
       integration::AskRknnctl(folder(), daemon().target(), {"buffers"})) {
    heaps.push_back(buffer.at("heap").get<std::string>());
  }
  return heaps;
}

size_t GuestTest::DmaBufs() {
  // Its last line: "Total N objects, M bytes".
  const std::string list = ReadText("/sys/kernel/debug/dma_buf/bufinfo");
  constexpr char kTotal[] = "Total ";
  const size_t at = list.rfind(kTotal);
  EXPECT_NE(at, std::string::npos) << list;
  return at == std::string::npos
             ? 0
             : std::stoul(list.substr(at + sizeof kTotal - 1));
}

std::vector<std::string> GuestTest::Exporters(pid_t process) {
  std::vector<std::string> exporters;
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(process);
  for (const auto& entry :
       std::filesystem::directory_iterator(folder + "/fdinfo", error)) {
    std::istringstream info(ReadText(entry.path()));
    for (std::string key, value; info >> key;) {
      if (key == "exp_name:" && info >> value) exporters.push_back(value);
    }
  }
  return exporters;
}

bool GuestTest::MapsDmaBufs(pid_t process) {
  return ReadText("/proc/" + std::to_string(process) + "/smaps")
             .find("/dmabuf:") != std::string::npos;
}

}  // namespace rknnd::vm
