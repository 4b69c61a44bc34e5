// A client that knows no .proto: asks the server what it has, and calls it by
// that, as grpc_cli does.
//
//   node reflection.mjs ADDRESS

import assert from 'node:assert/strict';
import {createRequire} from 'node:module';

const require = createRequire(process.cwd() + '/');
const grpc = require('@grpc/grpc-js');
const {GrpcReflection} = require('grpc-js-reflection-client');

const address = process.argv[2];
const credentials = grpc.credentials.createInsecure();
const reflection =
    new GrpcReflection(address, credentials, undefined, 'v1alpha');
const services = await reflection.listServices();
for (const service of
         ['inference.GRPCInferenceService', 'rknnd.v1.Debug',
          'rknnd.v1.Remote', 'grpc.health.v1.Health']) {
  assert.ok(services.includes(service), `${service} not in ${services}`);
}
const descriptor =
    await reflection.getDescriptorBySymbol('inference.GRPCInferenceService');
const {inference} = descriptor.getPackageObject({keepCase: true});
const client = new inference.GRPCInferenceService(address, credentials);
const metadata = await new Promise(
    (resolve, reject) => client.ServerMetadata(
        {}, (error, reply) => error ? reject(error) : resolve(reply)));
console.log(JSON.stringify({services, server: metadata.name}));
client.close();
