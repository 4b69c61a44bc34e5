// The peer of the benchmark: ONNX Runtime. Started by rknnd-bench-peers with the
// model's file, the number of threads and, for each input, its name, type, shape
// ("1x3x320x320") and file. Says "ready"; then each line on stdin is answered by
// one (bench/peers/side.h):
//
//   run N            runs the model N times: the microseconds of each, as JSON
//   outputs FOLDER   writes those of one run as FOLDER/<i>.bin, float32: how many

import {readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {createInterface} from 'node:readline';

// From the folder the benchmark installed it in, which is the current one.
const require = createRequire(process.cwd() + '/');
// Before the library: older_cpu.cc.
if (process.env.RKNND_OLDER_MODULE) require(process.env.RKNND_OLDER_MODULE);
const ort = require('onnxruntime-node');

const arrays = {
  float32: Float32Array,
  float16: Uint16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  int8: Int8Array,
};

function readTensor(type, shape, file) {
  const bytes = readFileSync(file);
  const copy = bytes.buffer.slice(
      bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return new ort.Tensor(type, new arrays[type](copy), shape);
}

function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function toFloats(tensor) {
  if (tensor.type === 'float32') return tensor.data;
  const isBits = tensor.type === 'float16' && tensor.data instanceof Uint16Array;
  return Float32Array.from(tensor.data, isBits ? fromHalf : Number);
}

const [model, threads, ...inputs] = process.argv.slice(2);
const feeds = {};
for (let i = 0; i < inputs.length; i += 4) {
  const [name, type, shape, file] = inputs.slice(i, i + 4);
  feeds[name] = readTensor(type, shape.split('x').map(Number), file);
}
const session = await ort.InferenceSession.create(model, {
  executionProviders: ['cpu'],
  graphOptimizationLevel: 'all',
  intraOpNumThreads: Number(threads),
  interOpNumThreads: 1,
  logSeverityLevel: 3,  // errors
});

async function run(count) {
  const times = [];
  for (let i = 0; i < count; ++i) {
    const begin = process.hrtime.bigint();
    await session.run(feeds);
    times.push(Number(process.hrtime.bigint() - begin) / 1000);
  }
  return times;
}

async function writeOutputs(folder) {
  const outputs = await session.run(feeds);
  session.outputNames.forEach((name, i) => {
    writeFileSync(`${folder}/${i}.bin`, toFloats(outputs[name]));
  });
  return session.outputNames.length;
}

console.log('ready');
for await (const line of createInterface({input: process.stdin})) {
  const [verb, argument] = line.split(' ');
  const answer = verb === 'run' ? await run(Number(argument)) :
                                  await writeOutputs(argument);
  console.log(JSON.stringify(answer));
}
