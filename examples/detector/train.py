#!/usr/bin/python3
"""Trains the demo's detector on drawn frames and writes it as an int8 ONNX file.

Debian's python3-torch, python3-numpy and python3-onnx are all it needs, and
rknnd-scene, which draws the frames. The README beside it says how it is run and
what it printed.
"""

import argparse
import math
import os
import queue
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional

WIDTH, HEIGHT = 256, 144
KINDS = ["person", "vehicle"]
FIGURES = 12  # rows of truth behind a frame, as rknnd-scene writes them
STRIDES = (8, 16)
# Training goes in cycles of so many steps, each with its own highest rate.
CYCLES = [(1000, 6e-3), (1100, 4e-3), (1800, 3e-3)]
# Figures whose longer side is at least so many pixels belong to the coarse grid.
LARGE = 38
TRAIN_SEED, CALIBRATION_SEED, TEST_SEED = 1, 1001, 2001
# What a pixel becomes before the first layer: (x - 128) / 128, which is an int8
# of scale 1/128 without rounding.
MEAN = STD = 128.0


def frames(scene, seed, count, width, height, per_scene=2):
    """Yields (pixels, truth) of `count` frames drawn by rknnd-scene."""
    command = [scene, f"--seed={seed}", f"--frames={count}",
               f"--frames-per-scene={per_scene}", f"--width={width}",
               f"--height={height}", f"--out-width={WIDTH}",
               f"--out-height={HEIGHT}"]
    pixels = WIDTH * HEIGHT * 3
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        for _ in range(count):
            data = process.stdout.read(pixels + FIGURES * 20)
            if len(data) != pixels + FIGURES * 20:
                sys.exit("rknnd-scene ended early")
            image = np.frombuffer(data, np.uint8, pixels)
            truth = np.frombuffer(data, np.float32, FIGURES * 5, pixels)
            truth = truth.reshape(FIGURES, 5)
            yield image.reshape(HEIGHT, WIDTH, 3), truth[truth[:, 0] >= 0]


def to_input(images):
    batch = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)
    return (batch.float() - MEAN) / STD


# ---- the network: 3x3 convolutions with Relu, two grids of answers -----------

# Name, input channels, output channels, step.
TRUNK = [("stem", 3, 16, 2), ("c4", 16, 24, 2), ("c8", 24, 40, 2),
         ("c8_a", 40, 40, 1), ("c8_b", 40, 40, 1), ("c16", 40, 64, 2),
         ("c16_a", 64, 64, 1), ("c16_b", 64, 64, 1)]
# Where the answers of each stride are taken.
TAPS = {"c8_b": 8, "c16_b": 16}


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.ModuleDict()
        self.norms = nn.ModuleDict()
        self.heads = nn.ModuleDict()
        for name, inputs, outputs, step in TRUNK:
            self.trunk[name] = nn.Conv2d(inputs, outputs, 3, step, 1,
                                         bias=False)
            self.norms[name] = nn.BatchNorm2d(outputs)
            if name in TAPS:
                scores = nn.Conv2d(outputs, len(KINDS), 1)
                nn.init.constant_(scores.bias, -4.0)
                self.heads[f"scores_{TAPS[name]}"] = scores
                self.heads[f"boxes_{TAPS[name]}"] = nn.Conv2d(outputs, 4, 1)

    def forward(self, x):
        answers = {}
        for name, *_ in TRUNK:
            x = functional.relu(self.norms[name](self.trunk[name](x)))
            if name in TAPS:
                for kind in ("scores", "boxes"):
                    key = f"{kind}_{TAPS[name]}"
                    answers[key] = self.heads[key](x)
        return answers

    def folded(self):
        """Convolutions with the normalisation folded in: (weight, bias)."""
        result = {}
        for name, *_ in TRUNK:
            norm = self.norms[name]
            gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
            weight = self.trunk[name].weight * gain[:, None, None, None]
            bias = norm.bias - norm.running_mean * gain
            result[name] = (weight.detach(), bias.detach())
        for name, head in self.heads.items():
            result[name] = (head.weight.detach(), head.bias.detach())
        return result


# ---- what it is asked for, and how wrong it is --------------------------------


