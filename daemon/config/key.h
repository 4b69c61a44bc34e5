// How a key of the configuration file is bound to a member of what it
// configures: a row of a KeyTable<Owner> has all that is known of a key, so
// that reading, comparing and taking over need no other list. An Owner is the
// Config or an entry of a list of it. Used by other files of this folder only.

#ifndef DAEMON_CONFIG_KEY_H_
#define DAEMON_CONFIG_KEY_H_

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/config/known.h"

namespace rknnd {

// A member of an Owner, perhaps of a part of it: At<&Config::grpc,
// &GrpcOptions::key>.
template <auto... kMembers>
constexpr auto At = [](auto& owner) -> auto& {
  return (owner.*....*kMembers);
};

// All that is wrong with a file, and what is to be said of it: people correct
// files over slow lines, and want to do so once.
class Findings {
 public:
  explicit Findings(std::string path) : path_(std::move(path)) {}

  void Complain(uint32_t line, const std::string& key, const std::string& what);
  // That the file has key `name` as `given`: warns where that is an older name,
  // once. False: it has the key by another name, too, and that is said.
  bool TakeName(uint32_t line, const std::string& given,
                const std::string& name);
  [[nodiscard]] bool HasName(const std::string& name) const {
    return names_.contains(name);
  }
  // Before another entry of a list: its keys begin with `prefix`.
  void ForgetNames(const std::string& prefix);
  [[nodiscard]] size_t complaints() const { return complaints_.size(); }
  // INVALID_ARGUMENT with a line for each complaint, as they stand in the file.
  [[nodiscard]] absl::Status status() const;
  [[nodiscard]] std::vector<std::string> TakeWarnings() {
    return std::move(warnings_);
  }

 private:
  std::string path_;
  std::vector<std::pair<uint32_t, std::string>> complaints_;
  std::vector<std::string> warnings_;
  // Of each key: as what it was given, and where.
  std::map<std::string, std::pair<std::string, uint32_t>> names_;
  std::set<std::string> warned_;
};

struct KeyInFile {
  uint32_t line = 0;
  std::string key;
  const toml::node* node = nullptr;
};
// As they are read: lists of tables last, which may rest on all else.
std::vector<KeyInFile> KeysInFile(const toml::table& table);

template <class Owner>
class Key {
 public:
  // For rows of a table; each gives the row again.
  Key& Older(const std::string& name) {
    known.older.push_back(name);
    return *this;
  }
  Key& Unset(const std::string& what) {
    known.initial.clear();
    known.unset = what;
    return *this;
  }
  Key& Example(const std::string& value) {
    known.example = value;
    return *this;
  }
  Key& Shipped(const std::string& value) {
    known.shipped = value;
    return *this;
  }

  // An entry of a list must have it; `example`: what is shown of one.
  Key& Required(const std::string& example) {
    required = true;
    return Unset("must be given").Example(example);
  }

  [[nodiscard]] bool IsNamed(std::string_view name) const {
    if (known.name == name) return true;
    for (const std::string& older : known.older) {
      if (older == name) return true;
    }
    return false;
  }

  KnownKey known;
  bool required = false;
  std::vector<KnownKey> parts;  // of a list: what an entry has
  // Complains at the line and by the name that it is given.
  std::function<void(const KeyInFile&, const std::string& name, Owner&,
                     Findings&)>
      read;
  std::function<bool(const Owner&, const Owner&)> same;
  std::function<void(const Owner& from, Owner& to)> take;
};

// What is written into a member that may be unset, too.
template <class Type, class Value>
absl::Status ReadValue(const Type& type, const toml::node& node,
                       Value& target) {
  if constexpr (requires { type.Read(node, target); }) {
    return type.Read(node, target);
  } else {
    typename Value::value_type value{};
    RKNND_RETURN_IF_ERROR(type.Read(node, value));
    target = std::move(value);
    return absl::OkStatus();
  }
}
template <class Type, class Value>
std::string ShowValue(const Type& type, const Value& value) {
  if constexpr (requires { type.Show(value); }) {
    return type.Show(value);
  } else {
    return value.has_value() ? type.Show(*value) : "";
  }
}

template <class Owner>
class KeyTable {
 public:
  // `get`: the member, of a constant Owner, too. `type`: one of value_types.h.
  template <class Type, class Get>
  Key<Owner>& Live(const std::string& name, Type type, Get get,
                   const std::string& help) {
    Key<Owner>& key = Bind(name, get);
    key.known.live = true;
    return Describe(key, type, get, help);
  }
  template <class Type, class Get>
  Key<Owner>& Restart(const std::string& name, Type type, Get get,
                      const std::string& help) {
    return Describe(Bind(name, get), type, get, help);
  }

