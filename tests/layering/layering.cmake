# Checks what each folder includes and which calls it makes (the arrows of
# docs/structure.md). All folders share one include root, so the linker does not
# notice a wrong include; this does.
#
#   cmake -D ROOT=<tree> -P layering.cmake
#
# Fails naming every file and include or call that is not allowed.
cmake_minimum_required(VERSION 3.25)

# Folder, and what its files may include of ours. The longest matching folder
# decides. 'api' stands for the public headers, included by bare name. Of the rooms
# of daemon/core each may use those before it; their tests drive the whole core.
set(rules
  "base/values:           base/values"
  "base/posix:            base/values base/posix"
  "base/status:           base"
  "proto:                 base/values base/posix proto rknnd/v1"
  "driver:                base driver"
  "driver/custom:         base/values driver/custom"
  "driver/matmul:         base/values driver/matmul"
  "driver/rknnrt:         base driver proto/wire api"
  "driver/rknnrt/worker:  base/values base/posix proto/wire driver/rknnrt api"
  "driver/rknn_file:      base/values base/posix driver/rknn_file"
  "driver/rknpu/file:     base/values base/posix driver/rknn_file driver/rknpu/file"
  "driver/rknpu/registers: driver/rknpu/registers"
  "driver/rknpu/text:     base/values base/posix driver/rknpu"
  "daemon/core:           base driver daemon/core"
  "daemon/core/terms:      base driver daemon/core/terms"
  "daemon/core/accounts:   base driver daemon/core/terms daemon/core/accounts"
  "daemon/core/memory:     base driver daemon/core/terms daemon/core/accounts daemon/core/memory"
  "daemon/core/models:     base driver daemon/core/terms daemon/core/accounts daemon/core/memory daemon/core/models"
  "daemon/core/contexts:   base driver daemon/core/terms daemon/core/accounts daemon/core/memory daemon/core/models daemon/core/contexts"
  "daemon/core/jobs:       base driver daemon/core/terms daemon/core/accounts daemon/core/memory daemon/core/models daemon/core/contexts daemon/core/jobs"
  "daemon/core/scheduling: base driver daemon/core/terms daemon/core/accounts daemon/core/memory daemon/core/models daemon/core/contexts daemon/core/jobs daemon/core/scheduling"
  "daemon/core/reports:    base driver daemon/core/terms daemon/core/accounts daemon/core/memory daemon/core/models daemon/core/contexts daemon/core/jobs daemon/core/scheduling daemon/core/reports"
  "daemon/core/running:    base driver daemon/core/terms daemon/core/accounts daemon/core/memory daemon/core/models daemon/core/contexts daemon/core/jobs daemon/core/scheduling daemon/core/reports daemon/core/running"
  "daemon/core/sessions:   base driver daemon/core/terms daemon/core/accounts daemon/core/memory daemon/core/models daemon/core/contexts daemon/core/jobs daemon/core/scheduling daemon/core/reports daemon/core/running daemon/core/sessions"
  "daemon/transport:      base proto rknnd/v1 driver daemon/core daemon/transport"
  "daemon:                base proto rknnd/v1 driver daemon"
  "client:                base/values base/posix proto rknnd/v1 client api"
  "client/rknnrt:         base/values base/posix proto rknnd/v1 client driver/custom driver/matmul api"
  "client/include:        api"
  "client/target:         base/values base/posix proto rknnd/v1 client/include client/target api"
  "client/session:        base/values base/posix proto rknnd/v1 client/include client/target client/session client/local client/remote api"
  "client/ctl:            base/values base/posix proto rknnd/v1 client driver/rknn_file driver/rknpu/file driver/rknpu/text driver/rknpu/testing api"
  "client/local:          base proto rknnd/v1 driver daemon client api"
  "client/remote:         base/values base/posix proto rknnd/v1 client api"
  "k8s:                   base proto rknnd/v1 k8s"
  "tests:                 base proto rknnd/v1 driver client tests api"
  "tests/ring:            base proto daemon client tests"
  "bench:                 base proto rknnd/v1 driver client bench tests/torture api"
  "examples:              base client examples api")