def targets(truths):
    """Per stride: kinds (-1: none) and boxes (dx, dy, log w, log h in strides)
    of each cell of each frame."""
    result = {}
    for stride in STRIDES:
        rows, columns = HEIGHT // stride, WIDTH // stride
        kinds = np.full((len(truths), rows, columns), -1, np.int64)
        boxes = np.zeros((len(truths), 4, rows, columns), np.float32)
        nearest = np.full((len(truths), rows, columns), 1e9)
        for n, truth in enumerate(truths):
            for kind, left, top, right, bottom in truth:
                w, h = (right - left) * WIDTH, (bottom - top) * HEIGHT
                if (max(w, h) >= LARGE) != (stride == STRIDES[-1]):
                    continue
                x = (left + right) / 2 * WIDTH / stride
                y = (top + bottom) / 2 * HEIGHT / stride
                for row in range(max(0, round(y - 1.5)),
                                 min(rows, math.floor(y + 0.5) + 1)):
                    for column in range(max(0, round(x - 1.5)),
                                        min(columns, math.floor(x + 0.5) + 1)):
                        dx, dy = x - column - 0.5, y - row - 0.5
                        away = max(abs(dx), abs(dy))
                        if away > 1 or away >= nearest[n, row, column]:
                            continue
                        nearest[n, row, column] = away
                        kinds[n, row, column] = int(kind)
                        boxes[n, :, row, column] = (
                            dx, dy, math.log(w / stride), math.log(h / stride))
        result[stride] = torch.from_numpy(kinds), torch.from_numpy(boxes)
    return result


def overlap(a, b):
    """Generalised intersection over union of (dx, dy, log w, log h) rows."""
    aw, ah = a[:, 2].clamp(-3, 4).exp(), a[:, 3].clamp(-3, 4).exp()
    bw, bh = b[:, 2].exp(), b[:, 3].exp()
    left = torch.maximum(a[:, 0] - aw / 2, b[:, 0] - bw / 2)
    right = torch.minimum(a[:, 0] + aw / 2, b[:, 0] + bw / 2)
    top = torch.maximum(a[:, 1] - ah / 2, b[:, 1] - bh / 2)
    bottom = torch.minimum(a[:, 1] + ah / 2, b[:, 1] + bh / 2)
    both = (right - left).clamp(min=0) * (bottom - top).clamp(min=0)
    union = aw * ah + bw * bh - both
    hull = ((torch.maximum(a[:, 0] + aw / 2, b[:, 0] + bw / 2) -
             torch.minimum(a[:, 0] - aw / 2, b[:, 0] - bw / 2)) *
            (torch.maximum(a[:, 1] + ah / 2, b[:, 1] + bh / 2) -
             torch.minimum(a[:, 1] - ah / 2, b[:, 1] - bh / 2)))
    iou = both / union
    return iou, iou - (hull - union) / hull


def loss_of(answers, wanted):
    score_loss, box_loss, found = 0.0, 0.0, 0
    for stride in STRIDES:
        kinds, boxes = wanted[stride]
        logits = answers[f"scores_{stride}"].permute(0, 2, 3, 1)
        said = answers[f"boxes_{stride}"].permute(0, 2, 3, 1)
        there = kinds >= 0
        target = torch.zeros_like(logits)
        if there.any():
            mine = said[there]
            right = boxes.permute(0, 2, 3, 1)[there]
            iou, generalised = overlap(mine, right)
            box_loss = box_loss + (1 - generalised).sum()
            box_loss = box_loss + 0.2 * (mine - right).abs().sum()
            # A cell should be as sure as its box is good.
            quality = 0.5 + 0.5 * iou.detach().clamp(0, 1)
            target[there] = (functional.one_hot(kinds[there], len(KINDS)) *
                             quality[:, None])
            found += int(there.sum())
        plain = functional.binary_cross_entropy_with_logits(
            logits, target, reduction="none")
        focus = (logits.sigmoid() - target).detach().abs() ** 2
        score_loss = score_loss + (focus * plain).sum()
    return (4 * score_loss + 2 * box_loss) / max(found, 1)


