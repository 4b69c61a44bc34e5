// See the header. Loads are shares of one core's time, 1 is all of it.
//
// Whether loads that may be spread can be shared out is Hall's condition: no
// set of cores is asked for more, by streams that can run nowhere else, than it
// has. It need only be looked at for single cores and for unions of the sets
// that streams may choose from; the API names few of these.

#include "daemon/core/scheduling/admission.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rknnd::core {
namespace {

// What sums of doubles may be off by.
constexpr double kSlip = 1e-9;
// Models that a reason names, and how much of a name.
constexpr size_t kNamedModels = 3;
constexpr size_t kNameLength = 40;
// More than any rate that is asked for.
constexpr double kMostRate = 1e12;
constexpr double kMhzPerHz = 1000;

double Seconds(base::Nanoseconds time) {
  return static_cast<double>(time) / static_cast<double>(base::kSecond);
}

// The cores it can have now; none where a gang lacks one.
uint32_t Usable(const CoreChoice& choice, const Board& board) {
  const uint32_t there = board.cores & ~board.lent;
  if (choice.gang && (choice.cores & ~there) != 0) return 0;
  return choice.cores & there;
}

bool IsGang(const CoreChoice& choice) {
  return choice.gang && !std::has_single_bit(choice.cores);
}

double Rate(const Stream& stream) {
  return static_cast<double>(stream.rate_mhz) / kMhzPerHz * stream.count;
}

// All streams of one class and one choice of cores: there are few of these
// however many streams are declared.
struct Group {
  CoreChoice cores;
  Priority priority = Priority::kMedium;
  uint32_t usable = 0;
  double rate = 0;                // frames a second, together
  double load = 0;                // what their runs take of a core
  base::Nanoseconds longest = 0;  // of their runs
  uint64_t streams = 0;
};

Group GroupOf(const Stream& stream, const Board& board) {
  return {stream.cores,
          stream.priority,
          Usable(stream.cores, board),
          Rate(stream),
          Rate(stream) * Seconds(stream.run),
          stream.run,
          stream.count};
}

// Those that can run at all.
std::vector<Group> GroupsOf(const std::vector<Stream>& streams,
                            const Board& board) {
  std::vector<Group> groups;
  for (const Stream& stream : streams) {
    const Group one = GroupOf(stream, board);
    if (one.usable == 0) continue;
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
          return group.cores == one.cores && group.priority == one.priority;
        });
    if (known == groups.end()) {
      groups.push_back(one);
      continue;
    }
    known->rate += one.rate;
    known->load += one.load;
    known->longest = std::max(known->longest, one.longest);
    known->streams += one.streams;
  }
  return groups;
}

// Before a gang begins, those of its cores that are free wait for the last one:
// half a run in the mean, when the others end at moments of their own. (For n
// cores it is n / (n + 1) - 1/2; half covers those that end together, too.)
double Drain(const CoreChoice& gang, const std::vector<Group>& everybody) {
  if (!IsGang(gang)) return 0;
  base::Nanoseconds longest = 0;
  for (const Group& other : everybody) {
    if (other.cores == gang || (other.usable & gang.cores) == 0) continue;
    longest = std::max(longest, other.longest);
  }
  return Seconds(longest) / 2;
}

// How many times what it takes of a core falls on `cores`, and can fall nowhere
// else.
int Weight(const CoreChoice& choice, uint32_t usable, uint32_t cores) {
  if (IsGang(choice)) return std::popcount(usable & cores);
  return usable != 0 && (usable & ~cores) == 0 ? 1 : 0;
}

// Single cores, and unions of what streams may choose from.
std::set<uint32_t> SetsToLookAt(const std::vector<Group>& groups,
                                const Board& board) {
  std::set<uint32_t> sets;
  for (uint32_t left = board.cores & ~board.lent; left != 0; left &= left - 1) {
    sets.insert(left & -left);
  }
  std::set<uint32_t> unions;
  for (const Group& group : groups) {
    if (group.usable == 0 || IsGang(group.cores) ||
        unions.contains(group.usable)) {
      continue;
    }
    std::set<uint32_t> more = {group.usable};
    for (const uint32_t one : unions) more.insert(one | group.usable);
    unions.merge(more);
  }
  sets.merge(unions);
  return sets;
}

// What each core is given of, when everything that may choose chooses the least
// loaded ones.
std::map<uint32_t, double> FillCores(std::vector<Group> groups,
                                     const Board& board) {
  std::map<uint32_t, double> loads;
  for (uint32_t left = board.cores & ~board.lent; left != 0; left &= left - 1) {
    loads[left & -left] = 0;
  }
  // Those with the least choice first.
  const auto choices = [](const Group& group) {
    return IsGang(group.cores) ? 0 : std::popcount(group.usable);
  };
  std::stable_sort(
      groups.begin(), groups.end(),
      [&](const Group& a, const Group& b) { return choices(a) < choices(b); });
  for (const Group& group : groups) {
    std::vector<double*> cores;
    for (auto& [core, taken] : loads) {
      if ((core & group.usable) != 0) cores.push_back(&taken);
    }
    double load = group.load + group.rate * Drain(group.cores, groups);
    if (IsGang(group.cores)) {
      for (double* taken : cores) *taken += load;
      continue;
    }
    // As water: the lowest rise together, up to the next one.
    std::sort(cores.begin(), cores.end(),
              [](const double* a, const double* b) { return *a < *b; });
    for (size_t low = 1; low <= cores.size() && load > 0; ++low) {
      const auto filled = static_cast<double>(low);
      const double step = low < cores.size()
                              ? std::min(load / filled, *cores[low] - *cores[0])
                              : load / filled;
      for (size_t i = 0; i < low; ++i) *cores[i] += step;
      load -= step * filled;
    }
  }
  return loads;
}

