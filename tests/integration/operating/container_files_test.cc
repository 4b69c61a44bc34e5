// The files of packaging/containers: well formed, of the names that Kubernetes
// and Compose know, and as docs/containers.md promises: the socket's folder and
// never its file, no device and no privilege for who uses the NPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/harness/files.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;

std::string Path(const std::string& name) {
  return RKNND_SOURCE_ROOT "/packaging/containers/" + name;
}

std::vector<std::string> KeysOf(const YAML::Node& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first.as<std::string>());
  return keys;
}

// All files with this end.
std::vector<std::string> FilesLike(const std::string& end) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(Path(""))) {
    if (entry.path().string().ends_with(end)) files.push_back(entry.path());
  }
  EXPECT_FALSE(files.empty());
  return files;
}

// ---- Kubernetes -------------------------------------------------------------

const std::vector<std::string> kObject = {"apiVersion", "kind", "metadata",
                                          "spec"};
const std::vector<std::string> kMetadata = {"name", "namespace", "labels",
                                            "annotations"};
const std::vector<std::string> kDaemonSet = {"selector", "updateStrategy",
                                             "template"};
const std::vector<std::string> kPod = {
    "nodeSelector",      "automountServiceAccountToken",
    "priorityClassName", "terminationGracePeriodSeconds",
    "hostPID",           "securityContext",
    "containers",        "volumes"};
const std::vector<std::string> kContainer = {
    "name", "image",     "imagePullPolicy", "command",        "args",
    "env",  "resources", "volumeMounts",    "securityContext"};
const std::vector<std::string> kPodSecurity = {"runAsNonRoot", "runAsUser",
                                               "seccompProfile"};
const std::vector<std::string> kSecurity = {
    "privileged",   "runAsUser",      "allowPrivilegeEscalation",
    "capabilities", "seccompProfile", "readOnlyRootFilesystem"};
const std::vector<std::string> kMount = {"name", "mountPath", "readOnly"};
const std::vector<std::string> kVolume = {"name", "hostPath"};
const std::set<std::string> kHostPathTypes = {"Directory", "DirectoryOrCreate",
                                              "File", "Socket"};

void CheckContainer(const YAML::Node& container,
                    const std::set<std::string>& volumes) {
  EXPECT_THAT(KeysOf(container), IsSubsetOf(kContainer));
  EXPECT_TRUE(container["name"] && container["image"]);
  EXPECT_THAT(KeysOf(container["securityContext"]), IsSubsetOf(kSecurity));
  for (const YAML::Node& mount : container["volumeMounts"]) {
    EXPECT_THAT(KeysOf(mount), IsSubsetOf(kMount));
    EXPECT_TRUE(volumes.contains(mount["name"].as<std::string>()))
        << mount["name"];
    EXPECT_EQ(mount["mountPath"].as<std::string>().front(), '/');
  }
  const std::string command =
      container["command"] ? container["command"][0].as<std::string>() : "";
  // Only the daemon touches the device.
  EXPECT_EQ(container["securityContext"]["privileged"].IsDefined(),
            command == "/usr/sbin/rknnd");
}

void CheckPod(const YAML::Node& pod) {
  EXPECT_THAT(KeysOf(pod), IsSubsetOf(kPod));
  EXPECT_THAT(KeysOf(pod["securityContext"]), IsSubsetOf(kPodSecurity));
  std::set<std::string> volumes;
  for (const YAML::Node& volume : pod["volumes"]) {
    EXPECT_THAT(KeysOf(volume), IsSubsetOf(kVolume));
    EXPECT_TRUE(volumes.insert(volume["name"].as<std::string>()).second);
    const YAML::Node& path = volume["hostPath"];
    EXPECT_TRUE(kHostPathTypes.contains(path["type"].as<std::string>()));
    EXPECT_THAT(path["path"].as<std::string>(),
                ::testing::Not(HasSubstr(".sock")));
  }
  ASSERT_GT(pod["containers"].size(), 0U);
  for (const YAML::Node& container : pod["containers"]) {
    CheckContainer(container, volumes);
  }
}

