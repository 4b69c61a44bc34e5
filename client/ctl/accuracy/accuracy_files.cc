#include "client/ctl/accuracy/accuracy_files.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "client/ctl/text/table.h"

namespace rknnd::client {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Error;
using base::Expected;

constexpr std::string_view kEnding = ".npy";

// What onnxruntime's quantisers and this software NPU put behind a name, as
// file names spell it.
constexpr std::array<std::string_view, 4> kEndings = {
    "_QuantizeLinear_Output", "_DequantizeLinear_Output", "_quantized",
    ".quantized"};

Error CannotWrite(const std::string& folder, const std::error_code& error) {
  return {Code::kUnknown,
          "cannot write to folder '" + folder + "': " + error.message()};
}

bool IsPort(const DumpedFile& file) {
  return file.type == "InputOperator" || file.type == "OutputOperator";
}

}  // namespace

std::vector<DumpedFile> FilesOfDump(const std::string& folder) {
  std::vector<std::pair<unsigned long, DumpedFile>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    DumpedFile file;
    file.file = entry.path().filename().string();
    const std::string_view name = file.file;
    const size_t id = name.find('_');
    const bool is_number =
        id != std::string_view::npos && id > 0 && id < 10 &&
        std::all_of(name.begin(), name.begin() + static_cast<ptrdiff_t>(id),
                    [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!is_number || !name.ends_with(kEnding)) continue;
    const std::string_view stem =
        name.substr(id + 1, name.size() - id - 1 - kEnding.size());
    const size_t type = stem.find('_');
    if (type == std::string_view::npos) continue;
    file.stem = stem;
    file.type = stem.substr(0, type);
    file.name = stem.substr(type + 1);
    found.emplace_back(std::stoul(file.file.substr(0, id)), std::move(file));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.file) < std::tie(b.first, b.second.file);
  });
  std::vector<DumpedFile> files;
  files.reserve(found.size());
  for (auto& [id, file] : found) files.push_back(std::move(file));
  return files;
}

Expected<void> ClearDump(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return CannotWrite(folder, error);
  for (const DumpedFile& file : FilesOfDump(folder)) {
    fs::remove(folder + "/" + file.file, error);
    if (error) return CannotWrite(folder, error);
  }
  return {};
}

Expected<void> NameFilesLike(const std::vector<DumpedFile>& like,
                             const std::string& folder) {
  std::map<std::string_view, const DumpedFile*> wanted;
  for (const DumpedFile& file : like) wanted.emplace(file.stem, &file);
  // By way of names that no file of a dump has: 2 may become 3 and 3 become 4.
  std::vector<std::pair<std::string, std::string>> moved;
  std::error_code error;
  for (const DumpedFile& file : FilesOfDump(folder)) {
    const std::string path = folder + "/" + file.file;
    const auto found = wanted.find(file.stem);
    if (found == wanted.end()) {
      fs::remove(path, error);
    } else {
      fs::rename(path, path + ".new", error);
      moved.emplace_back(path + ".new", folder + "/" + found->second->file);
    }
    if (error) return CannotWrite(folder, error);
  }
  for (const auto& [from, to] : moved) {
    fs::rename(from, to, error);
    if (error) return CannotWrite(folder, error);
  }
  return {};
}

std::string_view PlainTensorName(std::string_view name) {
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (const std::string_view ending : kEndings) {
      if (name.size() > ending.size() && name.ends_with(ending)) {
        name.remove_suffix(ending.size());
        shorter = true;
      }
    }
  }
  return name;
}

Expected<size_t> TakeFilesLike(const std::vector<DumpedFile>& like,
                               const std::string& from,
                               const std::string& folder) {
  const std::vector<DumpedFile> files = FilesOfDump(from);
  std::map<std::string_view, const DumpedFile*> ports;
  std::map<std::string_view, const DumpedFile*> tensors;
  for (const DumpedFile& file : files) {
    if (IsPort(file)) {
      ports.emplace(file.stem, &file);
    } else {
      tensors.emplace(PlainTensorName(file.name), &file);
    }
  }
  size_t found = 0;
  for (const DumpedFile& file : like) {
    const auto& among = IsPort(file) ? ports : tensors;
    const auto match = among.find(IsPort(file) ? std::string_view(file.stem)
                                               : PlainTensorName(file.name));
    if (match == among.end()) continue;
    std::error_code error;
    // Two tensors of a model may stand for one: before and after a Quantize.
    fs::copy_file(from + "/" + match->second->file, folder + "/" + file.file,
                  fs::copy_options::overwrite_existing, error);
    if (error) return CannotWrite(folder, error);
    ++found;
  }
  return found;
}

uint64_t BytesOf(const std::string& folder) {
  uint64_t bytes = 0;
  for (const DumpedFile& file : FilesOfDump(folder)) {
    std::error_code error;
    const uint64_t size = fs::file_size(folder + "/" + file.file, error);
    if (!error) bytes += size;
  }
  return bytes;
}

Expected<uint64_t> FreeSpace(const std::string& folder) {
  struct statvfs status = {};
  if (statvfs(folder.c_str(), &status) != 0) {
    return base::ErrnoError(errno, "look at the space of '" + folder + "'");
  }
  return uint64_t{status.f_bavail} * status.f_frsize;
}

Expected<void> CheckSpace(const std::string& folder, uint64_t bytes,
                          uint64_t free) {
  if (bytes <= free) return {};
  return Error{Code::kResourceExhausted,
               "the tensors need " + FormatBytes(bytes) + " in '" + folder +
                   "', where " + FormatBytes(free) +
                   " are free: delete files there, or choose another folder "
                   "with --output-dir"};
}

}  // namespace rknnd::client
