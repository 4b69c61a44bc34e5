// The operator families of this build: a name here is a function
// Register<name>(OperatorTable&) in the family's file, which operators.cc
// calls.
//
// Thread: any (once, when the table is first asked for).

#ifndef DRIVER_SOFT_KERNELS_FAMILIES_H_
#define DRIVER_SOFT_KERNELS_FAMILIES_H_

#include "driver/soft/kernels/operator.h"

#define RKNND_OPERATOR_FAMILIES(X) \
  X(BatchNormalization)            \
  X(Binary)                        \
  X(Cast)                          \
  X(Concat)                        \
  X(Constants)                     \
  X(ControlFlow)                   \
  X(Convolution)                   \
  X(ConvolutionTranspose)          \
  X(Einsum)                        \
  X(Gather)                        \
  X(GatherNd)                      \
  X(Generators)                    \
  X(GlobalPooling)                 \
  X(Glu)                           \
  X(GridSample)                    \
  X(GroupNormalization)            \
  X(LpNorms)                       \
  X(MatMul)                        \
  X(NonMaxSuppression)             \
  X(Normalization)                 \
  X(PRelu)                         \
  X(Pad)                           \
  X(Pooling)                       \
  X(Quantize)                      \
  X(QuantizedConcat)               \
  X(QuantizedConvolution)          \
  X(QuantizedElementwise)          \
  X(QuantizedMatMul)               \
  X(QuantizedPooling)              \
  X(Recurrent)                     \
  X(Reduce)                        \
  X(Reshape)                       \
  X(Resize)                        \
  X(ReverseSequence)               \
  X(RoiAlign)                      \
  X(Scatter)                       \
  X(Select)                        \
  X(Shuffle)                       \
  X(Slice)                         \
  X(Softmax)                       \
  X(Tile)                          \
  X(TopK)                          \
  X(Transpose)                     \
  X(Unary)                         \
  X(Variadic)

namespace rknnd::soft {

#define RKNND_DECLARE(family) void Register##family(OperatorTable& table);
RKNND_OPERATOR_FAMILIES(RKNND_DECLARE)
#undef RKNND_DECLARE

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_FAMILIES_H_