def train_cycle(network, scene, cycle, batch_size):
    """One of CYCLES, on frames of its own."""
    steps, rate = CYCLES[cycle]
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate,
                                  weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=rate, total_steps=steps, pct_start=0.15)
    batches = queue.Queue(maxsize=4)

    def draw():
        images, truths = [], []
        # Half the camera's size: four times as quick, and the same picture once
        # it is shrunk.
        for image, truth in frames(scene, TRAIN_SEED + cycle,
                                   steps * batch_size, 960, 540):
            images.append(image)
            truths.append(truth)
            if len(images) == batch_size:
                batches.put((to_input(images), targets(truths)))
                images, truths = [], []

    threading.Thread(target=draw, daemon=True).start()
    network.train()
    started, mean = time.monotonic(), None
    for step in range(steps):
        images, wanted = batches.get()
        loss = loss_of(network(images), wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
        if step % 50 == 49:
            print(f"cycle {cycle}, step {step + 1}: loss {mean:.3f}, "
                  f"{time.monotonic() - started:.0f} s", flush=True)


# ---- how good it is -----------------------------------------------------------


def decode(answers, least=0.03, same=0.45):
    """Rows (kind, score, left, top, right, bottom) of one frame's answers."""
    found = []
    for stride in STRIDES:
        logits = answers[f"scores_{stride}"]
        boxes = answers[f"boxes_{stride}"]
        scores = 1 / (1 + np.exp(-logits))
        for kind, row, column in zip(*np.nonzero(scores > least)):
            dx, dy, w, h = boxes[:, row, column]
            x, y = (column + 0.5 + dx) * stride, (row + 0.5 + dy) * stride
            w = math.exp(min(w, 4)) * stride
            h = math.exp(min(h, 4)) * stride
            found.append((kind, scores[kind, row, column],
                          max(0, (x - w / 2) / WIDTH),
                          max(0, (y - h / 2) / HEIGHT),
                          min(1, (x + w / 2) / WIDTH),
                          min(1, (y + h / 2) / HEIGHT)))
    found.sort(key=lambda d: -d[1])
    kept = []
    for d in found:
        if all(k[0] != d[0] or box_iou(k[2:], d[2:]) <= same for k in kept):
            kept.append(d)
    return kept


def box_iou(a, b):
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    both = max(0, w) * max(0, h)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) +
                   (b[2] - b[0]) * (b[3] - b[1]) - both + 1e-12)


def mean_average_precision(run, test):
    """mAP at an overlap of 0.5, and the average precision of each kind."""
    claims = {kind: [] for kind in range(len(KINDS))}
    there = dict.fromkeys(claims, 0)
    for image, truth in test:
        taken = set()
        for kind in truth[:, 0]:
            there[int(kind)] += 1
        for kind, score, *box in decode(run(image)):
            best, which = 0.5, None
            for i, row in enumerate(truth):
                if int(row[0]) == kind and i not in taken:
                    iou = box_iou(box, row[1:])
                    if iou >= best:
                        best, which = iou, i
            if which is not None:
                taken.add(which)
            claims[kind].append((score, which is not None))
    precisions = []
    for kind, rows in claims.items():
        rows.sort(key=lambda r: -r[0])
        right = np.cumsum([r[1] for r in rows])
        precision = right / np.arange(1, len(rows) + 1)
        # Precision never grows with recall: the envelope.
        precision = np.maximum.accumulate(precision[::-1])[::-1]
        hits = np.array([r[1] for r in rows], bool)
        precisions.append(float(precision[hits].sum()) / max(there[kind], 1))
    return sum(precisions) / len(precisions), precisions


# ---- int8 ---------------------------------------------------------------------


def run_float(layers, x, keep=None):
    """The folded network; `keep` collects every layer's output."""
    answers = {}
    for name, _, _, step in TRUNK:
        x = functional.relu(functional.conv2d(x, *layers[name], step, 1))
        if keep is not None:
            keep.setdefault(name, []).append(x.flatten())
        if name in TAPS:
            for kind in ("scores", "boxes"):
                key = f"{kind}_{TAPS[name]}"
                answers[key] = functional.conv2d(x, *layers[key])
                if keep is not None:
                    keep.setdefault(key, []).append(answers[key].flatten())
    return answers


