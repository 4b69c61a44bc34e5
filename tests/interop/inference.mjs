// Node's gRPC client with the protocol's .proto: every call a serving tool makes
// first, then inference by raw and by typed contents.
//
//   node inference.mjs ADDRESS PROTO MODEL INPUT OUTPUT
//
// MODEL has one float32 input; INPUT and OUTPUT are files of its tensors.
// Prints one line of JSON, exits with 0 when all is right.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';

// Modules lie where npm put them, which is not beside this file.
const require = createRequire(process.cwd() + '/');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [address, proto, model, inputFile, outputFile] = process.argv.slice(2);
const definition = loader.loadSync(
    proto, {keepCase: true, longs: Number, defaults: true, oneofs: true});
const {inference} = grpc.loadPackageDefinition(definition);
const client = new inference.GRPCInferenceService(
    address, grpc.credentials.createInsecure());

const call = (method, request) => new Promise(
    (resolve, reject) => client[method](
        request, {deadline: Date.now() + 60000},
        (error, reply) => error ? reject(error) : resolve(reply)));

const floats = (bytes) => Array.from(
    new Float32Array(bytes.buffer.slice(
        bytes.byteOffset, bytes.byteOffset + bytes.length)));

assert.equal((await call('ServerLive', {})).live, true);
assert.equal((await call('ServerReady', {})).ready, true);
assert.equal((await call('ModelReady', {name: model})).ready, true);
const server = await call('ServerMetadata', {});
assert.ok(server.extensions.includes('model_repository'), server.extensions);
const metadata = await call('ModelMetadata', {name: model});
assert.equal(metadata.inputs.length, 1);
const config = (await call('ModelConfig', {name: model})).config;
assert.equal(config.input[0].name, metadata.inputs[0].name);

const input = readFileSync(inputFile);
const expected = floats(readFileSync(outputFile));
const tensor = {
  name: metadata.inputs[0].name,
  datatype: metadata.inputs[0].datatype,
  shape: metadata.inputs[0].shape,
};
const near = (values) => {
  assert.equal(values.length, expected.length);
  values.forEach((value, i) => assert.ok(
      Math.abs(value - expected[i]) <= 1e-4 * Math.max(1, Math.abs(value)),
      `output ${i}: ${value}, not ${expected[i]}`));
};
const raw = await call('ModelInfer', {
  model_name: model,
  id: 'frame 7',
  inputs: [tensor],
  raw_input_contents: [input],
});
assert.equal(raw.id, 'frame 7');
near(floats(raw.raw_output_contents[0]));
const typed = await call('ModelInfer', {
  model_name: model,
  inputs: [{...tensor, contents: {fp32_contents: floats(input)}}],
});
near(floats(typed.raw_output_contents[0]));

// Ten at once on a stream; answers may come in any order.
const stream = client.ModelStreamInfer();
const answers = new Promise((resolve, reject) => {
  const ids = [];
  stream.on('data', (answer) => {
    assert.equal(answer.error_message, '');
    near(floats(answer.infer_response.raw_output_contents[0]));
    ids.push(answer.infer_response.id);
  });
  stream.on('error', reject);
  stream.on('end', () => resolve(ids));
});
for (let i = 0; i < 10; ++i) {
  stream.write({
    model_name: model,
    id: `${i}`,
    inputs: [tensor],
    raw_input_contents: [input],
  });
}
stream.end();
assert.deepEqual(
    (await answers).sort(), Array.from({length: 10}, (_, i) => `${i}`));

// Errors are the protocol's.
await assert.rejects(
    call('ModelMetadata', {name: 'nothing'}), {code: grpc.status.NOT_FOUND});
await assert.rejects(
    call('ModelInfer', {model_name: model, inputs: [tensor]}),
    {code: grpc.status.INVALID_ARGUMENT});
const statistics =
    (await call('ModelStatistics', {name: model})).model_stats[0];
assert.equal(statistics.inference_stats.success.count, 12);
console.log(JSON.stringify({server: server.name, answers: 12}));
client.close();
