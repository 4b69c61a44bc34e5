// The peer of the benchmark: ONNX Runtime on one thread. Started by
// rknnd-bench-peers with the model's file and, for each input, its name, type,
// shape ("1x3x320x320") and file. Says "ready"; for each line with a number on
// stdin it runs the model so often and writes the microseconds of each run as
// one line of JSON.

import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {createInterface} from 'node:readline';

// From the folder the benchmark installed it in, which is the current one.
const require = createRequire(process.cwd() + '/');
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

const [model, ...inputs] = process.argv.slice(2);
const feeds = {};
for (let i = 0; i < inputs.length; i += 4) {
  const [name, type, shape, file] = inputs.slice(i, i + 4);
  feeds[name] = readTensor(type, shape.split('x').map(Number), file);
}
const session = await ort.InferenceSession.create(model, {
  executionProviders: ['cpu'],
  graphOptimizationLevel: 'all',
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  logSeverityLevel: 3,  // errors
});
console.log('ready');
for await (const line of createInterface({input: process.stdin})) {
  const times = [];
  for (let i = 0; i < Number(line); ++i) {
    const begin = process.hrtime.bigint();
    await session.run(feeds);
    times.push(Number(process.hrtime.bigint() - begin) / 1000);
  }
  console.log(JSON.stringify(times));
}
