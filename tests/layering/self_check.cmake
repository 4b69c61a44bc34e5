# Proves that layering.cmake can fail: a tree with one forbidden line each must
# be refused with that reason, and the tree without such a line accepted.
#
#   cmake -D SCRATCH=<folder> -P self_check.cmake
cmake_minimum_required(VERSION 3.25)

# expect(<pass or the words of the refusal> <file> <its text>)
function(expect words file)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/base/posix/clock.h "#include <time.h>\n")
  file(WRITE ${SCRATCH}/client/include/rknn_api.h "#include <stdint.h>\n")
  list(JOIN ARGN ";" text)
  file(WRITE ${SCRATCH}/${file} "${text}")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -D ROOT=${SCRATCH}
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/layering.cmake
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE error)
  # The message is wrapped by CMake: compare without line breaks.
  string(REGEX REPLACE "[ \n]+" " " error "${error}")
  string(FIND "${error}" "${words}" at)
  if(words STREQUAL "pass")
    if(NOT result EQUAL 0)
      message(SEND_ERROR "${file} should be accepted: ${text}\n${error}")
    endif()
  elseif(result EQUAL 0 OR at LESS 0)
    message(SEND_ERROR
            "${file} should be refused for '${words}': ${text}\n${error}")
  endif()
endfunction()

# Arrows that exist.
expect(pass driver/a.cc "#include \"base/status/status.h\"\n")
expect(pass daemon/core/a.cc "#include \"driver/device.h\"\n")
expect(pass daemon/transport/a.cc "#include \"daemon/core/a.h\"\n#include \"rknnd/v1/session.pb.h\"\n")
expect(pass client/local/a.cc "#include \"daemon/core/a.h\"\n#include \"absl/status/status.h\"\n")
expect(pass client/rknnrt/a.cc "#include \"rknn_api.h\"\n#include \"proto/wire/ring.h\"\n")

expect(pass client/ctl/a.cc "#include \"driver/rknn_file/rknn_file.h\"\n")

# Arrows the other way, and those past a neighbour.
expect("may include only base/values, base/posix" base/posix/a.h "#include \"base/status/status.h\"\n")
expect("may include only base, driver" driver/a.cc "#include \"daemon/core/a.h\"\n")
expect("may include only base, driver" driver/soft/a.cc "#include <client/rknnrt/a.h>\n")
expect("may include only base, driver, daemon/core" daemon/core/a.cc "  #  include \"daemon/transport/session/a.h\"\n")
expect("may include only base, driver, daemon/core" daemon/core/a.cc "#include \"proto/wire/ring.h\"\n")
expect(pass daemon/core/sessions/a.cc "#include \"daemon/core/terms/a.h\"\n")
expect(pass daemon/core/memory/a_test.cc "#include \"daemon/core/service.h\"\n")
expect("may include only base, driver, daemon/core/terms" daemon/core/terms/a.h "#include \"daemon/core/memory/a.h\"\n")
expect("may include only base, driver, daemon/core/terms, daemon/core/accounts" daemon/core/memory/a.cc "#include \"daemon/core/jobs/job.h\"\n")
expect("may include only base, driver, daemon/core/terms, daemon/core/accounts" daemon/core/sessions/a.cc "#include \"daemon/core/service.h\"\n")
expect("may include only base/values, base/posix, proto" proto/wire/a.cc "#include \"driver/device.h\"\n")
expect("may include only base/values, base/posix, proto" client/session/a.cc "#include \"daemon/core/a.h\"\n")
expect("may include only base/values, base/posix, proto" client/session/a.cc "#include \"client/rknnrt/a.h\"\n")
expect("may include only base/values, base/posix, proto" client/ctl/a.cc "#include \"driver/device.h\"\n")
expect("may include only" tests/integration/a_test.cc "#include \"daemon/core/a.h\"\n")
expect("write includes from the root" daemon/core/a.cc "#include \"session.h\"\n")
expect("write includes from the root" daemon/core/a.cc "#include \"rknn_api.h\"\n")
expect("may include only base, proto, rknnd/v1, k8s" k8s/a.cc "#include \"daemon/transport/session/share_sockets.h\"\n")
expect("may include only base, proto, rknnd/v1, k8s" k8s/a.cc "#include \"client/ctl/text/table.h\"\n")

# Foreign headers.
expect("abseil stays" base/posix/a.h "#include \"absl/status/status.h\"\n")
expect("abseil stays" proto/wire/a.h "#include <absl/types/span.h>\n")
expect("abseil stays" client/ctl/a.cc "#include \"absl/strings/str_cat.h\"\n")
expect("abseil stays" driver/rknn_file/a.cc "#include \"absl/strings/str_cat.h\"\n")
expect("has no sockets" daemon/core/a.cc "#include <sys/socket.h>\n")
expect("has no sockets" daemon/core/a.cc "#include \"base/posix/socket.h\"\n")
expect("gRPC stay" daemon/core/a.cc "#include <grpcpp/grpcpp.h>\n")
expect("gRPC stay" driver/soft/kernels/a.cc "#include <onnx/onnx_pb.h>\n")
expect(pass driver/soft/import/a.cc "#include <onnx/onnx_pb.h>\n")
expect("gRPC stay" client/session/a.cc "#include <google/protobuf/message.h>\n")
expect("end in the transport" daemon/core/a.cc "#include \"rknnd/v1/session.pb.h\"\n")

# Threads of the core.
expect("creates a thread" daemon/core/context.cc "std::thread t(Run);\n")
expect("creates a thread" daemon/core/a.h "#include <thread>\n")
expect(pass daemon/core/a_test.cc "std::thread t(Run);\n")
expect(pass daemon/core/a.cc "auto id = std::thread::id();\n")

# Descriptors.
expect("without its close-on-exec flag" driver/a.cc "int fd = open(path, O_RDONLY);\n")
expect("without its close-on-exec flag" tests/a.cc "int fd = ::eventfd(0,\n  EFD_NONBLOCK);\n")
expect("without its close-on-exec flag" base/posix/socket.cc "return recvmsg(fd, &message, 0);\n")
expect("cannot close on exec" daemon/a.cc "int copy = dup(fd);\n")
expect("belongs to base/posix/socket.cc" daemon/a.cc "int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);\n")
expect(pass base/posix/socket.cc "int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);\n")
expect(pass driver/a.cc "file.open(path); // open(path) without a flag\nauto s = \"dup(3)\";\n/* int fd = socket(1);\n * dup(2) */ ring->socket();\n")
expect(pass tests/a.h "const std::string& socket() const { return socket_; }\n")
expect(pass client/session/a.cc "base::UniqueFd socket(connect(path));\n")
expect("without its close-on-exec flag" client/session/a.cc "if (x) {} else return\n  open(path);\n")

# The level of CPU.
expect("belongs to driver/soft/tiles/cpu_level.cc" driver/soft/kernels/a.cc "if (__builtin_cpu_supports(\"avx2\")) return kWide;\n")
expect(pass driver/soft/tiles/cpu_level.cc "if (__builtin_cpu_supports(\"avx2\")) return kWide;\n")

file(REMOVE_RECURSE ${SCRATCH})
