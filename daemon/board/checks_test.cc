// Tests of the doctor's checks: each state of a board, and the remedy it gets.

#include "daemon/board/checks.h"

#include <gmock/gmock.h>

#include <string>

#include "daemon/board/clocks.h"
#include "daemon/board/testing/board_tree.h"
#include "gtest/gtest.h"

namespace rknnd::board {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using transport::Finding;
using Level = Finding::Level;

auto Is(const char* check, Level level, const char* text, const char* remedy) {
  return AllOf(Field(&Finding::check, check), Field(&Finding::level, level),
               Field(&Finding::text, HasSubstr(text)),
               Field(&Finding::remedy, HasSubstr(remedy)));
}

auto Of(const char* check) { return Field(&Finding::check, check); }

class ChecksTest : public ::testing::Test {
 protected:
  ChecksTest() {
    here_.version = "1.0";
    here_.device.kind = "rknnrt";
    here_.device.soc = "rk3588";
    here_.device.cores = 3;
    here_.heaps = "memfd";
    here_.open_files = 65536;
    here_.root = true;
  }

  // A board whose NPU has all it needs.
  void AddDriver(const char* version) const {
    tree_.Link("/sys/class/drm/renderD129/device/driver",
               "../../bus/platform/drivers/RKNPU");
    tree_.Folder("/sys/class/drm/renderD129/device/iommu_group");
    tree_.Put("/dev/dri/renderD129", "");
    tree_.Put("/sys/module/rknpu/version", version);
    tree_.Put("/proc/device-tree/npu@fdab0000/status",
              std::string("okay\0", 5));
  }

  Findings All() const {
    Findings findings;
    const NpuDriver npu = FindDriver(files_);
    CheckVersions(here_, &findings);
    CheckDriver(files_, here_, npu, &findings);
    CheckSram(files_, here_, npu, &findings);
    CheckClocks(Clocks(&files_, "").Read(), &findings);
    CheckNpu(files_, &findings);
    CheckInterrupts(files_, &findings);
    CheckMemory(files_, here_, npu, &findings);
    CheckLimits(files_, here_, &findings);
    CheckModels(here_, &findings);
    CheckNeighbours(files_, here_, &findings);
    return findings;
  }