# Folder (as a regular expression on the path) and the includes it must not have,
# of any origin, with the reason.
set(bans
  "^(base/(values|posix)|driver/(custom|matmul|rknn_file|rknnrt/worker)|driver/rknpu/(file|registers|text)|proto|client/(include|target|session|rknnrt|ctl))/|^absl/|abseil stays on the daemon's side"
  "^(base|driver/(memory|soft/(graph|plan|kernels))|daemon/core|client/(include|target|session|rknnrt))/|^(google/protobuf|grpc|grpcpp|onnx)/|protobuf, ONNX and gRPC stay in the ONNX importer and the gRPC transport"
  "^(driver|daemon/core)/|^(pb|pb_[a-z]+|rknnd/v1/.*)\\.h$|wire messages end in the transport"
  "^daemon/core/|^(sys/socket\\.h|sys/un\\.h|netinet/.*|base/posix/socket\\.h)$|the core has no sockets")

# Calls that make a descriptor without close-on-exec unless told to.
set(needs_cloexec
    "socket|socketpair|accept4|eventfd|recvmsg|recvmmsg|epoll_create1|pipe2|memfd_create|timerfd_create|signalfd|inotify_init1|open|openat|dup3|pidfd_getfd")
# Those that have no such flag at all.
set(never "accept|pipe|epoll_create|dup|creat|inotify_init")
# Those that one file alone makes, where the receive rules are.
set(socket_calls "socket|socketpair|accept4|eventfd|recvmsg|recvmmsg|recv|recvfrom")
set(socket_home "base/posix/socket.cc")
# What the CPU can do is asked in one file alone: whoever asked by itself would
# not follow the level that tests and comparisons set.
set(cpu_questions "__builtin_cpu_supports|__get_cpuid|__get_cpuid_count|__cpuid|getauxval")
set(cpu_home "driver/soft/tiles/cpu_level.cc")

set(faults "")
function(fault file text)
  list(APPEND faults "${file}: ${text}")
  set(faults "${faults}" PARENT_SCOPE)
endfunction()

string(ASCII 1 semicolon)

# The allowed prefixes of the longest rule that holds for `path`, or NOTFOUND.
function(allowed_for path result)
  if(path MATCHES "^daemon/core/.*_(test|fuzzer)\\.cc$")
    set(path "daemon/core/tests")
  endif()
  set(length 0)
  set(${result} NOTFOUND PARENT_SCOPE)
  foreach(rule IN LISTS rules)
    string(REGEX MATCH "^([a-z0-9_/]+): +(.*)$" unused "${rule}")
    set(folder "${CMAKE_MATCH_1}")
    set(allowed "${CMAKE_MATCH_2}")
    string(LENGTH "${folder}" size)
    string(FIND "${path}" "${folder}/" at)
    if(at EQUAL 0 AND size GREATER length)
      set(length ${size})
      string(REPLACE " " ";" allowed "${allowed}")
      set(${result} "${allowed}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

function(check_includes file text)
  allowed_for(${file} allowed)
  string(REGEX MATCHALL "(^|\n)[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]+"
         lines "${text}")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "([<\"])(.*)$" unused "${line}")
    set(quote "${CMAKE_MATCH_1}")
    set(header "${CMAKE_MATCH_2}")
    foreach(ban IN LISTS bans)
      # where|what|why, cut at the last two bars that stand alone.
      string(REGEX MATCH "^(.*/.*)[|](\\^.*)[|]([^|]+)$" unused "${ban}")
      set(where "${CMAKE_MATCH_1}")
      set(what "${CMAKE_MATCH_2}")
      set(why "${CMAKE_MATCH_3}")
      if(file MATCHES "${where}" AND header MATCHES "${what}")
        fault(${file} "includes '${header}': ${why}")
      endif()
    endforeach()
    if(header MATCHES
       "^(base|proto|driver|daemon|client|k8s|tests|bench|examples|rknnd/v1)/")
      set(found FALSE)
      foreach(prefix IN LISTS allowed)
        string(FIND "${header}" "${prefix}/" at)
        if(at EQUAL 0)
          set(found TRUE)
        endif()
      endforeach()
      if(NOT found)
        list(JOIN allowed ", " may)
        fault(${file} "includes '${header}', but may include only ${may}")
      endif()
    elseif(quote STREQUAL "\"" AND NOT header MATCHES "/")
      if(NOT EXISTS ${ROOT}/client/include/${header} OR NOT api IN_LIST allowed)
        fault(${file} "includes '${header}': write includes from the root")
      endif()
    endif()
  endforeach()
  set(faults "${faults}" PARENT_SCOPE)
