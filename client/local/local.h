// What librknnd-local.so exports: one C function, so that the library can be
// loaded with dlopen(RTLD_LOCAL) by the client library for the target `local:`
// and by nobody else. Behind it runs the whole daemon, in this process, on
// threads of its own; what it returns is a socket that speaks the session
// protocol, so that the C API's path is the same for every target.

#ifndef CLIENT_LOCAL_LOCAL_H_
#define CLIENT_LOCAL_LOCAL_H_

#ifdef __cplusplus
extern "C" {
#endif

// Connects to the daemon inside this process and starts it at the first call.
// It stops when its last connection is closed, and at the end of the process.
// The software NPU looks like the SoC named by RKNND_SOC (rk3588), and with
// RKNND_PACE=on takes as long; with RKNND_CACHE=incoherent a forgotten
// rknn_mem_sync gives wrong data, as it would there.
//
// `sharing` is "full", or "vendor" to measure what a device without this
// daemon would need; a running daemon keeps the kind it was started with.
//
// Returns a SOCK_SEQPACKET descriptor that the caller closes, or -1 and in
// `*error` (if not null) the reason, valid until this thread's next call.
// Thread: any.
int rknnd_local_connect(const char* sharing, const char** error);

// For dlsym.
typedef int (*rknnd_local_connect_function)(const char* sharing,
                                            const char** error);
#define RKNND_LOCAL_LIBRARY "librknnd-local.so"
#define RKNND_LOCAL_CONNECT "rknnd_local_connect"

#ifdef __cplusplus
}
#endif

#endif  // CLIENT_LOCAL_LOCAL_H_
