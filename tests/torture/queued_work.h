// The works of checking clients that begin runs and hear of their ends later:
// here a frame can be lost, answered twice, or taken for another.

#ifndef TESTS_TORTURE_QUEUED_WORK_H_
#define TESTS_TORTURE_QUEUED_WORK_H_

#include "tests/torture/work.h"

namespace rknnd::torture {

// Work::kQueue and kLazy.
void WorkByQueue(const WorkPlan& plan, const Witness& witness);
// Work::kShared.
void WorkTogether(const WorkPlan& plan, const Witness& witness);

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_QUEUED_WORK_H_
