#include "client/rknnrt/profile.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "client/image/npy.h"
#include "client/rknnrt/version.h"
#include "client/target/log.h"
#include "client/target/progress.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

bool Tells(LogLevel level) {
  return EnabledLogLevel() >= static_cast<uint32_t>(level);
}

std::optional<ElementType> ElementOf(uint32_t type) {
  switch (type) {
    case RKNN_TENSOR_FLOAT32:
      return ElementType::kFloat32;
    case RKNN_TENSOR_FLOAT16:
      return ElementType::kFloat16;
    case RKNN_TENSOR_INT8:
      return ElementType::kInt8;
    case RKNN_TENSOR_UINT8:
      return ElementType::kUint8;
    case RKNN_TENSOR_INT16:
      return ElementType::kInt16;
    case RKNN_TENSOR_UINT16:
      return ElementType::kUint16;
    case RKNN_TENSOR_INT32:
      return ElementType::kInt32;
    case RKNN_TENSOR_UINT32:
      return ElementType::kUint32;
    case RKNN_TENSOR_INT64:
      return ElementType::kInt64;
    case RKNN_TENSOR_BOOL:
      return ElementType::kBool;
    default:
      return std::nullopt;
  }
}

// A part of a file's name: no folders, no surprises in a shell.
std::string Harmless(std::string_view text) {
  constexpr size_t kLongest = 96;
  std::string name(text.substr(0, kLongest));
  for (char& c : name) {
    const bool keeps = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (!keeps) c = '_';
  }
  return name;
}

// The elements a tensor claims to have, if they are the bytes it has.
Expected<std::vector<size_t>> ShapeOf(const wire::DumpedTensor& tensor,
                                      ElementType type) {
  std::vector<size_t> shape;
  uint64_t bytes = ElementSize(type);
  bool overflows = false;
  for (pb_size_t i = 0; i < tensor.dims_count; ++i) {
    overflows |= __builtin_mul_overflow(bytes, tensor.dims[i], &bytes);
    shape.push_back(static_cast<size_t>(tensor.dims[i]));
  }
  if (overflows || bytes != tensor.size) {
    return Error{
        Code::kInternal,
        std::string("protocol: the dump of '") + tensor.name + "' has " +
            std::to_string(tensor.size) + " bytes, its shape needs " +
            (overflows ? "more than there are" : std::to_string(bytes))};
  }
  return shape;
}

// mkdir, to which a folder that is there already is as good.
bool HasFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return true;
  const int error = errno;
  struct stat status = {};
  const bool is_there = error == EEXIST && stat(path.c_str(), &status) == 0 &&
                        S_ISDIR(status.st_mode);
  errno = error;
  return is_there;
}

Expected<void> MakeFolder(const std::string& path) {
  if (HasFolder(path)) return {};
  const size_t slash = path.find_last_of('/');
  if (errno == ENOENT && slash != std::string::npos && slash > 0) {
    if (Expected<void> above = MakeFolder(path.substr(0, slash)); !above.ok()) {
      return above;
    }
    if (HasFolder(path)) return {};
  }
  return base::ErrnoError(errno, "make folder '" + path + "'");
}

// Room for what the files will have, before the first is written.
Expected<void> CheckSpace(const LayerDump& dump, const std::string& directory) {
  // A file's header and the rest of its last block.
  constexpr uint64_t kEach = 4096 + 128;
  struct statvfs disk = {};
  if (statvfs(directory.c_str(), &disk) != 0) return {};  // writing will tell
  const uint64_t needed =
      dump.bytes.bytes().size() + dump.tensors.size() * kEach;
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (needed <= free) return {};
  return Error{Code::kResourceExhausted,
               "the layers' outputs need " + std::to_string(needed) +
                   " bytes, '" + directory + "' has " + std::to_string(free) +
                   " left: make room, or name another folder"};
}

