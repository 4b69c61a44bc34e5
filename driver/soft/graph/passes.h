// What happens to a network between import and plan, one file a pass. Passes
// keep the meaning of the network; each may run on a graph that any other has
// seen.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_GRAPH_PASSES_H_
#define DRIVER_SOFT_GRAPH_PASSES_H_

#include "absl/status/status.h"
#include "driver/soft/graph/fold.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// All of them, in their order; outputs have a shape then. `pool` for a network
// that is compiled several times.
absl::Status RunPasses(Graph& graph, const OperatorTable& operators,
                       FoldPool* pool = nullptr);

// Nodes none of whose outputs is read go.
void RemoveDeadNodes(Graph& graph);

// Identity, Dropout at inference, and casts to the type a value has already:
// readers take the input. Casts need inference to have run.
void RemoveIdentities(Graph& graph);

// The image inputs of networks written for NHWC become NCHW, and their own
// Transpose goes. Needs the shapes of inputs only.
void TurnImages(Graph& graph);

// Gives every value its type and shape by the operators' rules, and replaces
// nodes whose answer is known now by constants. UNIMPLEMENTED for a standard
// operator without a kernel; behind one that ONNX does not have, which a
// program may bring itself, shapes stay what the file declares.
// `folder`: what all rounds of one model may cost.
// `keep_dequantize`: weights stay 8-bit numbers with a scale, as long as passes
// look for integer layers. `assume_shapes`: what such an operator makes and the
// file gives no shape has that of its input of the same position, or else of
// its first.
absl::Status InferAndFold(Graph& graph, const OperatorTable& operators,
                          Folder& folder, bool keep_dequantize = false,
                          bool assume_shapes = false);

// UNIMPLEMENTED where a node reads what NonMaxSuppression makes: it would take
// the rows that only fill up the output for boxes.
absl::Status CheckOpenEnds(const Graph& graph);

// Quantised networks written as Dequantize -> float operator -> Quantize.
// First, what only moves numbers about moves the 8-bit ones.
void MoveQuantization(Graph& graph);
// Then Conv, Add, MatMul... between the two become one operator on integers,
// and functions of one number become tables. What cannot stays as it is.
void MakeIntegerLayers(Graph& graph, const OperatorTable& operators);
// Inputs that are only quantised, and outputs that come from dequantising: the
// port itself is 8-bit.
void QuantizePorts(Graph& graph);
// Reshape, Transpose, Reshape that deal channels out like cards.
void FindShuffles(Graph& graph);

// Conv followed by BatchNormalization, or by Mul, Div, Add, Sub with a constant
// for each channel: scale and shift go into weights and bias.
void FoldScale(Graph& graph);

// Pad with zeros before a Conv: the Conv pads.
void FoldPad(Graph& graph);

// What the NPU has one operator for: LayerNorm, GLU.
void FindSubgraphs(Graph& graph, const OperatorTable& operators);

// Gelu written out becomes the operator.
void FindGelu(Graph& graph, const OperatorTable& operators);

// x * f(x) of 8-bit numbers, f a table: a table.
void FoldGates(Graph& graph, const OperatorTable& operators);

// Conv followed by Add of a tensor of the same shape: one node.
void FuseAdd(Graph& graph, const OperatorTable& operators);

// Whatever takes an activation followed by one: one node. x * sigmoid(x) too.
void FuseActivations(Graph& graph, const OperatorTable& operators);

// The last two. What the NPU does on the way out of a convolution or product
// becomes part of its layer: nodes in a row (Node::joins_layer) from then on.
void JoinLayers(Graph& graph);
// Layers named as the vendor names them: an 8-bit Conv is a Conv.
void NameLayers(Graph& graph);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_GRAPH_PASSES_H_