TEST(ContainerFilesTest, KubernetesObjectsHaveTheFieldsTheApiKnows) {
  size_t objects = 0;
  for (const std::string& file : FilesLike(".yaml")) {
    if (file.find("/kubernetes/") == std::string::npos) continue;
    SCOPED_TRACE(file);
    for (const YAML::Node& object : YAML::LoadAllFromFile(file)) {
      ++objects;
      EXPECT_THAT(KeysOf(object), IsSubsetOf(kObject));
      EXPECT_THAT(KeysOf(object["metadata"]), IsSubsetOf(kMetadata));
      const auto kind = object["kind"].as<std::string>();
      const auto version = object["apiVersion"].as<std::string>();
      if (kind == "Pod") {
        EXPECT_EQ(version, "v1");
        CheckPod(object["spec"]);
      } else if (kind == "DaemonSet") {
        EXPECT_EQ(version, "apps/v1");
        const YAML::Node spec = object["spec"];
        EXPECT_THAT(KeysOf(spec), IsSubsetOf(kDaemonSet));
        // The API refuses others.
        EXPECT_EQ(YAML::Dump(spec["selector"]["matchLabels"]),
                  YAML::Dump(spec["template"]["metadata"]["labels"]));
        CheckPod(spec["template"]["spec"]);
      } else {
        EXPECT_EQ(kind, "Namespace");
      }
    }
  }
  EXPECT_EQ(objects, 4U);
}

TEST(ContainerFilesTest, APodAsksForWhatThePluginOffers) {
  const YAML::Node pod = YAML::LoadFile(Path("kubernetes/camera.yaml"));
  const YAML::Node container = pod["spec"]["containers"][0];
  // The plugin's default (k8s/plugin.h).
  EXPECT_TRUE(container["resources"]["limits"]["rknnd.io/npu-share"]);
  // /run/rknnd comes with it: a volume there would take its place.
  for (const YAML::Node& mount : container["volumeMounts"]) {
    EXPECT_NE(mount["mountPath"].as<std::string>(), "/run/rknnd");
  }
}

TEST(ContainerFilesTest, ThePluginsFoldersHaveThePathsOfTheNode) {
  const YAML::Node set = YAML::LoadFile(Path("kubernetes/device-plugin.yaml"));
  const YAML::Node pod = set["spec"]["template"]["spec"];
  for (const YAML::Node& volume : pod["volumes"]) {
    bool mounted = false;
    for (const YAML::Node& mount : pod["containers"][0]["volumeMounts"]) {
      if (mount["name"].as<std::string>() != volume["name"].as<std::string>()) {
        continue;
      }
      mounted = true;
      // The kubelet mounts by the path that the plugin knows.
      EXPECT_EQ(mount["mountPath"].as<std::string>(),
                volume["hostPath"]["path"].as<std::string>());
      EXPECT_FALSE(mount["readOnly"]);
    }
    EXPECT_TRUE(mounted) << volume["name"];
  }
}

// ---- Compose and quadlets ---------------------------------------------------

const std::vector<std::string> kService = {
    "image", "restart",   "read_only", "cap_drop",  "security_opt",
    "user",  "group_add", "volumes",   "privileged"};

// "HOST:INSIDE:ro" of all volumes.
void CheckVolumes(const std::vector<std::string>& volumes) {
  bool folder = false;
  for (const std::string& volume : volumes) {
    EXPECT_THAT(volume, ::testing::Not(HasSubstr(".sock")));
    EXPECT_THAT(volume, ::testing::Not(HasSubstr("/dev")));
    folder = folder || volume.starts_with("/run/rknnd:/run/rknnd");
  }
  EXPECT_TRUE(folder);
}

TEST(ContainerFilesTest, ServicesHaveTheFolderAndNoDeviceOrPrivilege) {
  size_t services = 0;
  for (const std::string& file : FilesLike(".yaml")) {
    if (file.find("/kubernetes/") != std::string::npos) continue;
    SCOPED_TRACE(file);
    const YAML::Node all = YAML::LoadFile(file);
    EXPECT_THAT(KeysOf(all), ::testing::ElementsAre("services"));
    for (const auto& entry : all["services"]) {
      ++services;
      const YAML::Node service = entry.second;
      EXPECT_THAT(KeysOf(service), IsSubsetOf(kService));
      EXPECT_FALSE(service["privileged"].as<bool>(false));
      CheckVolumes(service["volumes"].as<std::vector<std::string>>());
    }
  }
  EXPECT_EQ(services, 3U);
}

TEST(ContainerFilesTest, TheQuadletHasTheFolderAndKnownKeys) {
  // podman-systemd.unit(5), [Container].
  const std::set<std::string> known = {
      "Image",          "Volume",   "User",           "PodmanArgs",
      "DropCapability", "ReadOnly", "NoNewPrivileges"};
  std::istringstream text(ReadText(Path("podman/camera.container")));
  std::string section;
  std::vector<std::string> volumes;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      section = line;
      continue;
    }
    const size_t equals = line.find('=');
    ASSERT_NE(equals, std::string::npos) << line;
    if (section != "[Container]") continue;
    const std::string key = line.substr(0, equals);
    EXPECT_TRUE(known.contains(key)) << key;
    if (key == "Volume") volumes.push_back(line.substr(equals + 1));
  }
  CheckVolumes(volumes);
}

}  // namespace
}  // namespace rknnd::integration
