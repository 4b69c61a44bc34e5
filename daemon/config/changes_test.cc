#include "daemon/config/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "daemon/config/known.h"

namespace rknnd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Config Read(const std::string& text) {
  Config config;
  const absl::Status status = ReadToml(text, "f", config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

TEST(ConfigChangesTest, SameFileChangesNothing) {
  const std::string text =
      "grace = 3\n[limits.user]\nmemory = 4096\n[[limits.users]]\nuid = 5\n"
      "weight = 7\n[grpc]\nlisten = \"unix:/x\"\n[models]\npreload = "
      "[\"/a\"]\n";
  const ConfigChanges changes = CompareConfigs(Read(text), Read(text));
  EXPECT_THAT(changes.live, IsEmpty());
  EXPECT_THAT(changes.restart, IsEmpty());
}

TEST(ConfigChangesTest, WhatWasTheDefaultIsNoChange) {
  const ConfigChanges changes =
      CompareConfigs(Config(), Read("grace = 30\nlog_level = 2\n"));
  EXPECT_THAT(changes.live, IsEmpty());
}

// One file for each key that differs from the defaults in that key only.
TEST(ConfigChangesTest, EveryKeyIsNamedWithWhenItTakesEffect) {
  const struct {
    const char *key, *text;
  } cases[] = {
      {"device", "device = \"soft\""},
      {"soc", "soc = \"rk3566\""},
      {"pace", "pace = true"},
      {"cache", "cache = \"incoherent\""},
      {"socket", "socket = \"/x\""},
      {"socket_mode", "socket_mode = 0o600"},
      {"socket_group", "socket_group = \"root\""},
      {"admin_mode", "admin_mode = 0o660"},
      {"admin_group", "admin_group = 0"},
      {"state_dir", "state_dir = \"/x\""},
      {"cache_dir", "cache_dir = \"\""},
      {"log_level", "log_level = 4"},
      {"grace", "grace = 1"},
      {"service.user", "[service]\nuser = \"nobody\""},
      {"limits.sessions", "[limits]\nsessions = 1"},
      {"limits.strangers", "[limits]\nstrangers = 1"},
      {"limits.contexts", "[limits]\ncontexts = 1"},
      {"limits.buffers", "[limits]\nbuffers = 1"},
      {"limits.memory", "[limits]\nmemory = 4096"},
      {"limits.buffer_bytes", "[limits]\nbuffer_bytes = 4096"},
      {"limits.model_bytes", "[limits]\nmodel_bytes = 1"},
      {"limits.dump_bytes", "[limits]\ndump_bytes = 4096"},
      {"limits.jobs_per_context", "[limits]\njobs_per_context = 1"},
      {"limits.fences", "[limits]\nfences = 1"},
      {"limits.address_space", "[limits]\naddress_space = 4096"},
      {"limits.mappings", "[limits]\nmappings = 4096"},
      {"limits.kept_free", "[limits]\nkept_free = 0"},
      {"limits.user.memory", "[limits.user]\nmemory = 1"},
      {"limits.user.contexts", "[limits.user]\ncontexts = 1"},
      {"limits.user.buffers", "[limits.user]\nbuffers = 1"},
      {"limits.user.sessions", "[limits.user]\nsessions = 1"},
      {"limits.user.queue", "[limits.user]\nqueue = 1"},
      {"limits.user.max_priority", "[limits.user]\nmax_priority = \"low\""},
      {"limits.user.weight", "[limits.user]\nweight = 1"},
      {"limits.user.cores", "[limits.user]\ncores = [0]"},
      {"limits.users", "[[limits.users]]\nuid = 1\nqueue = 1"},
      {"limits.users", "[[limits.users]]\nuid = 1\nweight = 1"},
      {"limits.groups", "[[limits.groups]]\ngid = 1\nqueue = 1"},
      {"limits.groups", "[[limits.groups]]\ngid = 1\ncores = [1]"},
      {"scheduler.starvation_bound", "[scheduler]\nstarvation_bound = 2"},
      {"scheduler.longest_run", "[scheduler]\nlongest_run = 2"},
      {"scheduler.hang", "[scheduler]\nhang = 2"},
      {"scheduler.fence_timeout", "[scheduler]\nfence_timeout = 2"},
      {"scheduler.spin", "[scheduler]\nspin = 2"},
      {"models.cache_bytes", "[models]\ncache_bytes = 1"},
      {"models.preload", "[models]\npreload = [\"/a\"]"},
      {"models.repository", "[models]\nrepository = \"/a\""},
      {"memory.heaps", "[memory]\nheaps = [\"memfd\"]"},
      {"memory.dma32", "[memory]\ndma32 = true"},
      {"memory.contiguous", "[memory]\ncontiguous = true"},
      {"memory.isolate", "[memory]\nisolate = \"off\""},
      {"physical_memory", "[[physical_memory]]\nuid = 1\nbegin = 1\nsize = 1"},
      {"grpc.listen", "[grpc]\nlisten = \"unix:/x\""},
      {"grpc.insecure", "[grpc]\ninsecure = true"},
      {"grpc.certificate", "[grpc]\ncertificate = \"/x\""},
      {"grpc.key", "[grpc]\nkey = \"/x\""},
      {"grpc.client_ca", "[grpc]\nclient_ca = \"/x\""},
      {"grpc.operators", "[grpc]\noperators = [\"x\"]"},
      {"grpc.tokens", "[grpc]\ntokens = \"/x\""},
      {"grpc.message_bytes", "[grpc]\nmessage_bytes = 100000"},
      {"grpc.memory", "[grpc]\nmemory = 2000000"},
      {"grpc.connections", "[grpc]\nconnections = 1"},
      {"grpc.streams", "[grpc]\nstreams = 1"},
      {"grpc.requests", "[grpc]\nrequests = 1"},
      {"grpc.keepalive", "[grpc]\nkeepalive = 1"},
      {"grpc.unread", "[grpc]\nunread = 1"},
      {"grpc.advertise", "[grpc]\nadvertise = true"},
      {"metrics.listen", "[metrics]\nlisten = \"127.0.0.1:1\""},
      {"faults.enabled", "[faults]\nenabled = true"},
      {"faults.give_up_ms", "[faults]\ngive_up_ms = 7"},
      {"faults.preset", "[[faults.preset]]\nkind = \"hang\""},
  };
  std::set<std::string> tried;
  for (const auto& one : cases) {
    tried.insert(one.key);
    const Config after = Read(one.text);
    const ConfigChanges changes = CompareConfigs(Config(), after);
    bool live = false;
    for (const KnownKey& key : KnownKeys()) {
      if (key.kind != KnownKey::Kind::kTable && key.name.starts_with(one.key)) {
        live = key.kind == KnownKey::Kind::kLive;
        break;
      }
    }
    EXPECT_THAT(live ? changes.live : changes.restart, ElementsAre(one.key));
    EXPECT_THAT(live ? changes.restart : changes.live, IsEmpty()) << one.key;
    // What takes effect is taken over, and nothing else.
    Config running;
    TakeLive(after, running);
    const ConfigChanges left = CompareConfigs(running, after);
    EXPECT_THAT(left.live, IsEmpty()) << one.key;
    EXPECT_EQ(left.restart, changes.restart) << one.key;
    EXPECT_EQ(CompareConfigs(Config(), running).restart.size(), 0U) << one.key;
  }
  for (const KnownKey& key : KnownKeys()) {
    if (key.kind == KnownKey::Kind::kTable) continue;
    const std::string name(key.name);
    const std::string table = name.substr(0, name.rfind('.'));
    EXPECT_TRUE(tried.contains(name) || tried.contains(table)) << name;
  }
}

}  // namespace
}  // namespace rknnd
