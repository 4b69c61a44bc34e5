// The library's versions. The text "librknnrt version: " and the API version
// stand in the binary, where people look with `strings`.

#ifndef CLIENT_RKNNRT_VERSION_H_
#define CLIENT_RKNNRT_VERSION_H_

namespace rknnd::client {

// The vendor release whose API this is, then our own version. Programs parse
// the leading X.Y.Z.
#define RKNND_CLIENT_VERSION "0.1.0"
#define RKNND_CLIENT_API_VERSION "2.3.2 (rknnd-" RKNND_CLIENT_VERSION ")"
inline constexpr char kApiVersion[] = RKNND_CLIENT_API_VERSION;

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_VERSION_H_
