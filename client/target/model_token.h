// A model and the flags of a context as a line of text that another process
// makes the same context from, without the file (rknnd_model_token). What comes
// back is a program's word.

#ifndef CLIENT_TARGET_MODEL_TOKEN_H_
#define CLIENT_TARGET_MODEL_TOKEN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/values/expected.h"
#include "client/target/model_source.h"

namespace rknnd::client {

struct ModelToken {
  ModelId id{};
  uint32_t flags = 0;
};

// "rknnd1-HASH-FLAGS-CHECK", in lower-case hexadecimal; CHECK finds out what
// was cut off or mistyped.
std::string PrintToken(const ModelToken& token);

// kInvalidArgument with what is wrong with the text.
base::Expected<ModelToken> ParseToken(std::string_view text);

}  // namespace rknnd::client

#endif  // CLIENT_TARGET_MODEL_TOKEN_H_
