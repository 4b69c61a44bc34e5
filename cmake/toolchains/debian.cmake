# A Debian architecture that is not this machine's: Debian's cross compiler, and
# the headers and libraries of Debian's packages below build/sysroot-<arch>, which
# sysroot.sh makes. Included by one file an architecture, which says what its
# names are: RKNND_ARCH (Debian's), RKNND_TRIPLET (gcc's), RKNND_QEMU.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${RKNND_TRIPLET}-gcc)
set(CMAKE_CXX_COMPILER ${RKNND_TRIPLET}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${RKNND_TRIPLET})

cmake_path(SET sysroot NORMALIZE
           "${CMAKE_CURRENT_LIST_DIR}/../../build/sysroot-${RKNND_ARCH}")
if(NOT EXISTS ${sysroot}/usr/include)
  message(FATAL_ERROR "there are no ${RKNND_ARCH} libraries in ${sysroot}: run "
                      "cmake/toolchains/sysroot.sh ${RKNND_ARCH}")
endif()
find_program(RKNND_CROSS_COMPILER ${CMAKE_CXX_COMPILER})
if(NOT RKNND_CROSS_COMPILER)
  message(FATAL_ERROR "there is no ${CMAKE_CXX_COMPILER}: run "
                      "apt-get install g++-${RKNND_TRIPLET}")
endif()
set(CMAKE_SYSROOT ${sysroot})
# Where Debian has it, which CMake does not see when it builds for elsewhere.
set(CMAKE_INSTALL_LIBDIR lib/${RKNND_TRIPLET} CACHE PATH "")

# mold links for every architecture, but gcc asks for it by another name.
find_program(RKNND_MOLD mold)
if(RKNND_MOLD)
  set(linkers ${sysroot}.linkers)
  file(MAKE_DIRECTORY ${linkers})
  file(CREATE_LINK ${RKNND_MOLD} ${linkers}/ld.mold SYMBOLIC)
  foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT -B${linkers})
  endforeach()
endif()

# Programs (protoc, its plugins) are the machine's, all else is the sysroot's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${sysroot})
set(ENV{PKG_CONFIG_LIBDIR}
    ${sysroot}/usr/lib/${RKNND_TRIPLET}/pkgconfig:${sysroot}/usr/share/pkgconfig)

# Who starts a test starts it under the emulator of one program. What a test
# starts itself needs the kernel to know the emulator: see ./dev cross.
find_program(RKNND_EMULATOR ${RKNND_QEMU})
if(RKNND_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${RKNND_EMULATOR};-L;${sysroot})
endif()
