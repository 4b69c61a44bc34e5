// Which machine an ELF file is made for, in words.

#ifndef BASE_VALUES_ELF_MACHINE_H_
#define BASE_VALUES_ELF_MACHINE_H_

#include <elf.h>

#include <cstdint>
#include <string>

namespace rknnd::base {

#if defined(__aarch64__)
inline constexpr uint16_t kOwnMachine = EM_AARCH64;
#elif defined(__x86_64__)
inline constexpr uint16_t kOwnMachine = EM_X86_64;
#elif defined(__arm__)
inline constexpr uint16_t kOwnMachine = EM_ARM;
#else
inline constexpr uint16_t kOwnMachine = EM_NONE;
#endif

inline std::string MachineName(uint16_t machine) {
  switch (machine) {
    case EM_AARCH64:
      return "arm64";
    case EM_ARM:
      return "32-bit Arm";
    case EM_X86_64:
      return "x86-64";
    case EM_386:
      return "32-bit x86";
    default:
      return "machine " + std::to_string(machine);
  }
}

}  // namespace rknnd::base

#endif  // BASE_VALUES_ELF_MACHINE_H_