  testing::BoardTree tree_;
  Files files_{tree_.root()};
  DaemonFacts here_;
};

// ---- driver -----------------------------------------------------------------

TEST_F(ChecksTest, MachineWithoutNpuIsNoError) {
  here_.device.kind = "soft";
  here_.device.sram_total = 1024;
  const Findings findings = All();
  EXPECT_THAT(findings, Contains(Is("driver", Level::kNote,
                                    "the software NPU answers", "")));
  EXPECT_THAT(findings, Not(Contains(Field(&Finding::level, Level::kError))));
  EXPECT_THAT(findings, Not(Contains(Field(&Finding::level, Level::kWarning))));
}

TEST_F(ChecksTest, HealthyDriverIsNamedWithItsVersion) {
  AddDriver("0.9.8\n");
  const Findings findings = All();
  EXPECT_THAT(findings, Contains(Is("driver", Level::kOk, "rknpu", "")));
  EXPECT_THAT(findings,
              Contains(Is("driver-version", Level::kOk, "rknpu 0.9.8", "")));
  EXPECT_THAT(findings, Contains(Is("device-node", Level::kOk,
                                    "/dev/dri/renderD129", "")));
  EXPECT_THAT(findings, Contains(Is("iommu", Level::kOk, "IOMMU", "")));
}

TEST_F(ChecksTest, OldDriverIsToBeUpdated) {
  AddDriver("0.9.2\n");
  EXPECT_THAT(All(), Contains(Is("driver-version", Level::kWarning,
                                 "cores 1 and 2", "0.9.6 or later")));
}

TEST_F(ChecksTest, VersionOfDebugfsIsRead) {
  tree_.Put("/sys/kernel/debug/rknpu/version", "RKNPU driver: v0.9.10\n");
  EXPECT_EQ(FindDriver(files_).version, "0.9.10");
  EXPECT_LT(*ParseVersion("0.9.8"), *ParseVersion("0.9.10"));
  EXPECT_FALSE(ParseVersion("soft").has_value());
}

TEST_F(ChecksTest, MainlineDriverIsRecognised) {
  tree_.Folder("/sys/bus/platform/drivers/rocket");
  EXPECT_THAT(All(), Contains(Is("driver", Level::kWarning, "rocket",
                                 "kernel of the board's vendor")));
}

TEST_F(ChecksTest, NpuThatIsSwitchedOffIsNamed) {
  tree_.Put("/proc/device-tree/npu@fdab0000/status",
            std::string("disabled\0", 9));
  EXPECT_THAT(All(),
              Contains(Is("driver", Level::kWarning,
                          "npu@fdab0000', status 'disabled'", "overlay")));
}

TEST_F(ChecksTest, DriverWithoutNodeIsAnError) {
  tree_.Put("/sys/module/rknpu/version", "0.9.8\n");
  EXPECT_THAT(All(), Contains(Is("device-node", Level::kError, "neither a node",
                                 "dmesg")));
}

TEST_F(ChecksTest, SoftwareNpuOnABoardIsAWarning) {
  AddDriver("0.9.8\n");
  here_.device.kind = "soft";
  EXPECT_THAT(All(), Contains(Is("driver", Level::kWarning,
                                 "the software NPU answers", "--device auto")));
}

// ---- what it was built and wired for ----------------------------------------

TEST_F(ChecksTest, ReasonForNoSramIsTold) {
  AddDriver("0.7.2\n");
  EXPECT_THAT(All(),
              Contains(Is("sram", Level::kNote, "older than 0.8.0", "update")));
  tree_.Put("/sys/module/rknpu/version", "0.9.8\n");
  tree_.Put("/proc/sys/kernel/osrelease", "5.10.160\n");
  tree_.Put("/boot/config-5.10.160",
            "# CONFIG_ROCKCHIP_RKNPU_SRAM is not set\n");
  EXPECT_THAT(All(), Contains(Is("sram", Level::kNote,
                                 "CONFIG_ROCKCHIP_RKNPU_SRAM", "build it")));
  tree_.Put("/boot/config-5.10.160", "CONFIG_ROCKCHIP_RKNPU_SRAM=y\n");
  EXPECT_THAT(All(),
              Contains(Is("sram", Level::kNote, "'rockchip,sram'", "overlay")));
  here_.device.sram_total = 956 * 1024;
  EXPECT_THAT(All(), Contains(Is("sram", Level::kOk, "956 KiB", "")));
}

TEST_F(ChecksTest, InterruptsOnSlowCpusAreNamed) {
  tree_.Put(
      "/proc/interrupts",
      "           CPU0       CPU4\n"
      " 42:          9          0     GICv3 142 Level  fdab0000.npu\n"
      " 43:          9          0     GICv3 143 Level  virtio2-input.0\n");
  tree_.Put("/proc/irq/43/smp_affinity_list", "0\n");
  tree_.Put("/proc/irq/42/smp_affinity_list", "0-7\n");
  tree_.Put("/sys/devices/system/cpu/cpu0/cpu_capacity", "414\n");
  tree_.Put("/sys/devices/system/cpu/cpu4/cpu_capacity", "1024\n");
  EXPECT_THAT(All(), Contains(Is("irq-affinity", Level::kNote, "42 on CPU 0",
                                 "smp_affinity_list")));
  tree_.Put("/proc/irq/42/smp_affinity_list", "4\n");
  EXPECT_THAT(All(), Contains(Is("irq-affinity", Level::kOk, "1 NPU", "")));
}

TEST_F(ChecksTest, WithoutIommuTheFreeContiguousMemoryIsTold) {
  AddDriver("0.9.8\n");
  tree_.Remove("/sys/class/drm/renderD129/device/iommu_group");
  tree_.Put("/proc/meminfo",
            "MemTotal:        3900000 kB\nCmaTotal:         16384 kB\n"
            "CmaFree:           12288 kB\n");
  const Findings findings = All();
  EXPECT_THAT(findings,
              Contains(Is("iommu", Level::kWarning, "12 MiB", "cma=")));
  EXPECT_THAT(findings, Contains(Is("cma", Level::kOk, "12 MiB of 16", "")));
}

TEST_F(ChecksTest, MuchMemoryOnRk356xIsAWarning) {
  AddDriver("0.9.8\n");
  tree_.Put("/proc/meminfo", "MemTotal:        7900000 kB\n");
  EXPECT_THAT(All(), Not(Contains(Of("ram-above-4g"))));
  here_.device.soc = "rk3568";
  EXPECT_THAT(All(), Contains(Is("ram-above-4g", Level::kWarning, "page tables",
                                 "mem=3840M")));
}

TEST_F(ChecksTest, HeapsThatAreThereAreListed) {
  EXPECT_THAT(All(), Contains(Is("heaps", Level::kNote, "memfd",
                                 "CONFIG_DMABUF_HEAPS")));
  tree_.Put("/dev/dma_heap/system", "");
  tree_.Put("/dev/dma_heap/cma", "");
  tree_.Put("/dev/rga", "");
  tree_.Put("/proc/meminfo", "MemTotal:       16000000 kB\n");
  const Findings findings = All();
  EXPECT_THAT(findings, Contains(Is("heaps", Level::kOk, "cma, system", "")));
  EXPECT_THAT(findings,
              Contains(Is("heap-dma32", Level::kNote, "RGA2", "system-dma32")));
  EXPECT_THAT(findings, Contains(Is("rga", Level::kOk, "/dev/rga", "")));
}

TEST_F(ChecksTest, MissingHelpersOfABoardAreNotes) {
  AddDriver("0.9.8\n");
  const Findings findings = All();
  EXPECT_THAT(findings, Contains(Is("rga", Level::kNote, "/dev/rga", "CPU")));
  EXPECT_THAT(findings,
              Contains(Is("mpp", Level::kNote, "/dev/mpp_service", "CPU")));
}

// ---- clocks and limits ------------------------------------------------------

TEST_F(ChecksTest, ClocksBelowTheTopAreTold) {
  tree_.AddClocks();
  tree_.Put("/sys/class/devfreq/dmc/governor", "powersave\n");
  tree_.Put("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq",
            "2256000\n");
  const Findings findings = All();
  EXPECT_THAT(findings, Contains(Is("npu-clock", Level::kNote,
                                    "300 MHz of 1000 MHz", "--fix-freq")));
  EXPECT_THAT(findings, Contains(Is("ddr-clock", Level::kWarning, "powersave",
                                    "performance")));
  EXPECT_THAT(findings, Contains(Is("cpu-clock", Level::kOk, "cpu0", "")));
  EXPECT_THAT(findings, Contains(Is("cpu-clock", Level::kNote, "cpu4", "")));
}

TEST_F(ChecksTest, RateThatIsFixedLowIsAWarning) {
  tree_.AddClocks();
  tree_.Put("/sys/class/devfreq/fdab0000.npu/governor", "userspace\n");
  EXPECT_THAT(All(), Contains(Is("npu-clock", Level::kWarning, "userspace",
                                 "set_freq")));
}

TEST_F(ChecksTest, NpuWithoutDdrClockSaysThatNothingNeedsIt) {
  tree_.AddClocks();
  tree_.Remove("/sys/class/devfreq/dmc");
  EXPECT_THAT(All(), Contains(Is("ddr-clock", Level::kNote, "does not show",
                                 "nothing here needs it")));
}

TEST_F(ChecksTest, FewOpenFilesAreAWarning) {
  here_.open_files = 1024;
  here_.root = false;
  const Findings findings = All();
  EXPECT_THAT(findings, Contains(Is("fd-limit", Level::kWarning, "1024",
                                    "LimitNOFILE=65536")));
  EXPECT_THAT(findings, Contains(Is("memlock-limit", Level::kNote, "0 KiB",
                                    "LimitMEMLOCK")));
}

TEST_F(ChecksTest, FilesForTensOfTimesABoardsBuffersAreEnough) {
  here_.open_files = 20000;
  EXPECT_THAT(All(), Contains(Is("fd-limit", Level::kOk, "20000", "")));
}

TEST_F(ChecksTest, ModelsWithSlowLayersAreAWarning) {
  EXPECT_THAT(All(), Contains(Is("slow-layers", Level::kOk, "no loaded", "")));
  here_.slow_models = {"model 'm': no kernel for 1 of its layers: 'conv'"};
  EXPECT_THAT(All(), Contains(Is("slow-layers", Level::kWarning, "'conv'",
                                 "store its weights")));
}

TEST_F(ChecksTest, SoftwareNpuHasNoDriver) {
  here_.device.kind = "soft";
  here_.device.driver = "0.9.8";
  EXPECT_THAT(All(), Contains(Is("versions", Level::kOk,
                                 "no driver (programs are told 0.9.8)", "")));
  here_.device.kind = "rknnrt";
  EXPECT_THAT(All(),
              Contains(Is("versions", Level::kOk, ", driver 0.9.8", "")));
}

TEST_F(ChecksTest, FewMappingsAreAWarning) {
  tree_.Put("/proc/sys/vm/max_map_count", "30000\n");
  EXPECT_THAT(All(), Contains(Is("map-limit", Level::kWarning, "30000",
                                 "vm.max_map_count")));
}

// ---- neighbours -------------------------------------------------------------

TEST_F(ChecksTest, VendorsServerIsNamedByItsPid) {
  tree_.Put("/proc/812/comm", "rknn_server\n");
  EXPECT_THAT(All(), Contains(Is("rknn-server", Level::kWarning, "pid 812",
                                 "kill 812")));
  tree_.Remove("/proc/812");
  EXPECT_THAT(All(),
              Contains(Is("rknn-server", Level::kOk, "no rknn_server", "")));
}

TEST_F(ChecksTest, ForeignUsersAreNamedAndCannotSteerATerminal) {
  here_.foreign_users = {{77, "llm\x1b[2J", "/dev/dri/renderD129"}};
  EXPECT_THAT(All(), Contains(Is("foreign-users", Level::kWarning,
                                 "llm?[2J (pid 77)", "rknnctl lease")));
  here_.foreign_users = {{0, "3 processes that only root may look at", ""}};
  EXPECT_THAT(All(), Contains(Is("foreign-users", Level::kNote, "3 processes",
                                 "CAP_SYS_PTRACE")));
}

// A library of this machine, as far as its first bytes tell.
std::string Elf(const std::string& contents) {
  std::string file(64, '\0');
  file.replace(0, 4,
               "\x7F"
               "ELF");
#if defined(__aarch64__)
  file[18] = static_cast<char>(183);
#elif defined(__x86_64__)
  file[18] = 62;
#endif
  return file + contents;
}

TEST_F(ChecksTest, RuntimeLibrariesThatDifferAreAWarning) {
  tree_.Put("/usr/lib/librknnrt.so", Elf("librknnrt version: 2.3.2 (x)"));
  EXPECT_THAT(All(), Contains(Is("librknnrt", Level::kOk,
                                 "2.3.2 at /usr/lib/librknnrt.so", "")));
  tree_.Put("/usr/local/lib/librknnrt.so", Elf("librknnrt version: 1.5.0 (x)"));
  EXPECT_THAT(All(), Contains(Is("librknnrt", Level::kWarning,
                                 "1.5.0 at /usr/local/lib", "keep one")));
  tree_.Remove("/usr/local/lib/librknnrt.so");
  tree_.Put("/usr/lib64/librknnrt.so", Elf("rknnd_last_error"));
  EXPECT_THAT(All(), Contains(Is("librknnrt", Level::kWarning, "and rknnd's",
                                 "keep one")));
}

TEST_F(ChecksTest, LibraryOfAnotherProcessorIsAWarning) {
  tree_.Put("/usr/lib/librknnrt.so", "version https://git-lfs.github.com\n");
  EXPECT_THAT(All(),
              Contains(Is("librknnrt", Level::kWarning, "/usr/lib/librknnrt.so",
                          "invalid ELF header")));
}

TEST_F(ChecksTest, EachFindingThatIsNotWellHasARemedy) {
  AddDriver("0.7.2\n");
  tree_.AddClocks();
  tree_.Put("/proc/812/comm", "rknn_server\n");
  here_.device.soc = "rk3568";
  here_.open_files = 10;
  tree_.Put("/proc/meminfo", "MemTotal:        7900000 kB\n");
  for (const Finding& finding : All()) {
    EXPECT_EQ(finding.level == Level::kOk, finding.remedy.empty())
        << finding.check << ": " << finding.text;
  }
}

}  // namespace
}  // namespace rknnd::board
