# The words in which the folders of this tree describe themselves.
#
#   rknnd_add_subdirectory(dir ...) adds dir if it has a CMakeLists.txt and
#                                   RKNND_ONLY does not leave it out
#   rknnd_batches(...)              what compiles sources of a target together
#   rknnd_library(name ...)         static library, alias rknnd::<rest of name>
#   rknnd_executable(name ...)      program in bin/
#   rknnd_example(targets...)       installs programs in the examples' folder
#   rknnd_test(name ...)            adds files to a GoogleTest program, for ctest
#   rknnd_fuzzer(name ...)          libFuzzer program (RKNND_FUZZ), else a
#                                   program that replays its corpus, in ctest
#   rknnd_nanopb(name protos...)    C code of .proto files, as a static library
#   rknnd_grpc(name protos...)      C++ messages and gRPC services of .proto files
#   rknnd_precompile(target ...)    headers that its sources include, compiled once
#   rknnd_soname(library result)    what programs know a shared library by

# Builds every fuzzer and nothing else that they do not need.
add_custom_target(fuzzers)
# Likewise of tests, by their labels.
add_custom_target(unit-tests)
add_custom_target(shipped-tests)

# Seconds that one test, and that a program of them, may take. Sanitizers and
# emulated CPUs slow everything down.
set(RKNND_TEST_TIMEOUT 120)
set(RKNND_PROGRAM_TIMEOUT 600)
if(RKNND_SANITIZE OR RKNND_FUZZ OR CMAKE_CROSSCOMPILING)
  math(EXPR RKNND_TEST_TIMEOUT "${RKNND_TEST_TIMEOUT} * 4")
  math(EXPR RKNND_PROGRAM_TIMEOUT "${RKNND_PROGRAM_TIMEOUT} * 4")
endif()

# How a test's own code is compiled. What is undefined in it is not looked for:
# that would take as long again.
set(RKNND_TEST_OPTIONS -O0 -U_FORTIFY_SOURCE $<$<CONFIG:Release>:-g0>)
if(RKNND_SANITIZE MATCHES "undefined")
  list(APPEND RKNND_TEST_OPTIONS -fno-sanitize=undefined)
endif()

# What a test's environment holds, and that of every process it starts.
set(RKNND_TEST_ENVIRONMENT "")
if(RKNND_SANITIZE MATCHES "thread")
  list(APPEND RKNND_TEST_ENVIRONMENT
       "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
elseif(RKNND_SANITIZE)
  list(APPEND RKNND_TEST_ENVIRONMENT
       "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
       "UBSAN_OPTIONS=print_stacktrace=1"
       "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0")
elseif(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  # The cores of an RK3588, with dot products of bytes; those of an RK3399 have
  # none (CPU_LEVELS). The emulator's "max" would sign every return address, which
  # takes it longer than all the rest.
  list(APPEND RKNND_TEST_ENVIRONMENT "QEMU_CPU=cortex-a76")
endif()
if(RKNND_SANITIZE)
  # A sanitizer's dlopen does not see who calls it, nor the caller's RUNPATH.
  list(APPEND RKNND_TEST_ENVIRONMENT "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib")
endif()

# Whether RKNND_ONLY (if set) names `path`, a folder above it or one below it.
function(rknnd_is_wanted path result)
  set(${result} TRUE PARENT_SCOPE)
  if(NOT RKNND_ONLY)
    return()
  endif()
  foreach(only IN LISTS RKNND_ONLY)
    cmake_path(SET only NORMALIZE "${only}")
    cmake_path(IS_PREFIX only "${path}" above)
    cmake_path(IS_PREFIX path "${only}" below)
    if(above OR below)
      return()
    endif()
  endforeach()
  set(${result} FALSE PARENT_SCOPE)
endfunction()

function(rknnd_add_subdirectory dir)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/${dir})
  if(NOT EXISTS ${folder}/CMakeLists.txt)
    return()
  endif()
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${folder})
  rknnd_is_wanted(${path} wanted)
  if(wanted)
    add_subdirectory(${dir} ${ARGN})
  endif()
endfunction()