endfunction()

# Calls that one file alone may make.
function(check_home file text calls home)
  string(REGEX MATCHALL "[^A-Za-z0-9_.>](${calls})[ \n]*\\([^)]" found "${text}")
  foreach(call IN LISTS found)
    string(REGEX MATCH "[a-z_0-9]+" name "${call}")
    fault(${file} "calls '${name}', which belongs to ${home}")
  endforeach()
  set(faults "${faults}" PARENT_SCOPE)
endfunction()

# `text` without strings and comments, so that only code is left.
function(check_calls file text)
  # `Fd socket(...)` declares; only a keyword may stand before a call.
  string(REGEX REPLACE "(return|else)[ \n]+" "\\1=" text "${text}")
  string(REGEX REPLACE "[A-Za-z0-9_][ \n]+(${needs_cloexec}|${never})\\(" "(" text
         "${text}")
  # A call: the name as a whole word, not a member's, and all up to the ';'.
  string(REGEX MATCHALL "[^A-Za-z0-9_.>](${needs_cloexec})[ \n]*\\([^)${semicolon}][^${semicolon}]*"
         calls "${text}")
  foreach(call IN LISTS calls)
    if(NOT call MATCHES "_CLOEXEC")
      string(REGEX MATCH "[a-z_0-9]+" name "${call}")
      fault(${file} "calls '${name}' without its close-on-exec flag")
    endif()
  endforeach()
  string(REGEX MATCHALL "[^A-Za-z0-9_.>](${never})[ \n]*\\([^)]" calls "${text}")
  foreach(call IN LISTS calls)
    string(REGEX MATCH "[a-z_0-9]+" name "${call}")
    fault(${file} "calls '${name}', which cannot close on exec")
  endforeach()
  if(file MATCHES "^(base|proto|driver|daemon|client|k8s)/"
     AND NOT file MATCHES "(_test\\.cc$|/testing/)" AND NOT file STREQUAL socket_home)
    check_home(${file} "${text}" "${socket_calls}" ${socket_home})
  endif()
  if(file MATCHES "^driver/" AND NOT file STREQUAL cpu_home)
    check_home(${file} "${text}" "${cpu_questions}" ${cpu_home})
  endif()
  if(file MATCHES "^daemon/core/" AND NOT file MATCHES "(_test\\.cc$|/testing/)"
     AND text MATCHES "std::j?thread[^:_a-z]|std::async|pthread_create|include <(thread|pthread\\.h)>")
    fault(${file} "creates a thread: the core is given its threads")
  endif()
  set(faults "${faults}" PARENT_SCOPE)
endfunction()

set(files "")
foreach(folder base proto driver daemon client k8s tests bench examples)
  file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${folder}/*.h
       ${ROOT}/${folder}/*.hpp ${ROOT}/${folder}/*.cc ${ROOT}/${folder}/*.c)
  list(APPEND files ${found})
endforeach()
list(LENGTH files count)
if(count EQUAL 0)
  message(FATAL_ERROR "no sources below '${ROOT}'")
endif()
foreach(file IN LISTS files)
  file(READ ${ROOT}/${file} text)
  # CMake's lists give ';', '[' and ']' a meaning of their own.
  string(REPLACE ";" "${semicolon}" text "${text}")
  string(REGEX REPLACE "[][]" "!" text "${text}")
  check_includes(${file} "${text}")
  string(REGEX REPLACE
    "\"([^\"\\\n]|\\\\.)*\"|'([^'\\\n]|\\\\.)'|//[^\n]*|/\\*[^*]*\\*+([^/*][^*]*\\*+)*/"
    "0" code "${text}")
  check_calls(${file} "${code}")
endforeach()
if(faults)
  list(JOIN faults "\n  " list)
  message(FATAL_ERROR "not as docs/structure.md has it:\n  ${list}")
endif()
message(STATUS "${count} files include and call only what they may")
