// RKNN_INTERNAL_MEM_TYPE, by which the vendor's library gives contexts SRAM
// without a change to the program: "sram" for as much as a model can use,
// "sram#KIB" for no more than that. Asked when a context is made.

#ifndef CLIENT_RKNNRT_INTERNAL_MEMORY_TYPE_H_
#define CLIENT_RKNNRT_INTERNAL_MEMORY_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "client/target/types.h"

namespace rknnd::client {

// KiB at most, 0: no bound; nothing where the text (empty: not set) asks for no
// SRAM or cannot be understood, which the log says.
std::optional<uint32_t> ParseInternalMemoryType(std::string_view text);

// Adds what the variable says, as it was at the first call.
void AskForSram(ContextRequest* request);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_INTERNAL_MEMORY_TYPE_H_
