// What the target says of a context's layers, as programs read it: tables that
// lie still until the next call for the same one.
//
// Thread: any; a program that asks in two threads at once has what the later
// one got.

#ifndef CLIENT_RKNNRT_CONTEXT_LAYER_TABLES_H_
#define CLIENT_RKNNRT_CONTEXT_LAYER_TABLES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/posix/mutex.h"
#include "base/values/expected.h"
#include "client/include/rknnd.h"
#include "client/session/target.h"

namespace rknnd::client {

class LayerTables {
 public:
  // Of context `number` of `target`, which outlives this.
  LayerTables(Target& target, uint32_t number)
      : target_(target), number_(number) {}

  // The times of the layers as text: `text`, or why there is none.
  std::span<char> KeepText(base::Expected<std::string> text);
  // The rows of that table.
  base::Expected<std::span<const rknnd_layer>> Layers();
  // What computes each layer of the model.
  base::Expected<std::span<const rknnd_kernel>> Kernels();

 private:
  Target& target_;
  const uint32_t number_;

  base::Mutex mutex_;
  std::string text_ RKNND_GUARDED_BY(mutex_);
  // Each second one points into the first.
  std::vector<wire::LayerReport> layer_reports_ RKNND_GUARDED_BY(mutex_);
  std::vector<rknnd_layer> layers_ RKNND_GUARDED_BY(mutex_);
  std::vector<wire::LayerReport> kernel_reports_ RKNND_GUARDED_BY(mutex_);
  std::vector<rknnd_kernel> kernels_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CONTEXT_LAYER_TABLES_H_
