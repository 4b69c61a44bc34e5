// Which versions of model files, the vendor's library and its driver go
// together. Source: the vendor's user guide, 10.1 (table 10-1) and 2.2.1.

#ifndef DRIVER_RKNNRT_VERSIONS_H_
#define DRIVER_RKNNRT_VERSIONS_H_

#include <string>

namespace rknnd::rknnrt {

// `model`: of the toolkit that made the file, "1.6.0"; `library`: "2.3.2
// (429f97ae6b@2025-04-09T09:09:27)". Why the one may not run on the other;
// empty: they go together, or one of them is not known.
std::string WhyFileMayNotFit(const std::string& model,
                             const std::string& library);
// Why the driver should be a newer one; empty: it need not.
std::string WhyDriverIsOld(const std::string& driver);

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_VERSIONS_H_
