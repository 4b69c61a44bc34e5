# How every file of this tree is compiled: language, warnings, visibility,
# hardening, sanitizers, and the quick compiler cache and linker when they are
# there.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Every public header is also compiled alone, by the target
# all_verify_interface_header_sets, which ./dev lint builds.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# What Debian hardens its packages with: a package holds what was tested.
set(hardening "-fstack-protector-strong -D_FORTIFY_SOURCE=2 -Wformat -Werror=format-security")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
  string(APPEND hardening " -fcf-protection")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  string(APPEND hardening " -mbranch-protection=standard")
endif()
add_link_options($<$<CONFIG:Release>:-Wl,-z,relro,-z,now>)
# What ships is the same in whatever folder it was built.
add_compile_options($<$<CONFIG:Release>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>)

# -g1 keeps usable backtraces at a fraction of the link time of full debug info.
foreach(lang C CXX)
  set(CMAKE_${lang}_FLAGS_RELEASE "-O2 -g1 -DNDEBUG ${hardening}")
  set(CMAKE_${lang}_FLAGS_DEBUG "-O0 -g")
  set(CMAKE_${lang}_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
endforeach()

# _FILE_OFFSET_BITS: 32-bit boards see files above 2 GiB too.
# _GNU_SOURCE: memfd_create, accept4 and friends in the C files (g++ has it on).
add_compile_definitions(_FILE_OFFSET_BITS=64)
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  add_compile_definitions(_TIME_BITS=64)  # and times after 2038
endif()
add_compile_definitions($<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)

add_compile_options(-Wall -Wextra -Wshadow
                    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
                    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
# g++ 12 sees uninitialised reads in moved absl::InlinedVector and std::optional
# objects that are none; clang and the sanitizers look for the real ones.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# On 32-bit Arm it tells of arguments that GCC before 7.1 passed otherwise.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
  add_compile_options(-Wno-psabi)
endif()
if(RKNND_WERROR)
  add_compile_options(-Werror)
endif()

# Drops what a library does not reach: the client library is thin by this.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)

if(RKNND_SANITIZE)
  add_compile_options(-fsanitize=${RKNND_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RKNND_SANITIZE})
endif()
if(RKNND_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "RKNND_FUZZ needs clang: use the preset 'fuzz'")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(RKNND_CCACHE ccache)
if(RKNND_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${RKNND_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${RKNND_CCACHE})
  # Headers are precompiled; no source asks what time it is.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      ${RKNND_CCACHE})
endif()

include(CheckLinkerFlag)
foreach(linker mold lld)
  check_linker_flag(CXX -fuse-ld=${linker} RKNND_HAVE_${linker})
  if(RKNND_HAVE_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()
