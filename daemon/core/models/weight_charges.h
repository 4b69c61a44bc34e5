// What loaded models' weights cost, where models share them: a byte that two
// models use is paid for once, by whom the device names, and goes on being paid
// for by those that stay. Used by the registry and by the last holder of a
// model, which may be a job.

#ifndef DAEMON_CORE_MODELS_WEIGHT_CHARGES_H_
#define DAEMON_CORE_MODELS_WEIGHT_CHARGES_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/memory/spare_memory.h"
#include "driver/device.h"

namespace rknnd::core {

// Thread: any.
class WeightCharges : public std::enable_shared_from_this<WeightCharges> {
 public:
  // `pager`: where large ones are freed. Null: where they leave.
  // `spare`: hears of what was freed. Null: nobody does.
  explicit WeightCharges(std::shared_ptr<Ledger> ledger,
                         base::Executor* pager = nullptr,
                         std::shared_ptr<SpareMemory> spare = nullptr);

  // Charges `model` with what it holds, as `holder`; until Leave.
  absl::Status Enter(const driver::Model& model, const std::string& holder);
  // It holds less than it did when it entered: other models have the same.
  void Update(const driver::Model& model);
  // Frees the model, a large one later, and no more of the charges than it
  // freed of the memory: the rest is what others go on using.
  void Leave(std::unique_ptr<driver::Model> model);
  // Frees here what waits for the pager: its memory is wanted now. False: there
  // is none.
  bool FreeWaiting();

 private:
  struct Paid {
    Charge charge;
    uint64_t coming = 0;  // about to be charged
  };

  void Free(std::unique_ptr<driver::Model> model);
  bool FreeOne();
  void GiveBackExcess(Charge leaving) RKNND_REQUIRES(mutex_);

  const std::shared_ptr<Ledger> ledger_;
  base::Executor* const pager_;
  const std::shared_ptr<SpareMemory> spare_;
  base::Mutex mutex_;
  std::map<const driver::Model*, Paid> charges_ RKNND_GUARDED_BY(mutex_);
  // Of models that have gone, for what was left of them. A charge only ever
  // shrinks here: it cannot be refused.
  std::vector<Charge> left_ RKNND_GUARDED_BY(mutex_);
  // Nobody has them any more; they are paid for until they are freed.
  std::deque<std::unique_ptr<driver::Model>> waiting_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_WEIGHT_CHARGES_H_
