// Runs that wait for another driver's work, by the kernel's own fences.
// (sw_sync is in no kernel of Debian's: vgem's fences, exported from its
// buffer, are sync_files of the same kind.)

#include <gtest/gtest.h>

#include "tests/integration/harness/files.h"
#include "tests/vm/guest_test.h"

namespace rknnd::vm {
namespace {

class FencesTest : public GuestTest {};

TEST_F(FencesTest, RunWaitsForTheSyncFileOfAnotherDriversBuffer) {
  StartDaemon();
  StartNeighbour();
  const auto model = integration::MakeConvNet(folder());
  EXPECT_EQ(
      RunProgram({integration::ProgramPath("tests/vm_sync_file"), model.path},
                 daemon().target()),
      0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  EXPECT_TRUE(NeighbourIsWell());
}

}  // namespace
}  // namespace rknnd::vm
