// A graph that all passes have seen, as bytes and back. Constants that kernels
// read only to pack them are left out: the packed ones are kept instead.
//
// Thread: the loading thread. The bytes come from a file that may be damaged:
// a graph that is read is checked as if a client had sent it.

#ifndef DRIVER_SOFT_COMPILED_GRAPH_FORM_H_
#define DRIVER_SOFT_COMPILED_GRAPH_FORM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/soft/compiled/byte_stream.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// The constants of a model's graphs: one for each row of shapes, and most are
// the same in all.
class ConstantTable {
 public:
  ConstantTable() = default;
  // To write: all constants of these graphs that something reads.
  explicit ConstantTable(const std::vector<const Graph*>& graphs);

  void Write(ByteWriter& to) const;
  void Read(ByteReader& from);

  // kNone for null.
  static constexpr uint32_t kNone = UINT32_MAX;
  [[nodiscard]] uint32_t NumberOf(const Constant* constant) const;
  // Null for kNone; a number that does not exist fails the reader.
  [[nodiscard]] std::shared_ptr<const Constant> Get(uint32_t number,
                                                    ByteReader& from) const;
  // Whether its contents were left out.
  [[nodiscard]] bool LeftOut(const Constant* constant) const;

 private:
  struct Entry {
    std::shared_ptr<const Constant> constant;
    bool left_out = false;
  };
  std::vector<Entry> entries_;
  std::map<const Constant*, uint32_t> numbers_;
};

void WriteGraph(const Graph& graph, const ConstantTable& constants,
                ByteWriter& to);
// DATA_LOSS unless a file with this graph might have been imported: numbers in
// range, values made before they are read, shapes as the operators say.
absl::StatusOr<Graph> ReadGraph(ByteReader& from,
                                const ConstantTable& constants,
                                const OperatorTable& operators);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_COMPILED_GRAPH_FORM_H_
