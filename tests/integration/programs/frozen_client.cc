// A client of the first version, as it may be installed on a board whose daemon
// is newer. It shares no line with this tree: the messages, verbs and the ring
// are written out here as they were in protocol 1 without any feature bit. It
// is not to be changed when they change; if it has to be, installed programs
// break.
//
//   integration_frozen_client SOCKET MODEL SHA256 INPUT OUTPUT [MIN MAX EXTRA]
//
// Runs MODEL (whose hash is SHA256) once on INPUT, one float32 tensor, and
// writes its one output as float32 to OUTPUT. MIN and MAX: protocols it says it
// speaks (1 1). EXTRA: "extra" adds fields and feature bits to Hello that
// nobody knows yet, as a newer client's. Exit code 0, or 1 with the daemon's
// reason on stderr.

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace {

// ---- protobuf, as far as it was needed
// ---------------------------------------

void Varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::string Number(uint32_t field, uint64_t value) {
  std::string out;
  Varint(out, field << 3);
  Varint(out, value);
  return out;
}

std::string Text(uint32_t field, const std::string& value) {
  std::string out;
  Varint(out, field << 3 | 2);
  Varint(out, value.size());
  return out + value;
}

// ---- frames
// ------------------------------------------------------------------

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

struct Header {
  uint32_t size;
  uint16_t verb, kind;
  uint32_t request;
  int32_t code;
  uint32_t flags, reserved;
};
static_assert(sizeof(Header) == 24);

constexpr uint16_t kHello = 1, kCreateContext = 2, kUploadModel = 3, kBind = 6,
                   kAllocateBuffer = 7;
constexpr int32_t kNotFound = 5;

struct Reply {
  int32_t code = 0;
  std::string body;
  std::vector<int> fds;
};

int daemon_socket = -1;
uint32_t last_request = 0;

void Send(uint16_t verb, const std::string& body, int fd) {
  Header header{};
  header.size = static_cast<uint32_t>(body.size());
  header.verb = verb;
  header.request = ++last_request;
  iovec parts[2] = {{&header, sizeof header},
                    {const_cast<char*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = body.empty() ? 1 : 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(item), &fd, sizeof fd);
  }
  if (sendmsg(daemon_socket, &message, MSG_NOSIGNAL) < 0) {
    Fail("the daemon is gone");
  }
}

Reply Receive() {
  std::vector<char> bytes(64 * 1024);
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
  for (;;) {
    iovec part = {bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t size = recvmsg(daemon_socket, &message, MSG_CMSG_CLOEXEC);
    if (size < static_cast<ssize_t>(sizeof(Header))) Fail("no reply");
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    Reply reply;
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
         item = CMSG_NXTHDR(&message, item)) {
      const size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      const auto* fds = reinterpret_cast<const int*>(CMSG_DATA(item));
      reply.fds.assign(fds, fds + count);
    }
    // This version knew no events and was to be sent none.
    if (header.kind != 1) Fail("something else than a reply came");
    if (header.request != last_request) Fail("a reply to nothing");
    reply.code = header.code;
    reply.body.assign(bytes.data() + sizeof header, bytes.data() + size);
    return reply;
  }
}

Reply Ask(uint16_t verb, const std::string& body, int fd = -1) {
  Send(verb, body, fd);
  return Receive();
}

Reply MustAsk(uint16_t verb, const std::string& body, int fd = -1) {
  Reply reply = Ask(verb, body, fd);
  if (reply.code != 0) {
    // Error.message is field 1.
    Fail(reply.body.size() > 2 ? reply.body.substr(2) : "no reason");
  }
  return reply;
}

// ---- the ring
// ----------------------------------------------------------------

struct Submission {
  uint32_t operation, context, slot, sequence;
  uint64_t frame;
  uint32_t flags, timeout_ms, fence_in, fence_out;
  uint64_t reserved[3];
};
static_assert(sizeof(Submission) == 64);

struct Completion {
  std::atomic<uint32_t> sequence;
  int32_t code;
  uint8_t rest[56];
};
static_assert(sizeof(Completion) == 64);

constexpr size_t kRingBytes = size_t{13} * 4096;
constexpr size_t kTailAt = 64, kSubmissionsAt = 192;
constexpr size_t kCompletionsAt = kSubmissionsAt + 128 * 64;
constexpr size_t kTextsAt = kCompletionsAt + 128 * 64;

void RunOnce(char* ring, int doorbell) {
  auto* const tail = reinterpret_cast<std::atomic<uint32_t>*>(ring + kTailAt);
  const uint32_t at = tail->load();
  Submission entry{};
  entry.operation = 1;
  entry.context = 1;
  entry.sequence = 1;
  entry.frame = 77;
  std::memcpy(ring + kSubmissionsAt + at % 128 * 64, &entry, sizeof entry);
  tail->store(at + 1);
  const uint64_t one = 1;
  if (write(doorbell, &one, sizeof one) != sizeof one) Fail("no doorbell");
  auto* const answer = reinterpret_cast<Completion*>(ring + kCompletionsAt);
  const timespec slice = {0, 20'000'000};
  for (int slices = 0; answer->sequence.load() != 1; ++slices) {
    if (slices > 3000) Fail("the run was not answered in a minute");
    syscall(SYS_futex, &answer->sequence, FUTEX_WAIT, 0, &slice, nullptr, 0);
  }
  if (answer->code != 0) Fail(std::string(ring + kTextsAt));
}

// ---- files
// -------------------------------------------------------------------

std::string Read(const char* path) {
  std::FILE* const file = std::fopen(path, "rbe");
  if (file == nullptr) Fail(std::string("cannot read ") + path);
  std::string bytes;
  char piece[4096];
  for (size_t got; (got = std::fread(piece, 1, sizeof piece, file)) > 0;) {
    bytes.append(piece, got);
  }
  std::fclose(file);
  return bytes;
}

int SealedCopy(const std::string& bytes) {
  const int fd = memfd_create("model", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) !=
                    static_cast<ssize_t>(bytes.size())) {
    Fail("no memfd");
  }
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  return fd;
}

