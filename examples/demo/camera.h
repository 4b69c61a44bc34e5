// One camera of the demo: a process of its own with its own frames, that runs
// the shared detector zero-copy. Written against the vendor's C API alone, as a
// program in the field is.

#ifndef EXAMPLES_DEMO_CAMERA_H_
#define EXAMPLES_DEMO_CAMERA_H_

#include <string>

namespace rknnd::demo {

struct CameraOptions {
  int number = 0;
  int contexts = 1;
  double seconds = 3;
  std::string model;
  std::string picture;
  std::string output;  // PNG of the last frame with its boxes
};

// Opens its contexts, says "ready" on stdout, waits for a line on stdin, films
// for `seconds`, writes the picture and one line of JSON to stdout. The exit
// code of the process.
int RunCamera(const CameraOptions& options);

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_CAMERA_H_
