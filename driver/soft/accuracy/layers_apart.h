// Option 'accuracy' of a model: networks to compare its layers with, made when
// it is loaded (docs/accuracy.md).
//
//   golden   the network computes in float32, as if nothing were quantised. A
//            dump shows, for each layer of the model as it would be without the
//            option, the real numbers its output stands for.
//   single   the same float network, and beside it each layer of the model by
//            itself, its inputs from the float network: 8-bit ones quantised
//            with the scale they have in the model. A dump shows these layers.
//
//   x ──▶ Conv ──▶ Relu ──▶ ... float32, not shown
//    └─Q─▶ ConvRelu   └─Q─▶ MaxPool ...  each ends there, and is shown
//
// Either way dumps have the types and names they have without the option.
// Called by SoftModel instead of RunPasses.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_ACCURACY_LAYERS_APART_H_
#define DRIVER_SOFT_ACCURACY_LAYERS_APART_H_

#include "absl/status/status.h"
#include "driver/soft/graph/fold.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/import/options.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// `graph` comes from import with its inputs' shapes fixed, and is ready to be
// planned afterwards. `which` is not kOff.
absl::Status SetLayersApart(Accuracy which, Graph& graph,
                            const OperatorTable& operators,
                            FoldPool* pool = nullptr);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_ACCURACY_LAYERS_APART_H_
