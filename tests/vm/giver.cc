// A process that has dma-bufs and gives them to others, as a camera's or a
// display's program does. A test drives it by lines, each answered by one: 0
// and a value, or 1 and what went wrong.
//
//   vm_giver SOCKET udmabuf|prime SIZE COUNT
//   vm_giver SOCKET camera|camera_ro WIDTH HEIGHT FOURCC COUNT
//   vm_giver SOCKET node PATH          no buffer at all: an open device
//
//   hand            to the next one who connects to SOCKET: the fds, in order
//   frame           the number of the buffer with the next picture
//   back N          the camera may have it again
//   save N FILE     the picture, or all of a buffer
//   load N FILE     into a buffer
//   exit
//
// A message carries eight fds at most, and so many a giver has at most.

#include <fcntl.h>
#include <poll.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/posix/socket.h"
#include "tests/vm/dma_bufs.h"

namespace rknnd::vm {
namespace {

class Giver {
 public:
  Giver(const std::string& socket, const std::vector<std::string>& words) {
    auto listener = base::ListenUnix(socket, 0600);
    if (!listener) throw std::runtime_error(listener.error().message);
    listener_ = *std::move(listener);
    Make(words);
  }

  std::string Do(const std::vector<std::string>& words) {
    const std::string& verb = words.at(0);
    if (verb == "hand") {
      Hand();
    } else if (verb == "frame") {
      return std::to_string(camera_.value().NextFrame());
    } else if (verb == "back") {
      camera_.value().GiveBack(static_cast<uint32_t>(std::stoul(words.at(1))));
    } else if (verb == "save") {
      Buffer(words.at(1)).Save(words.at(2), size_);
    } else if (verb == "load") {
      Buffer(words.at(1)).Load(words.at(2));
    } else {
      throw std::runtime_error("no such command");
    }
    return "";
  }

 private:
  void Make(const std::vector<std::string>& words) {
    const std::string& kind = words.at(0);
    if (kind == "node") {
      node_.reset(open(words.at(1).c_str(), O_RDWR | O_CLOEXEC));
      if (!node_.valid()) throw std::runtime_error("cannot open it");
    } else if (kind == "udmabuf" || kind == "prime") {
      size_ = std::stoul(words.at(1));
      const int count = std::stoi(words.at(2));
      buffers_ = kind == "prime" ? MakePrimeBuffers(size_, count)
                                 : MakeUdmabufs(size_, count);
    } else if (kind == "camera" || kind == "camera_ro") {
      Camera::Options options;
      options.width = static_cast<uint32_t>(std::stoul(words.at(1)));
      options.height = static_cast<uint32_t>(std::stoul(words.at(2)));
      options.fourcc = words.at(3);
      options.buffers = std::stoi(words.at(4));
      options.writable = kind == "camera";
      camera_.emplace(options);
      size_ = camera_->frame_size();
    } else {
      throw std::runtime_error("no such kind of buffer");
    }
  }

  std::vector<DmaBuf>& buffers() {
    return camera_ ? camera_->buffers() : buffers_;
  }
  DmaBuf& Buffer(const std::string& number) {
    return buffers().at(std::stoul(number));
  }

  void Hand() {
    pollfd waiting{listener_.get(), POLLIN, 0};
    poll(&waiting, 1, -1);
    auto peer = base::Accept(listener_.get());
    if (!peer) throw std::runtime_error(peer.error().message);
    std::vector<int> fds;
    if (node_.valid()) fds.push_back(node_.get());
    for (const DmaBuf& buffer : buffers()) fds.push_back(buffer.fd());
    const std::byte byte{};
    const auto sent =
        base::SendMessage(peer->get(), {&byte, 1}, fds, base::Block::kYes);
    if (!sent) throw std::runtime_error(sent.error().message);
  }

  base::UniqueFd listener_;
  base::UniqueFd node_;
  std::vector<DmaBuf> buffers_;
  std::optional<Camera> camera_;
  size_t size_ = 0;  // of what is worth saving
};

// One line answered; an error is no end.
void Answer(Giver& giver, const std::vector<std::string>& words) {
  try {
    const std::string value = giver.Do(words);
    std::cout << "0 " << value << std::endl;
  } catch (const std::exception& error) {
    std::cout << "1 " << error.what() << std::endl;
  }
}

int Main(const std::vector<std::string>& arguments) {
  try {
    Giver giver(arguments.at(0), {arguments.begin() + 1, arguments.end()});
    std::cout << "0 ready" << std::endl;
    for (std::string line; std::getline(std::cin, line) && line != "exit";) {
      std::istringstream stream(line);
      std::vector<std::string> words;
      for (std::string word; stream >> word;) words.push_back(word);
      Answer(giver, words);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cout << "1 " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace
}  // namespace rknnd::vm

int main(int argc, char** argv) {
  return rknnd::vm::Main({argv + 1, argv + argc});
}
