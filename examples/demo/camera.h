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
// then. Takes commands from stdin, a line each:
//
//   measure    films as fast as it can until the next command
//   film RATE  films so many frames a second (without one: 30), for `seconds`
//              in all; given again while it films, it goes on at that rate
//
// Both come with a line of figures every half second, whose rate is 0 while it
// measures; the film's last one has "done". The exit code of the process.
int RunCamera(const CameraOptions& options);

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_CAMERA_H_
