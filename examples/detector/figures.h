// What moves and stands about in a scene: people, vehicles, and the things in
// front of and behind them. Made by Scene from its random numbers; drawn by its
// thread.

#ifndef EXAMPLES_DETECTOR_FIGURES_H_
#define EXAMPLES_DETECTOR_FIGURES_H_

#include "examples/detector/painter.h"
#include "examples/detector/random.h"

namespace rknnd::detector {

// All sizes are in metres, and a figure is drawn at `scale` frame heights per
// metre, standing at `foot` (the middle of where it touches the ground).

// One who walks. Thread: any.
class Person {
 public:
  explicit Person(Random& random);

  // Metres per second; negative to the left.
  [[nodiscard]] double speed() const { return speed_; }
  void Draw(Painter& painter, Point foot, double scale, double seconds) const;

 private:
  double height_, girth_, speed_, phase_;
  bool frontal_, skirt_, hat_, bag_, long_hair_;
  Rgb skin_, hair_, shirt_, trousers_, shoes_, extra_;
};

// One that drives across, or is seen from its front or back. Thread: any.
class Vehicle {
 public:
  // `scale` bounds what fits: no bus that is wider than the picture.
  Vehicle(Random& random, double scale, bool night);

  [[nodiscard]] double speed() const { return speed_; }
  [[nodiscard]] double length() const { return length_; }
  void Draw(Painter& painter, Point foot, double scale, double seconds) const;

 private:
  enum class Kind { kCar, kHatchback, kVan, kBus, kTruck, kPickup };

  void DrawSide(Painter& painter, Point foot, double scale,
                double seconds) const;
  void DrawEnd(Painter& painter, Point foot, double scale) const;
  void DrawWheel(Painter& painter, Point hub, double radius,
                 double angle) const;

  Kind kind_;
  bool frontal_, lights_;
  double length_, height_, width_, speed_;
  Rgb body_, second_, glass_;
};

// A thing that is neither: a post, a tree, a bush, a bin, a sign, a fence.
// Thread: any.
class Prop {
 public:
  explicit Prop(Random& random);

  void Draw(Painter& painter, Point foot, double scale) const;
  // The part of it that nothing can be seen through.
  [[nodiscard]] Extent Solid(Point foot, double scale) const;

 private:
  enum class Kind { kPost, kTree, kBush, kBin, kSign, kFence, kBox };

  Kind kind_;
  double height_, width_, lean_;
  Rgb color_, second_;
};

}  // namespace rknnd::detector

#endif  // EXAMPLES_DETECTOR_FIGURES_H_
