#include "client/rknnrt/custom/plugins.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/posix/environment.h"
#include "client/rknnrt/custom/registration.h"
#include "client/rknnrt/runtime.h"
#include "client/target/log.h"

namespace rknnd::client {
namespace {

constexpr char kBoardsFolder[] = "/usr/lib/rknpu/op_plugins";
constexpr std::string_view kBegin = "librkcst_", kEnd = ".so";
constexpr char kFunction[] = "get_rknn_custom_op";

void Warn(const std::string& path, const std::string& what) {
  Log(LogLevel::kWarning, "operator plug-in " + path + ": " + what);
}

// Empty: nobody but root and `owner` can change it.
std::string WhoElseMayChange(const struct stat& status, uid_t owner) {
  if (status.st_uid != 0 && status.st_uid != owner) {
    return "it belongs to uid " + std::to_string(status.st_uid) +
           ", who could have it run anything: chown root it";
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return "others than its owner may write to it: chmod go-w it";
  }
  return "";
}

bool IsPluginName(std::string_view name) {
  return name.starts_with(kBegin) && name.ends_with(kEnd) &&
         name.size() > kBegin.size() + kEnd.size();
}

// In the order of their names.
std::vector<std::string> PluginNames(DIR* folder) {
  std::vector<std::string> names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): of a stream of its own
  while (const dirent* const entry = readdir(folder)) {
    if (IsPluginName(entry->d_name)) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Plug-ins call rknn_custom_op_get_op_attr, and find it only where this
// library's names are everybody's; hosts such as Python load it without that.
void ShowOwnNames() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&ShowOwnNames), &info) == 0) return;
  static_cast<void>(
      dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD));
}

// Null, and a warning, if there is none.
const rknn_custom_op* LoadOne(const std::string& path, uid_t owner) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    Warn(path, std::strerror(errno));
    return nullptr;
  }
  std::string wrong = S_ISREG(status.st_mode) ? WhoElseMayChange(status, owner)
                                              : std::string("it is not a file");
  if (!wrong.empty()) {
    Warn(path, wrong);
    return nullptr;
  }
  // Never unloaded: contexts call it until the process ends.
  void* const library =
      dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
    const char* const error = dlerror();
    Warn(path, error == nullptr ? "the linker gives no reason" : error);
    return nullptr;
  }
  void* const symbol = dlsym(library, kFunction);
  if (symbol == nullptr) {
    Warn(path, std::string("it has no function ") + kFunction);
    return nullptr;
  }
  get_custom_op_func get = nullptr;
  std::memcpy(&get, &symbol, sizeof symbol);
  const rknn_custom_op* const op = get();
  if (op == nullptr) Warn(path, std::string(kFunction) + " returned NULL");
  return op;
}

}  // namespace

std::vector<rknn_custom_op> LoadPlugins(const std::string& folder) {
  std::vector<rknn_custom_op> plugins;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(folder.c_str()),
                                                   closedir);
  struct stat status = {};
  if (stream == nullptr || fstat(dirfd(stream.get()), &status) != 0) {
    // Most boards have none.
    if (errno != ENOENT) Warn(folder, std::strerror(errno));
    return plugins;
  }
  // Whose folder it is may change what is in it.
  const uid_t owner = status.st_uid == geteuid() ? status.st_uid : 0;
  if (const std::string wrong = WhoElseMayChange(status, owner);
      !wrong.empty()) {
    Warn(folder, wrong);
    return plugins;
  }
  const std::vector<std::string> names = PluginNames(stream.get());
  if (!names.empty()) ShowOwnNames();
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    const rknn_custom_op* const op = LoadOne(path, owner);
    if (op == nullptr) continue;
    if (const Outcome checked = CheckCustomOperator(*op, plugins);
        !checked.ok()) {
      Warn(path, checked.failure().error.message);
      continue;
    }
    plugins.push_back(*op);
  }
  return plugins;
}

const std::vector<rknn_custom_op>& Plugins() {
  static const auto* const plugins = [] {
    const std::string named = base::FromEnvironment("RKNND_OP_PLUGINS");
    return new std::vector<rknn_custom_op>(
        LoadPlugins(named.empty() ? kBoardsFolder : named));
  }();
  return *plugins;
}

void UsePlugins(uint32_t handle) {
  if (Plugins().empty()) return;
  const auto context = Runtime::Get().FindContext(handle);
  if (!context.ok()) return;
  if (((*context)->flags() & RKNN_FLAG_COLLECT_MODEL_INFO_ONLY) != 0) return;
  if (const Outcome done =
          RegisterCustomOperators(handle, **context, Plugins());
      !done.ok()) {
    Log(LogLevel::kWarning, "operator plug-ins are not used for this model: " +
                                done.failure().error.message);
  }
}

}  // namespace rknnd::client