  // A list of tables, [[name]], whose entries have the keys of `entries`. `add`
  // is called with the text of each, what it came to, and whether nothing in it
  // is wrong. `get`: what becomes of the list.
  template <class Entry, class Add, class Get>
  void List(const std::string& name, const KeyTable<Entry>& entries, Add add,
            Get get) {
    Key<Owner>& key = Bind(name, get);
    key.known.live = entries.keys().front().known.live;
    for (const Key<Entry>& part : entries.keys()) {
      key.parts.push_back(part.known);
      key.parts.back().list = true;
    }
    key.read = [entries, add](const KeyInFile& place, const std::string& list,
                              Owner& owner, Findings& findings) {
      const auto* array = place.node->as_array();
      if (array == nullptr) {
        findings.Complain(place.line, list,
                          absl::StrCat("must be a list: [[", list, "]]"));
        return;
      }
      for (const toml::node& node : *array) {
        const auto* table = node.as_table();
        if (table == nullptr) {
          findings.Complain(place.line, list, "must be a list of tables");
          return;
        }
        findings.ForgetNames(list + ".");
        const size_t before = findings.complaints();
        Entry entry{};
        entries.Read(*table, list + ".", entry, findings);
        for (const Key<Entry>& part : entries.keys()) {
          if (part.required && !findings.HasName(part.known.name)) {
            findings.Complain(table->source().begin.line, part.known.name,
                              "is missing");
          }
        }
        add(*table, entry, findings.complaints() == before, owner, findings);
      }
    };
  }

  // All keys of a table of the file; `prefix`: "limits." and the like.
  void Read(const toml::table& table, const std::string& prefix, Owner& owner,
            Findings& findings) const {
    for (const KeyInFile& place : KeysInFile(table)) {
      const std::string name = prefix + place.key;
      if (const Key<Owner>* key = Find(name); key != nullptr) {
        if (findings.TakeName(place.line, name, key->known.name)) {
          key->read(place, name, owner, findings);
        }
      } else if (!HasTable(name)) {
        findings.Complain(
            place.line, name,
            absl::StrCat("is unknown to this version", DidYouMean(name)));
      } else if (const auto* inner = place.node->as_table(); inner != nullptr) {
        Read(*inner, name + ".", owner, findings);
      } else {
        findings.Complain(place.line, name,
                          absl::StrCat("must be a table: [", name, "]"));
      }
    }
  }

  [[nodiscard]] const std::vector<Key<Owner>>& keys() const { return keys_; }

  // What holds where an entry does not name a key.
  void SayDefault(const std::string& what) {
    for (Key<Owner>& key : keys_) key.Unset(what);
  }

  void Append(const KeyTable& more) {
    keys_.insert(keys_.end(), more.keys_.begin(), more.keys_.end());
  }

 private:
  template <class Get>
  Key<Owner>& Bind(const std::string& name, Get get) {
    Key<Owner>& key = keys_.emplace_back();
    key.known.name = name;
    key.same = [get](const Owner& a, const Owner& b) {
      return get(a) == get(b);
    };
    key.take = [get](const Owner& from, Owner& to) { get(to) = get(from); };
    return key;
  }

  template <class Type, class Get>
  static Key<Owner>& Describe(Key<Owner>& key, Type type, Get get,
                              const std::string& help) {
    const Owner defaults{};
    key.known.type = type.name();
    key.known.range = type.range();
    key.known.initial = ShowValue(type, get(defaults));
    key.known.help = help;
    key.read = [type, get](const KeyInFile& place, const std::string& name,
                           Owner& owner, Findings& findings) {
      const absl::Status status = ReadValue(type, *place.node, get(owner));
      if (!status.ok()) {
        findings.Complain(place.line, name, std::string(status.message()));
      }
    };
    return key;
  }

  [[nodiscard]] const Key<Owner>* Find(std::string_view name) const {
    for (const Key<Owner>& key : keys_) {
      if (key.IsNamed(name)) return &key;
    }
    return nullptr;
  }

  [[nodiscard]] bool HasTable(const std::string& name) const {
    const std::string prefix = name + ".";
    for (const Key<Owner>& key : keys_) {
      if (key.known.name.starts_with(prefix)) return true;
      for (const std::string& older : key.known.older) {
        if (older.starts_with(prefix)) return true;
      }
    }
    return false;
  }

  std::vector<Key<Owner>> keys_;
};

}  // namespace rknnd

#endif  // DAEMON_CONFIG_KEY_H_