def ranges(layers, images):
    """(scale, zero point) of every layer's output, from what frames give."""
    kept = {}
    with torch.no_grad():
        for image in images:
            run_float(layers, to_input([image]), kept)
    result = {}
    for name, parts in kept.items():
        values = torch.cat(parts).numpy()
        if name.startswith("scores"):
            # Below a certain no, how much of a no does not matter.
            low, high = max(values.min(), -8.0), values.max()
        elif name.startswith("boxes"):
            low, high = np.percentile(values, [0.02, 99.98])
        else:
            low, high = 0.0, np.percentile(values, 99.995)
        low, high = min(float(low), 0.0), max(float(high), 0.0)
        scale = max(high - low, 1e-6) / 255
        result[name] = (np.float32(scale), int(round(-128 - low / scale)))
    return result


def export(layers, output_ranges, path):
    """Writes the network in QDQ form: int8 weights with a scale per channel,
    int8 tensors in between."""
    nodes, initializers = [], []

    def constant(name, value):
        initializers.append(numpy_helper.from_array(np.ascontiguousarray(value),
                                                    name))
        return name

    def requantized(tensor, name, scale, zero):
        constant(f"{name}_scale", np.float32(scale))
        constant(f"{name}_zero", np.int8(zero))
        nodes.append(helper.make_node(
            "QuantizeLinear", [tensor, f"{name}_scale", f"{name}_zero"],
            [f"{name}_int8"], name=f"{name}_quantize"))
        return dequantized(name, name if "_" in name and
                           name.split("_")[0] in ("scores", "boxes")
                           else f"{name}_float")

    def dequantized(name, result):
        nodes.append(helper.make_node(
            "DequantizeLinear",
            [f"{name}_int8", f"{name}_scale", f"{name}_zero"], [result],
            name=f"{name}_dequantize"))
        return result

    def convolution(name, tensor, tensor_scale, step):
        weight, bias = (t.numpy() for t in layers[name])
        scale = np.abs(weight).reshape(len(weight), -1).max(1) / 127
        scale = np.maximum(scale, 1e-8).astype(np.float32)
        whole = np.round(weight / scale[:, None, None, None])
        bias_scale = (scale * np.float32(tensor_scale)).astype(np.float32)
        for part, value, part_scale in (
                ("weight", np.clip(whole, -127, 127).astype(np.int8), scale),
                ("bias", np.round(bias / bias_scale).astype(np.int32),
                 bias_scale)):
            full = f"{name}_{part}"
            constant(f"{full}_quantized", value)
            constant(f"{full}_scale", part_scale)
            constant(f"{full}_zero", np.zeros(len(scale), value.dtype))
            nodes.append(helper.make_node(
                "DequantizeLinear",
                [f"{full}_quantized", f"{full}_scale", f"{full}_zero"],
                [full], name=f"{full}_dequantize", axis=0))
        size = weight.shape[2]
        nodes.append(helper.make_node(
            "Conv", [tensor, f"{name}_weight", f"{name}_bias"],
            [f"{name}_conv"], name=name, kernel_shape=[size, size],
            strides=[step, step], pads=[size // 2] * 4))
        return f"{name}_conv"

    scale = np.float32(1 / STD)
    x = requantized("frame", "input", scale, 0)
    outputs = []
    for name, _, _, step in TRUNK:
        result = convolution(name, x, scale, step)
        nodes.append(helper.make_node("Relu", [result], [f"{name}_relu"],
                                      name=f"{name}_relu"))
        scale, zero = output_ranges[name]
        x = requantized(f"{name}_relu", name, scale, zero)
        if name not in TAPS:
            continue
        stride = TAPS[name]
        for kind, channels in (("scores", len(KINDS)), ("boxes", 4)):
            key = f"{kind}_{stride}"
            result = convolution(key, x, scale, 1)
            requantized(result, key, *output_ranges[key])
            outputs.append(helper.make_tensor_value_info(
                key, TensorProto.FLOAT,
                [1, channels, HEIGHT // stride, WIDTH // stride]))
    graph = helper.make_graph(
        nodes, "camera_detector",
        [helper.make_tensor_value_info("frame", TensorProto.FLOAT,
                                       [1, 3, HEIGHT, WIDTH])],
        outputs, initializers)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
        producer_name="rknnd examples/detector")
    helper.set_model_props(model, {
        "rknn.mean_values": f"[[{MEAN:g}, {MEAN:g}, {MEAN:g}]]",
        "rknn.std_values": f"[[{STD:g}, {STD:g}, {STD:g}]]",
        "rknn.custom_string": ",".join(KINDS)})
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


class OnnxRunner:
    """Computes a file of export() node by node, as ONNX defines the operators;
    independent of what was known when it was written."""

    def __init__(self, path):
        graph = onnx.load(path).graph
        self.nodes = graph.node
        self.outputs = [o.name for o in graph.output]
        self.constants = {
            i.name: torch.from_numpy(np.array(numpy_helper.to_array(i)))
            for i in graph.initializer}
        # Weights are the same in every run.
        for node in self.nodes:
            if all(i in self.constants for i in node.input):
                self.constants[node.output[0]] = self.compute(node,
                                                              self.constants)

    @staticmethod
    def compute(node, values):
        inputs = [values[i] for i in node.input]
        if node.op_type == "Conv":
            attributes = {a.name: a.ints for a in node.attribute}
            return functional.conv2d(*inputs, list(attributes["strides"]),
                                     attributes["pads"][0])
        if node.op_type == "Relu":
            return inputs[0].relu()
        x, scale, zero = inputs
        if node.op_type == "QuantizeLinear":
            return (torch.round(x / scale) + zero).clamp(-128, 127).to(
                torch.int8)
        assert node.op_type == "DequantizeLinear", node.op_type
        if scale.dim() == 1 and x.dim() == 4:
            scale, zero = scale.view(-1, 1, 1, 1), zero.view(-1, 1, 1, 1)
        return (x.to(torch.int32) - zero.to(torch.int32)) * scale

    def __call__(self, image):
        values = dict(self.constants)
        values["frame"] = to_input([image])
        with torch.no_grad():
            for node in self.nodes:
                if node.output[0] not in values:
                    values[node.output[0]] = self.compute(node, values)
        return {name: values[name][0].numpy() for name in self.outputs}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scene", default=os.path.join(
        here, "../../build/release/bin/rknnd-scene"))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--test-frames", type=int, default=300)
    parser.add_argument("--weights", help="keep the float weights in this file")
    parser.add_argument("--resume", help="read them from this one first")
    parser.add_argument("--done", type=int, default=0,
                        help="cycles that the resumed weights have seen")
    parser.add_argument("--output", default=os.path.join(here, "detector.onnx"))
    args = parser.parse_args()
    torch.set_num_threads(1)

    torch.manual_seed(TRAIN_SEED)
    network = Detector()
    if args.resume:
        network.load_state_dict(torch.load(args.resume))
    for cycle in range(args.done, len(CYCLES)):
        train_cycle(network, args.scene, cycle, args.batch)
        if args.weights:
            torch.save(network.state_dict(), args.weights)
    network.eval()
    parameters = sum(p.numel() for p in network.parameters())
    print(f"parameters: {parameters}")

    layers = network.folded()
    calibration = [image for image, _ in frames(
        args.scene, CALIBRATION_SEED, 64, 1920, 1080, per_scene=1)]
    export(layers, ranges(layers, calibration), args.output)
    print(f"{args.output}: {os.path.getsize(args.output)} bytes")

    # Scenes that neither training nor calibration saw, at the camera's size.
    test = list(frames(args.scene, TEST_SEED, args.test_frames, 1920, 1080))

    def run(image):
        with torch.no_grad():
            answers = run_float(layers, to_input([image]))
        return {name: a[0].numpy() for name, a in answers.items()}

    for name, runner in (("float", run), ("int8", OnnxRunner(args.output))):
        overall, each = mean_average_precision(runner, test)
        kinds = ", ".join(f"{k} {p:.3f}" for k, p in zip(KINDS, each))
        print(f"{name}: mAP@0.5 {overall:.3f} ({kinds}) on {len(test)} frames")


if __name__ == "__main__":
    main()
