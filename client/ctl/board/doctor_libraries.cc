#include "client/ctl/board/doctor_libraries.h"

#include <dlfcn.h>
#include <elf.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include "base/values/elf_machine.h"
#include "client/ctl/text/text.h"
#include "rknnd.h"

namespace rknnd::client {
namespace {

namespace fs = std::filesystem;

// The runtime's names, of late and before release 1.3.
constexpr const char* kNames[] = {"librknnrt.so", "librknn_api.so"};
// A runtime has less than 10 MiB.
constexpr size_t kMostBytes = size_t{64} << 20;
// Configuration that includes itself ends somewhere.
constexpr int kMostDepth = 4;

void AddFolder(const std::string& folder, std::vector<std::string>* folders) {
  if (folder.empty() ||
      std::find(folders->begin(), folders->end(), folder) != folders->end()) {
    return;
  }
  folders->push_back(folder);
}

// /etc/ld.so.conf: a folder a line, or "include PATTERN".
void ReadLoaderConfig(const std::string& root, const std::string& path,
                      int depth, std::vector<std::string>* folders) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, begin);
    if (!line.starts_with("include")) {
      AddFolder(root + line, folders);
      continue;
    }
    if (depth == kMostDepth) continue;
    std::string pattern = line.substr(std::strlen("include"));
    pattern.erase(0, pattern.find_first_not_of(" \t"));
    pattern =
        pattern.starts_with("/") ? root + pattern : root + "/etc/" + pattern;
    glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      for (size_t i = 0; i < found.gl_pathc; ++i) {
        ReadLoaderConfig(root, found.gl_pathv[i], depth + 1, folders);
      }
    }
    ::globfree(&found);
  }
}

// The version behind `mark`, which `last` follows. Compilers leave parts of
// texts elsewhere, with something else behind them.
std::string VersionBehind(const std::string& bytes, std::string_view mark,
                          char last) {
  for (size_t at = bytes.find(mark); at != std::string::npos;
       at = bytes.find(mark, at + 1)) {
    size_t end = at + mark.size();
    const size_t begin = end;
    while (end < bytes.size() && end - begin < 32 &&
           (std::isalnum(static_cast<unsigned char>(bytes[end])) != 0 ||
            bytes[end] == '.' || bytes[end] == '-')) {
      ++end;
    }
    if (end > begin && end < bytes.size() && bytes[end] == last &&
        std::isdigit(static_cast<unsigned char>(bytes[begin])) != 0) {
      return bytes.substr(begin, end - begin);
    }
  }
  return "";
}

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

std::string Described(const std::string& path, const LibraryIdentity& library) {
  return "'" + Printable(path) + "' (" +
         (library.ours ? "rknnd's" : "the vendor's") +
         (library.version.empty() ? "" : " " + library.version) + ")";
}

// For programs that were made for the vendor's library.
constexpr char kHowToGetOurs[] =
    "start programs with 'rknnd-run COMMAND', or put all of them on rknnd's "
    "library with 'rknnd-divert enable' (package librknnd1)";

// The library that a program gets which asks for it by its name.
Finding CheckLoaded(const std::string& path, const LibraryIdentity& library,
                    const LibraryPlaces& places) {
  Finding finding{"client-library", Severity::kOk, "", ""};
  if (library.ours) {
    finding.text = "programs load " + Described(path, library);
    if (library.version != rknnd_version_string()) {
      finding.severity = Severity::kNote;
      finding.text += "; rknnctl uses " + std::string(rknnd_version_string()) +
                      " at '" + Printable(places.own) + "'";
      finding.remedy = "install both from the same release";
    }
    return finding;
  }
  finding.severity = Severity::kWarning;
  finding.text = "programs load " + Described(path, library) +
                 ", which opens the NPU's driver itself: they run past rknnd";
  finding.remedy = kHowToGetOurs;
  return finding;
}

}  // namespace

LibraryPlaces OwnPlaces() {
  LibraryPlaces places;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it meanwhile
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    places.library_path = path;
  }
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&rknnd_version_string), &info) !=
          0 &&
      info.dli_fname != nullptr) {
    std::error_code error;
    const fs::path own = fs::weakly_canonical(info.dli_fname, error);
    places.own = error ? info.dli_fname : own.string();
  }
  return places;
}