# rknnd_batches(target result source...)
# Files that include the given C++ sources, RKNND_BATCH of them at most, so that
# what headers and templates cost is paid once for so many: a third of the time. Of
# sources that are compiled together the anonymous namespaces are one, and names in
# them are unlike. Alone stay those of other languages and those with options of
# their own, which are set before; and all under other compilers, which are for
# analysis, of sources as they stand. Sources are named from the root, as #include
# names them, so that a compiler cache serves every copy of the tree: CMake's own
# UNITY_BUILD names the copy.
function(rknnd_batches target result)
  set(together "")
  set(alone "")
  foreach(source IN LISTS ARGN)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${path}" ours)
    if(RKNND_BATCH GREATER 1 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
       AND source MATCHES "\\.cc$" AND ours AND NOT options)
      list(APPEND together ${path})
    else()
      list(APPEND alone ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  if(count LESS 2)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  math(EXPR batches "(${count} + ${RKNND_BATCH} - 1) / ${RKNND_BATCH}")
  foreach(batch RANGE 1 ${batches})
    # As many in each, or one more.
    math(EXPR begin "${count} * (${batch} - 1) / ${batches}")
    math(EXPR size "${count} * ${batch} / ${batches} - ${begin}")
    list(SUBLIST together ${begin} ${size} paths)
    set(text "")
    foreach(path IN LISTS paths)
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/together/${target}_${batch}.cc)
    file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "${text}")
    list(APPEND alone ${file})
  endforeach()
  set(${result} ${alone} PARENT_SCOPE)
endfunction()

# rknnd_library(name [SOURCES file...] [HEADERS file...] [PUBLIC dep...]
#               [PRIVATE dep...] [EXPORTED] [ALONE])
# Without SOURCES (or with none but headers) the library is header-only.
# Includes are written from the root of the tree. EXPORTED: what a program loads
# as a module may see its symbols, if the program exports them. ALONE: each source
# is compiled by itself.
function(rknnd_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EXPORTED;ALONE" ""
                        "SOURCES;HEADERS;PUBLIC;PRIVATE")
  _rknnd_no_rest(rknnd_library ${name} "${arg_UNPARSED_ARGUMENTS}")
  set(outside PUBLIC)
  if(arg_SOURCES)
    set(sources ${arg_SOURCES})
    if(NOT arg_ALONE)
      rknnd_batches(${name} sources ${arg_SOURCES})
    endif()
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    if(arg_EXPORTED)
      _rknnd_export(${name})
    endif()
    _rknnd_library_headers(${name} "${arg_EXPORTED}")
  else()
    set(outside INTERFACE)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${arg_PUBLIC} ${arg_PRIVATE})
  endif()
  target_include_directories(${name} ${outside} ${PROJECT_SOURCE_DIR})
  if(arg_HEADERS)
    target_sources(${name} ${outside} FILE_SET HEADERS
                   BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  endif()
  string(REGEX REPLACE "^rknnd_" "" short ${name})
  add_library(rknnd::${short} ALIAS ${name})
endfunction()

# rknnd_executable(name SOURCES file... [HEADERS file...] [DEPS dep...] [ALONE])
# PUBLIC and PRIVATE are accepted for DEPS; ALONE as for libraries.
function(rknnd_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALONE" ""
                        "SOURCES;HEADERS;DEPS;PUBLIC;PRIVATE")
  _rknnd_no_rest(rknnd_executable ${name} "${arg_UNPARSED_ARGUMENTS}")
  set(sources ${arg_SOURCES})
  if(NOT arg_ALONE)
    rknnd_batches(${name} sources ${arg_SOURCES})
  endif()
  add_executable(${name} ${sources} ${arg_HEADERS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} ${arg_PUBLIC}
                                        ${arg_PRIVATE})
endfunction()

# rknnd_example(target...)
# Of the package rknnd-examples; `shipped` builds them. They find librknnrt.so in
# the folder above theirs.
function(rknnd_example)
  set_target_properties(${ARGN} PROPERTIES
    BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "\$ORIGIN/..")
  install(TARGETS ${ARGN}
          RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/rknnd/examples
          COMPONENT examples)
  if(TARGET shipped)
    add_dependencies(shipped ${ARGN})
  endif()
endfunction()

# rknnd_test(name SOURCES file... [DEPS dep...] [LABELS label...]
#            [DEFINES name=value...] [STARTS program...]
#            [TIMEOUT seconds] [CASES] [RUN_SERIAL] [ONE_THREAD] [PLAIN]
#            [CPU_LEVELS] [END_TO_END])
# A GoogleTest program, one for each large folder: called again with its name, by a
# folder below as well, it has these files too. It is one ctest entry, "<name>",
# and its tests are run in one process: they leave nothing behind. CASES: every
# TEST is one, "<name>.<Suite>.<Test>": those that start programs, so that they are
# run side by side, and that each has the time-out for itself.
# RUN_SERIAL: nothing else runs beside it. STARTS: targets that are built before
# it, as it starts or loads what they make. TIMEOUT: of an entry.
#
# What it is about decides in which builds it is run (.ci/run), by its labels:
# "unit" with sanitizers, "shipped" as it ships (the targets unit-tests and
# shipped-tests build them). END_TO_END: programs as they ship. PLAIN: it is
# arithmetic, or text for people, so that no build with a sanitizer has it. Else it
# is a unit test; ONE_THREAD: what is tested has no other, so that a build with the
# thread sanitizer leaves these files out.
# CPU_LEVELS: what it tests computes otherwise on other CPUs; it is both, and run
# once more, as one entry "<name>.at_<level>", for each level of x86 below this
# machine's.
# The source sees RKNND_SOURCE_ROOT and RKNND_BINARY_ROOT (where bin/, lib/ are).
function(rknnd_test name)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg
                        "CASES;RUN_SERIAL;ONE_THREAD;PLAIN;CPU_LEVELS;END_TO_END"
                        "TIMEOUT"
                        "SOURCES;HEADERS;DEPS;DEFINES;STARTS;LABELS")
  _rknnd_no_rest(rknnd_test ${name} "${arg_UNPARSED_ARGUMENTS}")
  if((arg_ONE_THREAD AND RKNND_SANITIZE MATCHES "thread") OR
     (arg_PLAIN AND RKNND_SANITIZE))
    return()
  endif()
  if(NOT TARGET ${name})
    _rknnd_test_program(${name})
    _rknnd_test_entries(${name})
  endif()
  get_target_property(calls ${name} RKNND_CALLS)
  math(EXPR calls "${calls} + 1")
  set_target_properties(${name} PROPERTIES RKNND_CALLS ${calls})
  rknnd_batches(${name}_${calls} sources ${arg_SOURCES})
  target_sources(${name} PRIVATE ${sources})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  target_compile_definitions(${name} PRIVATE ${arg_DEFINES})
  if(arg_STARTS)
    add_dependencies(${name} ${arg_STARTS})
  endif()