double MeanLoad(const std::map<uint32_t, double>& loads, uint32_t cores) {
  double sum = 0;
  int count = 0;
  for (const auto& [core, load] : loads) {
    if ((core & cores) == 0) continue;
    sum += load;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

std::string Percent(double share) {
  return absl::StrFormat("%.0f %%", share * 100);
}

// "3 streams of model 'yolox' take 81 %": of the time of `cores`, by those of
// this class and higher ones.
std::string NameHolders(const std::vector<Stream>& admitted, Priority lowest,
                        const std::vector<Group>& everybody, uint32_t cores,
                        const Board& board) {
  struct Holder {
    std::string model;
    uint64_t streams = 0;
    double share = 0;
  };
  std::map<std::string, Holder> by_model;
  for (const Stream& stream : admitted) {
    const int weight = Weight(stream.cores, Usable(stream.cores, board), cores);
    if (stream.priority > lowest || weight == 0) continue;
    Holder& holder = by_model[stream.model];
    holder.model = stream.model.substr(0, kNameLength);
    holder.streams += stream.count;
    holder.share += Rate(stream) *
                    (Seconds(stream.run) + Drain(stream.cores, everybody)) *
                    weight / std::popcount(cores);
  }
  std::vector<Holder> holders;
  for (const auto& [model, holder] : by_model) {
    if (holder.share > 0) holders.push_back(holder);
  }
  std::stable_sort(
      holders.begin(), holders.end(),
      [](const Holder& a, const Holder& b) { return a.share > b.share; });
  double others = 0;
  for (size_t i = kNamedModels; i < holders.size(); ++i) {
    others += holders[i].share;
  }
  const bool more = holders.size() > kNamedModels;
  holders.resize(std::min(holders.size(), kNamedModels));
  std::string text;
  for (size_t i = 0; i < holders.size(); ++i) {
    const Holder& holder = holders[i];
    const bool one = holder.streams == 1;
    absl::StrAppend(&text, i == 0 ? "" : ", ", holder.streams,
                    one ? " stream" : " streams", " of model '", holder.model,
                    "' ", one ? "takes " : "take ", Percent(holder.share));
  }
  if (more) absl::StrAppend(&text, ", others take ", Percent(others));
  if (!text.empty()) absl::StrAppend(&text, " of ", NameCores(cores));
  return text;
}

// Streams of lower classes that will not have their cores' time any more.
uint64_t PassedOver(const std::vector<Group>& before,
                    const std::vector<Group>& after, Priority asked,
                    const Board& board) {
  uint64_t passed = 0;
  for (const Group& group : before) {
    if (group.priority <= asked) continue;
    const auto fits = [&](std::vector<Group> groups) {
      std::erase_if(groups, [&](const Group& other) {
        return other.priority > group.priority;
      });
      return MeanLoad(FillCores(std::move(groups), board), group.usable) <=
             kAdmissionCeiling + kSlip;
    };
    if (fits(before) && !fits(after)) passed += group.streams;
  }
  return passed;
}

const char* NameOf(Priority priority) {
  switch (priority) {
    case Priority::kHigh:
      return "high";
    case Priority::kMedium:
      return "medium";
    case Priority::kLow:
      return "low";
  }
  return "unknown";
}

}  // namespace

std::string NameCores(uint32_t cores) {
  const int count = std::popcount(cores);
  const int first = std::countr_zero(cores);
  if (count == 0) return "no core";
  if (count == 1) return absl::StrCat("core ", first);
  const int last = 31 - std::countl_zero(cores);
  if (count == 2) return absl::StrCat("cores ", first, " and ", last);
  if (last - first + 1 == count) {
    return absl::StrCat("cores ", first, " to ", last);
  }
  std::string text = "cores ";
  for (uint32_t left = cores; left != 0; left &= left - 1) {
    absl::StrAppend(&text, left == cores ? "" : ", ", std::countr_zero(left));
  }
  return text;
}

Admission PlanStream(const std::vector<Stream>& admitted, const Stream& asked,
                     const Board& board) {
  const std::vector<Group> before = GroupsOf(admitted, board);
  std::vector<Group> everybody = before;  // with the asked
  everybody.push_back(GroupOf(asked, board));
  const uint32_t usable = everybody.back().usable;
  Admission answer;
  answer.run = asked.run;
  answer.load_ppm = static_cast<uint64_t>(
      std::llround(MeanLoad(FillCores(before, board), usable) * 1e6));
  if (usable == 0) {
    answer.reason =
        absl::StrCat(NameCores(asked.cores.cores & board.lent), " is lent to ",
                     board.lent_to, ": this stream can run nowhere else");
    return answer;
  }

  // What a frame takes of a core. Gangs wait for everybody's jobs; all else is
  // shared out among the stream's class and higher ones.
  const double run = Seconds(asked.run) + Drain(asked.cores, everybody);
  std::vector<Group> peers = everybody;
  std::erase_if(peers, [&](const Group& group) {
    return group.priority > asked.priority;
  });
  const std::set<uint32_t> sets = SetsToLookAt(peers, board);
  peers.pop_back();
  // Whether a gang that takes of `cores` waits for the asked's jobs elsewhere.
  const auto feels_it = [&](uint32_t cores) {
    return std::any_of(peers.begin(), peers.end(), [&](const Group& peer) {
      return IsGang(peer.cores) && !(peer.cores == asked.cores) &&
             (peer.cores.cores & cores) != 0 &&
             (peer.cores.cores & usable) != 0;
    });
  };

  // One context runs one frame at a time.
  double most = kAdmissionCeiling / run;
  uint32_t narrowest = 0;
  for (const uint32_t cores : sets) {
    double left = kAdmissionCeiling * std::popcount(cores);
    for (const Group& peer : peers) {
      left -= (peer.load + peer.rate * Drain(peer.cores, everybody)) *
              Weight(peer.cores, peer.usable, cores);
    }
    const double needs = run * asked.count * Weight(asked.cores, usable, cores);
    if (needs <= 0) {
      if (left >= -kSlip || !feels_it(cores)) continue;
      most = 0;
      narrowest = cores;
      break;
    }
    const double fits = std::max(left, 0.0) / needs;
    if (fits < most) {
      most = fits;
      narrowest = cores;
    }
  }
  most = std::min(most, kMostRate);
  answer.rate_mhz =
      static_cast<uint64_t>(std::floor(most * kMhzPerHz * (1 + kSlip)));
  answer.fits = asked.rate_mhz <= answer.rate_mhz;
  if (answer.fits) {
    if (const uint64_t passed =
            PassedOver(before, everybody, asked.priority, board);
        passed > 0) {
      answer.reason = absl::StrCat(
          passed, passed == 1 ? " stream" : " streams",
          " of lower priority will be passed over for it: no room is kept "
          "against priority '",
          NameOf(asked.priority), "'");
    }
    return answer;
  }
  if (narrowest == 0) {
    answer.reason = absl::StrFormat(
        "a run takes %.2f ms, and a context runs one frame at a time: more "
        "contexts get more",
        run * 1e3);
    return answer;
  }
  const std::string holders =
      NameHolders(admitted, asked.priority, everybody, narrowest, board);
  const std::string ceiling = Percent(kAdmissionCeiling);
  const std::string needs =
      Percent(Rate(asked) * run * Weight(asked.cores, usable, narrowest) /
              std::popcount(narrowest));
  const bool one = asked.count == 1;
  answer.reason =
      holders.empty()
          ? absl::StrCat(one ? "it needs " : "they need ", needs, " of ",
                         NameCores(narrowest), ", of which ", ceiling,
                         " are given to streams")
          : absl::StrCat(holders, ", ", ceiling,
                         " are given to streams in all, and ",
                         one ? "this one needs " : "these need ", needs);
  return answer;
}

uint64_t AdmittedPpm(const std::vector<Stream>& admitted, const Board& board) {
  const auto loads = FillCores(GroupsOf(admitted, board), board);
  return static_cast<uint64_t>(
      std::llround(MeanLoad(loads, board.cores) * 1e6));
}

RunEstimate EstimateRun(const LoadedModel& model, uint32_t row,
                        const CoreChoice& cores) {
  const auto width =
      static_cast<uint32_t>(cores.gang ? std::popcount(cores.cores) : 1);
  if (row < model.run_times.size()) {
    const RunTimes& times = model.run_times[row];
    if (const auto run = times.measured(AllCores(width)); run > 0) {
      return {run, true};
    }
    // A gang is no slower than one of its cores...
    if (const auto run = times.measured(1); width > 1 && run > 0) {
      return {run, true};
    }
    // ...and what many cores did one does in so many times their time.
    for (uint32_t many = 2; width == 1 && many <= 8; ++many) {
      if (const auto run = times.measured(AllCores(many)); run > 0) {
        return {run * many, true};
      }
    }
  }
  if (row >= model.info().programs.size()) return {};
  const driver::ProgramInfo& program = model.program(row);
  const uint32_t batch = std::max(program.batch, 1U);
  // Cores of a gang take slices each, or share the layers of one, by what the
  // model does not say.
  const uint32_t turns = batch > 1 ? (batch + width - 1) / width : 1;
  return {program.modelled * turns, false};
}

}  // namespace rknnd::core