// RunDumped; `has_run` says whether the run was a success, whatever became of
// its dump.
Outcome TryDumped(Context& context, rknn_run_extend* extend,
                  const std::string& directory, bool* has_run) {
  const auto failure = [](Error error) -> Outcome {
    return Failure{std::move(error), Subject::kContext};
  };
  if (Expected<void> made = MakeFolder(directory); !made.ok()) {
    return failure(std::move(made).error());
  }
  if (Expected<void> armed = context.target().ArmDump(context.number());
      !armed.ok()) {
    return failure(std::move(armed).error());
  }
  if (Outcome done = context.Run(extend); !done.ok()) return done;
  context.AwaitRuns();
  *has_run = true;
  const Expected<LayerDump> dump = context.target().TakeDump(context.number());
  if (!dump.ok()) return failure(dump.error());
  if (Expected<void> written = WriteDump(*dump, directory); !written.ok()) {
    return failure(std::move(written).error());
  }
  Log(LogLevel::kInfo, std::to_string(dump->tensors.size()) +
                           " tensors are in '" + directory + "'");
  return {};
}

}  // namespace

uint32_t WithProfile(uint32_t flags) {
  return Tells(LogLevel::kDebug) ? flags | RKNN_FLAG_COLLECT_PERF_MASK : flags;
}

void TellModel(Target& target, uint32_t context) {
  if (!Tells(LogLevel::kInfo)) return;
  const TargetInfo info = target.info();
  LogText(LogLevel::kInfo,
          "RKNN Runtime Information, librknnrt version: " +
              (info.api_version.empty() ? kApiVersion : info.api_version) +
              "\nRKNN Driver Information, version: " + info.driver_version);
  const Expected<std::string> text = target.ModelDetail(context);
  LogText(LogLevel::kInfo,
          text.ok() ? *text : "no model information: " + text.error().message);
}

Outcome RunExtended(Context& context, rknn_run_extend* extend) {
  if (!Tells(LogLevel::kDebug)) return context.Run(extend);
  bool has_run = false;
  if (Tells(LogLevel::kTrace)) {
    // A folder that cannot be written, a dump beyond its limit: the program's
    // run is none the worse for it.
    const Outcome dumped =
        TryDumped(context, extend, DumpDirectory(), &has_run);
    if (!dumped.ok()) {
      Log(LogLevel::kWarning, "no dump: " + dumped.failure().error.message);
    }
  }
  if (!has_run) {
    if (Outcome done = context.Run(extend); !done.ok()) return done;
    context.AwaitRuns();
  }
  const std::span<char> text = context.PerfText();
  LogText(LogLevel::kDebug, {text.data(), text.size()});
  return {};
}

Outcome RunDumped(Context& context, rknn_run_extend* extend,
                  const std::string& directory) {
  bool has_run = false;
  return TryDumped(context, extend, directory, &has_run);
}

std::string DumpDirectory() {
  constexpr char kBoard[] = "/userdata";
  return access(kBoard, W_OK) == 0 ? std::string(kBoard) + "/dumps" : "dumps";
}

Expected<void> WriteDump(const LayerDump& dump, const std::string& directory) {
  if (Expected<void> room = CheckSpace(dump, directory); !room.ok()) {
    return room;
  }
  const std::span<const std::byte> bytes = dump.bytes.bytes();
  uint64_t done = 0;
  std::map<std::string, int> made;  // names, and how often each was wanted
  for (size_t i = 0; i < dump.tensors.size(); ++i) {
    const wire::DumpedTensor& tensor = dump.tensors[i];
    const std::optional<ElementType> type = ElementOf(tensor.data_type);
    if (!type || tensor.offset > bytes.size() ||
        tensor.size > bytes.size() - tensor.offset) {
      return Error{Code::kInternal, std::string("protocol: the dump of '") +
                                        tensor.name + "' is damaged"};
    }
    const Expected<std::vector<size_t>> shape = ShapeOf(tensor, *type);
    if (!shape.ok()) return shape.error();
    char id[16];
    std::snprintf(id, sizeof id, "%04u", tensor.layer + 1);
    const std::string wanted = directory + "/" + id + "_" +
                               Harmless(tensor.type) + "_" +
                               Harmless(tensor.name);
    // Slices of a batch come one after the other. A number may make a name that
    // another tensor has.
    std::string path = wanted;
    for (int& times = made[wanted]; times++ > 0;) {
      path = wanted + "_" + std::to_string(times);
      if (made.try_emplace(path, 1).second) break;
    }
    path += ".npy";
    if (Expected<void> written =
            WriteNpy(path, *type, *shape,
                     bytes.subspan(static_cast<size_t>(tensor.offset),
                                   static_cast<size_t>(tensor.size)));
        !written.ok()) {
      return written;
    }
    done += tensor.size;
    TellProgress("dump", done, bytes.size());
  }
  return {};
}

}  // namespace rknnd::client
