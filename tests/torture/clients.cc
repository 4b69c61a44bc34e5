// See clients.h.

#include "tests/torture/clients.h"

#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "base/posix/memfd.h"

namespace rknnd::torture {
namespace {

constexpr base::Nanoseconds kDeathPatience = 10 * base::kSecond;

Counts CountsOf(const LedgerPage& page) {
  Counts counts;
  counts.accepted = page.accepted;
  counts.answered = page.answered;
  counts.right = page.right;
  counts.contexts = page.contexts;
  counts.notes = page.notes;
  return counts;
}

void AddTo(Counts* sum, const Counts& counts) {
  sum->accepted += counts.accepted;
  sum->answered += counts.answered;
  sum->right += counts.right;
  sum->contexts += counts.contexts;
  sum->notes += counts.notes;
}

}  // namespace

Clients::Clients(Options options) : options_(std::move(options)) {}

Clients::~Clients() {
  for (Place& place : places_) {
    // One that is stopped ends by nothing less.
    if (place.process) place.process->Signal(SIGKILL);
  }
}

size_t Clients::Add(ClientPlan plan) {
  Place place;
  place.plan = std::move(plan);
  place.ledger_path =
      options_.folder + "/ledger-" + std::to_string(places_.size());
  places_.push_back(std::move(place));
  return places_.size() - 1;
}

const std::string& Clients::InputsOf(const Network& network) {
  if (inputs_.valid()) return inputs_path_;
  const uint64_t stride = SharedStride(network);
  const uint64_t size = stride * kSharedInputs;
  auto inputs = base::MakeMemfd("torture-camera", size);
  if (!inputs) throw std::runtime_error(inputs.error().message);
  auto mapping = base::Mapping::OfFd(inputs->get(), 0, size,
                                     base::Mapping::Access::kReadWrite);
  if (!mapping) throw std::runtime_error(mapping.error().message);
  const Arithmetic arithmetic(network);
  for (uint64_t i = 0; i < kSharedInputs; ++i) {
    arithmetic.FillInput(
        i, reinterpret_cast<int32_t*>(mapping->data() + i * stride));
  }
  inputs_ = *std::move(inputs);
  inputs_path_ = "/proc/" + std::to_string(getpid()) + "/fd/" +
                 std::to_string(inputs_.get());
  return inputs_path_;
}

void Clients::Start(size_t index) {
  Place& place = places_.at(index);
  if (place.ledger) {
    AddTo(&place.before, CountsOf(place.ledger->page()));
    for (Note& note : place.ledger->TakeNotes()) {
      place.notes_before.push_back(std::move(note));
    }
  }
  place.ledger.emplace(Ledger::Make(place.ledger_path));
  base::ChildProcess::Options options;
  options.arguments = {
      (options_.programs.empty() ? base::ProgramFolder() : options_.programs) +
          "/rknnd-torture-client",
      "--ledger",
      place.ledger_path,
      "--work",
      NameOf(place.plan.work),
      "--period-us",
      std::to_string(place.plan.period / base::kMicrosecond),
      "--seed",
      std::to_string(options_.seed + started_++)};
  for (const NetworkFile& network : place.plan.networks) {
    options.arguments.insert(options.arguments.end(),
                             {"--network", ToArgument(network)});
  }
  if (place.plan.work == Work::kShared) {
    options.arguments.insert(
        options.arguments.end(),
        {"--inputs", InputsOf(place.plan.networks.front().network)});
  }
  options.environment = options_.environment;
  options.environment.emplace_back("RKNND_TARGET", options_.target);
  options.error_file = error_file();
  options.dies_with_parent = true;
  auto process = base::ChildProcess::Start(options);
  if (!process) throw std::runtime_error(process.error().message);
  place.process = std::make_unique<base::ChildProcess>(*std::move(process));
}

void Clients::Kill(size_t index) {
  Place& place = places_.at(index);
  if (!place.process) return;
  place.process->Signal(SIGKILL);
  if (!place.process->Wait(kDeathPatience)) {
    throw std::runtime_error("a client does not die");
  }
  place.process.reset();
}

void Clients::Signal(size_t index, int signal) {
  const Place& place = places_.at(index);
  if (place.process) place.process->Signal(signal);
}

void Clients::StopAll() {
  for (const Place& place : places_) {
    if (place.ledger) place.ledger->page().stop = 1;
  }
}

std::optional<int> Clients::Ended(size_t index) {
  Place& place = places_.at(index);
  if (!place.process) return std::nullopt;
  auto ended = place.process->Wait(0);
  if (!ended) return std::nullopt;
  place.process.reset();
  return *ended;
}

bool Clients::runs(size_t place) const {
  return places_.at(place).process != nullptr;
}

pid_t Clients::pid(size_t place) const {
  return runs(place) ? places_.at(place).process->pid() : -1;
}

const ClientPlan& Clients::plan(size_t place) const {
  return places_.at(place).plan;
}

LedgerPage& Clients::page(size_t place) const {
  return places_.at(place).ledger.value().page();
}

std::vector<Note> Clients::TakeNotes(size_t index) {
  Place& place = places_.at(index);
  std::vector<Note> notes = std::exchange(place.notes_before, {});
  if (!place.ledger) return notes;
  for (Note& note : place.ledger->TakeNotes()) {
    notes.push_back(std::move(note));
  }
  return notes;
}

Counts Clients::counts() const {
  Counts sum;
  for (const Place& place : places_) {
    AddTo(&sum, place.before);
    if (place.ledger) AddTo(&sum, CountsOf(place.ledger->page()));
  }
  return sum;
}

std::string Clients::error_file() const {
  return options_.folder + "/clients.log";
}

}  // namespace rknnd::torture
