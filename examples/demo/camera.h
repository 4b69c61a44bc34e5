// One camera of the demo: a process of its own, with frames and contexts of its
// own, that runs the detector zero-copy. Written against rknnd.hpp alone, as a
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
  std::string picture;  // film this photo, for a detector of faces
  std::string output;   // PNG of the last frame with its boxes
};

// Opens its contexts and says on stdout, as JSON, what NPU memory is held by
// then; waits for a line on stdin; films for `seconds`, with a line of figures
// every half second and a last one with "done". The exit code of the process.
int RunCamera(const CameraOptions& options);

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_CAMERA_H_
