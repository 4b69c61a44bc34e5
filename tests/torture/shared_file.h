// A page of memory that processes share by a file's name: it lives as long as
// the file's folder and one of them.

#ifndef TESTS_TORTURE_SHARED_FILE_H_
#define TESTS_TORTURE_SHARED_FILE_H_

#include <cstddef>
#include <string>

#include "base/posix/mapping.h"

namespace rknnd::torture {

// Zeroed, at a path where there may be an older one; or one that is there.
// Throw std::runtime_error.
base::Mapping MakeSharedFile(const std::string& path, size_t size);
base::Mapping OpenSharedFile(const std::string& path, size_t size);

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_SHARED_FILE_H_
