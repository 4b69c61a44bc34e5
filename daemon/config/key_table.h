// The table of all keys of the configuration file: each has its name, type,
// range, meaning and member of Config in one row of one of these functions, and
// nowhere else. Used by other files of this folder only.

#ifndef DAEMON_CONFIG_KEY_TABLE_H_
#define DAEMON_CONFIG_KEY_TABLE_H_

#include "daemon/config/config.h"
#include "daemon/config/key.h"

namespace rknnd {

// device_keys.cc: the device, sockets, folders, models.
void AddDeviceKeys(KeyTable<Config>& table);
// limit_keys.cc: [limits] and [scheduler].
void AddLimitKeys(KeyTable<Config>& table);
void AddSchedulerKeys(KeyTable<Config>& table);
// user_keys.cc: [limits.user], [[limits.users]], [[limits.groups]].
void AddUserKeys(KeyTable<Config>& table);
// memory_keys.cc: [memory] and [[physical_memory]].
void AddMemoryKeys(KeyTable<Config>& table);
// network_keys.cc: [grpc] and [metrics].
void AddNetworkKeys(KeyTable<Config>& table);
// fault_keys.cc: [faults] and [[faults.preset]].
void AddFaultKeys(KeyTable<Config>& table);

// All of them.
const KeyTable<Config>& AllKeys();

}  // namespace rknnd

#endif  // DAEMON_CONFIG_KEY_TABLE_H_