std::string FromHex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// Buffer `number` of `size` bytes, mapped.
char* Allocate(uint32_t number, size_t size) {
  const Reply reply =
      MustAsk(kAllocateBuffer, Number(1, number) + Number(2, size));
  if (reply.fds.size() != 1) Fail("a buffer without its memory");
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, reply.fds[0], 0);
  if (memory == MAP_FAILED) Fail("a buffer cannot be mapped");
  return static_cast<char*>(memory);
}

// All of it as float32 (0) in NCHW (0) order.
void Bind(bool output, uint32_t buffer, size_t size) {
  MustAsk(kBind, Number(1, 1) + (output ? Number(2, 1) : "") +
                     Number(4, buffer) + Number(6, size));
}

// The count of elements of the one output, out of ContextInfo: outputs are
// field 2, and TensorAttr's elements field 3.
size_t OutputElements(const std::string& info) {
  size_t at = 0;
  const auto varint = [&](const std::string& bytes, size_t& position) {
    uint64_t value = 0;
    for (int shift = 0; position < bytes.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[position++]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  const auto skip = [&](const std::string& bytes, size_t& position,
                        uint64_t wire) {
    if (wire == 0) varint(bytes, position);
    if (wire == 1) position += 8;
    if (wire == 2) position += varint(bytes, position);
    if (wire == 5) position += 4;
  };
  while (at < info.size()) {
    const uint64_t tag = varint(info, at);
    if (tag != (2 << 3 | 2)) {
      skip(info, at, tag & 7);
      continue;
    }
    const uint64_t size = varint(info, at);
    const std::string attr = info.substr(at, size);
    for (size_t inside = 0; inside < attr.size();) {
      const uint64_t field = varint(attr, inside);
      if (field == 3 << 3) return varint(attr, inside);
      skip(attr, inside, field & 7);
    }
    break;
  }
  Fail("a model without an output");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) Fail("usage");
  const std::string min = argc > 6 ? argv[6] : "1";
  const std::string max = argc > 7 ? argv[7] : "1";
  const bool extra = argc > 8;

  daemon_socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
  if (connect(daemon_socket, reinterpret_cast<sockaddr*>(&address),
              sizeof address) != 0) {
    Fail("no daemon");
  }
  std::string hello = Number(1, std::stoul(min)) + Number(2, std::stoul(max)) +
                      Text(4, "0.1.0") + Text(5, "frozen");
  if (extra) {
    // A feature and fields that this daemon's version does not know.
    hello += Number(3, uint64_t{1} << 62) + Number(99, 7) + Text(100, "more");
  }
  const Reply welcome = MustAsk(kHello, hello);
  if (welcome.fds.size() != 2) Fail("Welcome without ring and doorbell");
  auto* const ring =
      static_cast<char*>(mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED, welcome.fds[0], 0));
  if (ring == MAP_FAILED) Fail("the ring cannot be mapped");

  const std::string create = Number(1, 1) + Text(2, FromHex(argv[3]));
  Reply context = Ask(kCreateContext, create);
  if (context.code == kNotFound) {
    MustAsk(kUploadModel, Text(1, FromHex(argv[3])) + Text(2, "model.onnx"),
            SealedCopy(Read(argv[2])));
    context = MustAsk(kCreateContext, create);
  }
  const std::string input = Read(argv[4]);
  char* const in = Allocate(1, input.size());
  std::memcpy(in, input.data(), input.size());
  Bind(false, 1, input.size());
  const size_t size = OutputElements(context.body) * sizeof(float);
  const char* const out = Allocate(2, size);
  Bind(true, 2, size);
  RunOnce(ring, welcome.fds[1]);

  std::FILE* const file = std::fopen(argv[5], "wbe");
  if (file == nullptr || std::fwrite(out, 1, size, file) != size ||
      std::fclose(file) != 0) {
    Fail("cannot write the output");
  }
  return 0;
}
