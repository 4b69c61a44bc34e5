// See compiler.h.

#include "driver/soft/compiled/compiler.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <dnnl.hpp>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "driver/soft/compiled/compiled_form.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {
namespace {

struct BuildIdSearch {
  uintptr_t address = 0;  // inside the program or library looked for
  std::string found;
};

void LookInNotes(const char* at, size_t size, std::string& found) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const auto padded = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
    const size_t whole =
        sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (whole > size) return;
    const char* const name = at + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(name, "GNU", 4) == 0) {
      found =
          absl::BytesToHexString({name + padded(note.n_namesz), note.n_descsz});
      return;
    }
    at += whole;
    size -= whole;
  }
}

int LookInObject(dl_phdr_info* object, size_t /*size*/, void* argument) {
  auto* search = static_cast<BuildIdSearch*>(argument);
  bool is_ours = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + part.p_vaddr;
    is_ours |= part.p_type == PT_LOAD && search->address >= start &&
               search->address - start < part.p_memsz;
  }
  if (!is_ours) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE || !search->found.empty()) continue;
    LookInNotes(
        // NOLINTNEXTLINE(performance-no-int-to-ptr): where the note is mapped
        reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr),
        part.p_memsz, search->found);
  }
  return 1;
}

// The linker's number of the program, or library, that this code is in: a
// change of anything in it is another number. "" where there is none.
std::string BuildId() {
  BuildIdSearch search;
  search.address = reinterpret_cast<uintptr_t>(&BuildId);
  dl_iterate_phdr(LookInObject, &search);
  return search.found;
}

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    for (const char* key : {"model name", "CPU part"}) {
      const size_t colon = line.find(": ");
      if (absl::StartsWith(line, key) && colon != std::string::npos) {
        return line.substr(colon + 2);
      }
    }
  }
  return "unknown CPU";
}

}  // namespace

std::string CompilerName(const SocProfile& soc) {
  const std::string build = BuildId();
  if (build.empty()) return "";
  const dnnl_version_t* const version = dnnl_version();
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  // oneDNN cuts its blocks to the caches.
  return absl::StrCat(
      "form ", kFormNumber, ", build ", build, ", oneDNN ", version->major, ".",
      version->minor, ".", version->patch, " ", version->hash, " isa 0x",
      absl::Hex(isa), " block ", ChannelBlock(), ", ", CpuModel(), ", caches ",
      sysconf(_SC_LEVEL1_DCACHE_SIZE), " ", sysconf(_SC_LEVEL2_CACHE_SIZE), " ",
      sysconf(_SC_LEVEL3_CACHE_SIZE), ", ", soc.name);
}

}  // namespace rknnd::soft