std::vector<std::string> LoaderFolders(const LibraryPlaces& places) {
  std::vector<std::string> folders;
  const std::string& path = places.library_path;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find_first_of(":;", begin), path.size());
    AddFolder(path.substr(begin, end - begin), &folders);
    begin = end + 1;
  }
  ReadLoaderConfig(places.root, places.root + "/etc/ld.so.conf", 0, &folders);
  for (const char* folder : {"/lib", "/usr/lib", "/lib64", "/usr/lib64"}) {
    AddFolder(places.root + folder, &folders);
  }
  return folders;
}

LibraryIdentity IdentifyLibrary(const std::string& path) {
  LibraryIdentity library;
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (!file || error || !fs::is_regular_file(path, error)) return library;
  std::string bytes(std::min<uintmax_t>(size, kMostBytes), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  library.readable = true;
  // e_machine lies at the same place in files of 32 and 64 bits.
  Elf64_Ehdr header{};
  library.is_elf = bytes.size() >= sizeof header &&
                   bytes.compare(0, SELFMAG, ELFMAG, SELFMAG) == 0;
  if (!library.is_elf) return library;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (base::kOwnMachine != EM_NONE && header.e_machine != base::kOwnMachine) {
    library.machine = base::MachineName(header.e_machine);
  }
  library.ours = bytes.find("rknnd_version_string") != std::string::npos;
  library.version = library.ours
                        ? VersionBehind(bytes, "(rknnd-", ')')
                        : VersionBehind(bytes, "librknnrt version: ", ' ');
  if (library.version.empty() && !library.ours) {
    library.version = VersionBehind(bytes, "librknn_api version: ", ' ');
  }
  return library;
}

std::vector<Finding> CheckLibraries(const LibraryPlaces& places) {
  std::vector<Finding> findings;
  std::set<std::string> seen;
  bool loaded = false;
  for (const char* name : kNames) {
    for (const std::string& folder : LoaderFolders(places)) {
      const std::string path = folder + "/" + name;
      std::error_code error;
      const std::string file = fs::canonical(path, error).string();
      // The same file under several names is one.
      if (error || !seen.insert(file).second) continue;
      const LibraryIdentity library = IdentifyLibrary(file);
      if (!library.readable) continue;
      if (!library.is_elf || !library.machine.empty()) {
        // The loader passes over what is for another machine.
        findings.push_back(
            {"client-library", Severity::kWarning,
             "'" + Printable(path) + "' is " +
                 (library.is_elf ? "for " + library.machine
                                 : "no library (an unfetched Git LFS pointer, "
                                   "or a broken download)"),
             "remove it, or install the one for this machine"});
      } else if (!loaded && name == kNames[0]) {
        loaded = true;
        findings.push_back(CheckLoaded(path, library, places));
      } else if (!IsSameFile(file, places.own)) {
        findings.push_back(
            {"client-library", Severity::kNote,
             "there is another, " + Described(path, library),
             "remove it, unless a program is to run past rknnd"});
      }
    }
  }
  if (!loaded) {
    findings.push_back({"client-library", Severity::kNote,
                        "the loader finds no librknnrt.so; rknnctl uses '" +
                            Printable(places.own) + "'",
                        kHowToGetOurs});
  }
  return findings;
}

std::vector<Finding> CheckVendorServer(const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator at(root + "/proc", error), end;
       !error && at != end; at.increment(error)) {
    const std::string pid = at->path().filename();
    if (!std::all_of(pid.begin(), pid.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; })) {
      continue;
    }
    std::string comm;
    std::ifstream file(at->path() / "comm");
    if (!std::getline(file, comm) || comm != "rknn_server") continue;
    return {{"rknn-server", Severity::kWarning,
             "the vendor's rknn_server runs (pid " + pid +
                 "): it uses the NPU beside rknnd",
             "stop it: rknnd does its work over one TCP port (grpc.listen)"}};
  }
  return {};
}

}  // namespace rknnd::client
