// The operator families of this build; kernels/operators.cc registers them all.
//
// Thread: any (once, when the table is first asked for).

#ifndef DRIVER_SOFT_KERNELS_FAMILIES_H_
#define DRIVER_SOFT_KERNELS_FAMILIES_H_

#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

void RegisterBatchNormalization(OperatorTable& table);
void RegisterBinary(OperatorTable& table);
void RegisterCast(OperatorTable& table);
void RegisterConcat(OperatorTable& table);
void RegisterConstants(OperatorTable& table);
void RegisterConvolution(OperatorTable& table);
void RegisterConvolutionTranspose(OperatorTable& table);
void RegisterGather(OperatorTable& table);
void RegisterGenerators(OperatorTable& table);
void RegisterGlobalPooling(OperatorTable& table);
void RegisterGlu(OperatorTable& table);
void RegisterMatMul(OperatorTable& table);
void RegisterNormalization(OperatorTable& table);
void RegisterPad(OperatorTable& table);
void RegisterPooling(OperatorTable& table);
void RegisterPRelu(OperatorTable& table);
void RegisterQuantize(OperatorTable& table);
void RegisterQuantizedConcat(OperatorTable& table);
void RegisterQuantizedConvolution(OperatorTable& table);
void RegisterQuantizedElementwise(OperatorTable& table);
void RegisterQuantizedMatMul(OperatorTable& table);
void RegisterQuantizedPooling(OperatorTable& table);
void RegisterReduce(OperatorTable& table);
void RegisterReshape(OperatorTable& table);
void RegisterResize(OperatorTable& table);
void RegisterShuffle(OperatorTable& table);
void RegisterSlice(OperatorTable& table);
void RegisterSoftmax(OperatorTable& table);
void RegisterTile(OperatorTable& table);
void RegisterTopK(OperatorTable& table);
void RegisterTranspose(OperatorTable& table);
void RegisterUnary(OperatorTable& table);
void RegisterVariadic(OperatorTable& table);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_FAMILIES_H_
