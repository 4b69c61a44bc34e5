// Which known name somebody may have meant who wrote another: for messages
// about keys and options.
//
// Thread: any.

#ifndef BASE_VALUES_NEAR_NAME_H_
#define BASE_VALUES_NEAR_NAME_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rknnd::base {

// In how many places two words differ: letters that are missing, too many,
// wrong, or two that have changed places.
size_t EditDistance(std::string_view a, std::string_view b);

// "; did you mean 'limits.memory'?", of a name that is not among the known; or
// nothing, where none is near. Tables stand before a dot.
std::string DidYouMean(std::string_view name,
                       std::span<const std::string_view> known);

}  // namespace rknnd::base

#endif  // BASE_VALUES_NEAR_NAME_H_
