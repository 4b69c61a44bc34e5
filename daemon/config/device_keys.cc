// Keys of the device, of sockets and folders, and of models.

#include "daemon/config/key_table.h"
#include "daemon/config/value_types.h"

namespace rknnd {
namespace {

// A grace period above a day is a unit mistaken.
constexpr double kMostGraceSeconds = 24 * 3600;

}  // namespace

void AddDeviceKeys(KeyTable<Config>& table) {
  table.Restart("device", Words({"auto", "soft", "rknpu", "rknnrt"}),
                At<&Config::device>,
                "Which NPU: `\"soft\"` is the software NPU, on the CPU; "
                "`\"rknpu\"` is the NPU by the kernel's driver; `\"rknnrt\"` "
                "is the NPU by the vendor's library; `\"auto\"` is an NPU "
                "where this version can drive it, else the software NPU.");
  table.Restart("soc", Text(), At<&Config::soc>,
                "The SoC that the software NPU looks like: `rk3588`, `rk3576`, "
                "`rk3568` and others.");
  table.Restart("pace", Flag(), At<&Config::pace>,
                "Whether jobs of the software NPU take as long as the SoC's "
                "would.");
  table.Restart("cache", Words({"coherent", "incoherent"}), At<&Config::cache>,
                "Whether CPU and software NPU see each other's writes at once. "
                "With `\"incoherent\"` a forgotten `rknn_mem_sync` gives wrong "
                "data, as on a board.");
  table.Restart("socket", Path(), At<&Config::socket>,
                "Where programs connect; `admin.sock`, for operators, is "
                "beside it.");
  table.Restart("socket_mode", Mode(), At<&Config::socket_mode>,
                "Mode of that socket.");
  table
      .Restart("socket_group", Group(), At<&Config::socket_group>,
               "Group of that socket.")
      .Unset("the daemon's own")
      .Shipped("\"rknnd\"");
  table.Restart("admin_mode", Mode(), At<&Config::admin_mode>,
                "Mode of the operators' socket.");
  table
      .Restart("admin_group", Group(), At<&Config::admin_group>,
               "Group of the operators' socket.")
      .Unset("the daemon's own")
      .Example("\"root\"");
  table
      .Restart("state_dir", Path(), At<&Config::state_dir>,
               "Folder for what must outlive a restart: pinned clocks, "
               "timelines of jobs that hang. `\"\"` keeps none.")
      .Shipped("\"/var/lib/rknnd\"");
  table
      .Restart("cache_dir", Path(), At<&Config::cache_dir>,
               "Folder that keeps models by hash, so that programs need not "
               "send them again. `\"\"` keeps none.")
      .Unset("the service manager's, else `/var/cache/rknnd`")
      .Example("\"/var/cache/rknnd\"");
  table.Live("log_level", Number(0, kMostLogLevel), At<&Config::log_level>,
             "0: errors, 1: warnings, 2: notes, 3 to 5: everything.");
  table.Live("grace", Seconds{0, kMostGraceSeconds}, At<&Config::grace>,
             "How long a model stays loaded after its last program.");
  table
      .Restart("vendor.library", Path(), At<&Config::vendor_library>,
               "The vendor's `librknnrt.so`, which runs compiled models that "
               "rknnd itself declines, in processes of its own.")
      .Unset("in `rknnd-vendor`, where `rknnd-divert` puts it")
      .Example("\"/usr/lib/rknnd-vendor/librknnrt.so\"");
  table.Restart("vendor.workers", Words({"each", "one"}),
                At<&Config::vendor_workers>,
                "Whether each model has a process of its own, so that a crash "
                "of the library costs that model only, or all share one.");
  table.Restart("vendor.deaths", Number(1, 1000), At<&Config::vendor_deaths>,
                "A model that ended so many of these processes one after the "
                "other is not run any more, until `rknnctl quarantine "
                "--release`.");
  table
      .Restart("service.user", OtherUser(), At<&Config::run_as>,
               "Name or number of the user that a daemon started as root "
               "becomes, once its sockets and devices are open. `\"\"`: it "
               "stays root.")
      .Shipped("\"rknnd\"");
  table.Live("models.cache_bytes", Bytes(1), At<&Config::cache_bytes>,
             "What all files of `cache_dir` may have together.");
  table
      .Live("models.preload", Texts(), At<&Config::preload>,
            "Paths of model files that are loaded at start and kept, used or "
            "not. User `rknnd` must be able to read them; `/home` is closed "
            "to the service.")
      .Unset("none")
      .Example("[\"/var/lib/rknnd/models/detector.onnx\"]");
  table
      .Restart("models.repository", Path(),
               At<&Config::grpc, &transport::GrpcOptions::model_repository>,
               "Folder of models that gRPC clients ask for by name.")
      .Unset("none")
      .Example("\"/var/lib/rknnd/models\"");
}

}  // namespace rknnd
