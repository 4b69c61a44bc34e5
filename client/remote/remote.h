// What librknnd-remote.so exports: one C function, so that the library can be
// loaded with dlopen(RTLD_LOCAL) by the client library for the target `tcp://`
// and by nobody else. What it returns is a socket that speaks the session
// protocol with a daemon on another machine, so that the C API's path is the
// same for every target; behind it stands one gRPC stream
// (proto/rknnd/v1/remote.proto) and a thread of this library's own.

#ifndef CLIENT_REMOTE_REMOTE_H_
#define CLIENT_REMOTE_REMOTE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// How far a transfer is: of what ("upload", a model), and bytes. Called on
// the library's thread: must return soon.
typedef void (*rknnd_remote_progress)(void* user, const char* what,
                                      uint64_t done, uint64_t total);

// Connects to the daemon at `address`: what stands behind "tcp://", a
// "HOST:PORT" or any name that gRPC resolves ("dns:///board.local:8001",
// "ipv4:192.0.2.1:8001,192.0.2.2:8001"). Waits until it has answered, or
// `timeout_ms`. `progress` may be null.
//
// From the environment: RKNND_TLS_CA, RKNND_TLS_CERT, RKNND_TLS_KEY (PEM files;
// any of them makes it TLS), RKNND_TOKEN or RKNND_TOKEN_FILE,
// RKNND_GRPC_SERVICE_CONFIG (gRPC's service configuration in JSON).
//
// Returns a SOCK_SEQPACKET descriptor that the caller closes, which ends the
// session; or -1 and in `*error` (if not null) the reason, valid until this
// thread's next call, and in `*code` (if not null) its base::Code.
// Thread: any.
int rknnd_remote_connect(const char* address, uint32_t timeout_ms,
                         rknnd_remote_progress progress, void* user,
                         const char** error, int32_t* code);

// For dlsym.
typedef int (*rknnd_remote_connect_function)(const char* address,
                                             uint32_t timeout_ms,
                                             rknnd_remote_progress progress,
                                             void* user, const char** error,
                                             int32_t* code);
#define RKNND_REMOTE_LIBRARY "librknnd-remote.so"
#define RKNND_REMOTE_CONNECT "rknnd_remote_connect"

#ifdef __cplusplus
}
#endif

#endif  // CLIENT_REMOTE_REMOTE_H_