endfunction()

function(_rknnd_test_program name)
  add_executable(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE GTest::gmock_main GTest::gtest)
  set_target_properties(${name} PROPERTIES
    RKNND_CALLS 0 RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  # The tests' own code is not what is looked at, and there is much of it. What
  # they test is compiled as it is shipped, or with the sanitizer.
  target_compile_options(${name} PRIVATE ${RKNND_TEST_OPTIONS})
  # Other compilers are for analysis, of sources as they stand.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    _rknnd_test_headers()
    target_precompile_headers(${name} REUSE_FROM rknnd_test_headers)
  endif()
  target_compile_definitions(
    ${name} PRIVATE RKNND_SOURCE_ROOT="${PROJECT_SOURCE_DIR}"
                    RKNND_BINARY_ROOT="${PROJECT_BINARY_DIR}")
endfunction()

# Of the rknnd_test that made the program, whose arguments it sees.
function(_rknnd_test_entries name)
  set(labels ${arg_LABELS})
  if(NOT arg_PLAIN AND NOT arg_END_TO_END)
    list(APPEND labels unit)
    add_dependencies(unit-tests ${name})
  endif()
  if(arg_PLAIN OR arg_END_TO_END OR arg_CPU_LEVELS)
    list(APPEND labels shipped)
    add_dependencies(shipped-tests ${name})
  endif()
  set(timeout ${RKNND_PROGRAM_TIMEOUT})
  if(arg_TIMEOUT)
    set(timeout ${arg_TIMEOUT})
  elseif(arg_CASES)
    set(timeout ${RKNND_TEST_TIMEOUT})
  endif()
  set(serial FALSE)
  if(arg_RUN_SERIAL)
    set(serial TRUE)
  endif()
  set(properties TIMEOUT ${timeout} RUN_SERIAL ${serial})
  if(arg_CASES)
    # Found when ctest runs, not when the program is linked: a build stays quick.
    gtest_discover_tests(${name}
      DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      TEST_PREFIX "${name}." TEST_LIST ${name}_TESTS
      PROPERTIES ${properties})
    # PROPERTIES above cannot carry lists; ctest reads this file afterwards.
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake)
    file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [=[
if(@name@_TESTS)
  set_tests_properties(${@name@_TESTS} PROPERTIES
    LABELS "@labels@" ENVIRONMENT "@RKNND_TEST_ENVIRONMENT@")
endif()
]=])
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
  else()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ${properties}
      LABELS "${labels}" ENVIRONMENT "${RKNND_TEST_ENVIRONMENT}")
  endif()
  # A sanitizer sees the same loops of ours at any level.
  if(arg_CPU_LEVELS AND NOT RKNND_SANITIZE AND
     CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
    foreach(level SSE41 AVX AVX2 AVX2_VNNI AVX512_CORE)
      string(TOLOWER ${level} suffix)
      add_test(NAME ${name}.at_${suffix} COMMAND ${name})
      set_tests_properties(${name}.at_${suffix} PROPERTIES
        TIMEOUT ${timeout} LABELS "${arg_LABELS};shipped;cpu_levels"
        ENVIRONMENT "${RKNND_TEST_ENVIRONMENT};ONEDNN_MAX_CPU_ISA=${level}")
    endforeach()
  elseif(arg_CPU_LEVELS AND CMAKE_CROSSCOMPILING AND
         CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    add_test(NAME ${name}.at_neon COMMAND ${name})
    set_tests_properties(${name}.at_neon PROPERTIES
      TIMEOUT ${timeout} LABELS "${arg_LABELS};shipped;cpu_levels"
      ENVIRONMENT "QEMU_CPU=cortex-a72")
  endif()
endfunction()

function(_rknnd_export target)
  set_target_properties(${target} PROPERTIES
    C_VISIBILITY_PRESET default CXX_VISIBILITY_PRESET default)
  # Seen, but never replaced: the compiler may still inline.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
endfunction()

# What most sources of the daemon and of the devices include, and none of ours: a
# header of ours that changes is not to compile all again.
set(RKNND_COMMON_HEADERS <algorithm> <functional> <map> <memory> <optional>
    <span> <string> <vector> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h>)

# rknnd_precompile(target header...)
# RKNND_COMMON_HEADERS and these, for a target with options of its own.
function(rknnd_precompile target)
  # Other compilers are for analysis, of sources as they stand.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} PRIVATE ${RKNND_COMMON_HEADERS} ${ARGN})
  endif()
endfunction()

# Headers that most sources of the daemon and of the devices include, and none of
# ours, compiled once: a third of a source's time. The other folders have no
# abseil, the kernels options of their own, and other compilers are for analysis,
# of sources as they stand.
function(_rknnd_library_headers library exported)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR
             BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR
     NOT folder MATCHES "^(driver|daemon)" OR folder MATCHES "rknn_file|rknpu/(file|registers|text)|driver/(matmul|custom)|tiles|dots|kernels")
    return()
  endif()
  set(headers rknnd_library_headers)
  if(exported)
    set(headers rknnd_exported_headers)
  endif()
  if(NOT TARGET ${headers})
    set(empty ${PROJECT_BINARY_DIR}/library_headers.cc)
    file(CONFIGURE OUTPUT ${empty}
         CONTENT "// Compiled with the libraries' headers.\n")
    add_library(${headers} OBJECT ${empty})
    if(exported)
      _rknnd_export(${headers})
    endif()
    target_link_libraries(${headers} PRIVATE
                          absl::status absl::statusor absl::strings)
    target_precompile_headers(${headers} PRIVATE ${RKNND_COMMON_HEADERS})
  endif()
  target_precompile_headers(${library} REUSE_FROM ${headers})
endfunction()

# Headers that every test includes, and none of ours, compiled once: a quarter of
# a test's time.
function(_rknnd_test_headers)
  if(TARGET rknnd_test_headers)
    return()
  endif()
  set(empty ${PROJECT_BINARY_DIR}/test_headers.cc)
  file(CONFIGURE OUTPUT ${empty} CONTENT "// Compiled with the tests' headers.\n")
  add_library(rknnd_test_headers OBJECT ${empty})
  # As the programs that use them are compiled: for an executable.
  set_target_properties(rknnd_test_headers PROPERTIES
                        POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(rknnd_test_headers PRIVATE ${RKNND_TEST_OPTIONS} -fPIE)
  target_link_libraries(rknnd_test_headers PRIVATE
                        GTest::gmock GTest::gtest absl::status absl::statusor
                        absl::strings)
  target_precompile_headers(rknnd_test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <functional> <map> <memory> <string>
    <vector> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h>)
endfunction()

# rknnd_fuzzer(name SOURCES file... [DEPS dep...] [CORPUS folder])
# The source defines LLVMFuzzerTestOneInput and runs under both forms.
function(rknnd_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS" "SOURCES;DEPS")
  _rknnd_no_rest(rknnd_fuzzer ${name} "${arg_UNPARSED_ARGUMENTS}")
  rknnd_executable(${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           ${PROJECT_BINARY_DIR}/bin/fuzz)
  add_dependencies(fuzzers ${name})
  if(RKNND_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  elseif(BUILD_TESTING)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cc)
    set(corpus "")
    if(arg_CORPUS)
      cmake_path(ABSOLUTE_PATH arg_CORPUS OUTPUT_VARIABLE corpus)
    endif()
    add_dependencies(unit-tests ${name})
    add_test(NAME ${name}.replay COMMAND ${name} ${corpus})
    set_tests_properties(${name}.replay PROPERTIES
      TIMEOUT ${RKNND_TEST_TIMEOUT} LABELS "unit;fuzz"
      ENVIRONMENT "${RKNND_TEST_ENVIRONMENT}")
  endif()
endfunction()

# rknnd_nanopb(name proto...)
# Protos are paths below the current folder, as they are imported; an .options
# file beside one is honoured. proto rknnd/v1/x.proto gives "rknnd/v1/x.pb.h".
function(rknnd_nanopb name)
  find_program(RKNND_PROTOC protoc REQUIRED)
  find_program(RKNND_PROTOC_NANOPB protoc-gen-nanopb REQUIRED)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/nanopb)
  set(generated "")
  foreach(proto IN LISTS ARGN)
    cmake_path(REMOVE_EXTENSION proto OUTPUT_VARIABLE stem)
    set(inputs ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${stem}.options)
      list(APPEND inputs ${CMAKE_CURRENT_SOURCE_DIR}/${stem}.options)
    endif()
    set(outputs ${out}/${stem}.pb.h ${out}/${stem}.pb.c)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND ${RKNND_PROTOC} --plugin=protoc-gen-nanopb=${RKNND_PROTOC_NANOPB}
              -I. --nanopb_out=${out} ${proto}
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
      DEPENDS ${inputs}
      COMMENT "nanopb ${proto}"
      VERBATIM)
    list(APPEND generated ${outputs})
  endforeach()
  add_library(${name} STATIC ${generated})
  target_compile_options(${name} PRIVATE -w)
  _rknnd_export(${name})
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC nanopb::protobuf-nanopb-static)
  string(REGEX REPLACE "^rknnd_" "" short ${name})
  add_library(rknnd::${short} ALIAS ${name})
endfunction()

# rknnd_grpc(name proto...)
# As rknnd_nanopb, by libprotobuf and gRPC: proto rknnd/v1/x.proto gives
# "rknnd/v1/x.pb.h" and "rknnd/v1/x.grpc.pb.h". These headers take seconds to
# compile: they are included by few source files and by no header of ours.
function(rknnd_grpc name)
  find_program(RKNND_PROTOC protoc REQUIRED)
  find_program(RKNND_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(grpcpp REQUIRED IMPORTED_TARGET GLOBAL grpc++ protobuf)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/grpc)
  set(generated "")
  foreach(proto IN LISTS ARGN)
    cmake_path(REMOVE_EXTENSION proto OUTPUT_VARIABLE stem)
    set(outputs ${out}/${stem}.pb.h ${out}/${stem}.pb.cc
                ${out}/${stem}.grpc.pb.h ${out}/${stem}.grpc.pb.cc)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND ${RKNND_PROTOC} --plugin=protoc-gen-grpc=${RKNND_GRPC_CPP_PLUGIN}
              -I. --cpp_out=${out} --grpc_out=${out} ${proto}
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
      COMMENT "gRPC ${proto}"
      VERBATIM)
    list(APPEND generated ${outputs})
  endforeach()
  # Builds with the thread sanitizer leave out who uses it.
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${generated})
  target_compile_options(${name} PRIVATE -w)
  if(RKNND_SANITIZE)
    # Nothing of ours to look at, and a minute's work.
    target_compile_options(${name} PRIVATE -fno-sanitize=all)
  endif()
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC PkgConfig::grpcpp)
  string(REGEX REPLACE "^rknnd_" "" short ${name})
  add_library(rknnd::${short} ALIAS ${name})
endfunction()

# rknnd_soname(library result)
# For library grpc++: "libgrpc++.so.1.51"; "" where there is none to link with.
function(rknnd_soname library result)
  find_library(RKNND_FILE_OF_${library} ${library})
  set(dynamic "")
  if(RKNND_FILE_OF_${library})
    execute_process(COMMAND ${CMAKE_READELF} -d ${RKNND_FILE_OF_${library}}
                    OUTPUT_VARIABLE dynamic)
  endif()
  string(REGEX MATCH "SONAME[^[]*\\[([^]]*)" found "${dynamic}")
  set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# A misspelt keyword would otherwise be dropped silently.
function(_rknnd_no_rest function name rest)
  if(rest)
    message(FATAL_ERROR "${function}(${name}): '${rest}' belongs to no keyword")
  endif()
endfunction()

if(BUILD_TESTING)
  include(GoogleTest)
endif()
