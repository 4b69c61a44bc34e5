// Sizes, offsets and values of the public headers, against our own lists
// (expectations.inc, for 32-bit Arm expectations_armhf.inc) and, where
// $RKNND_SHARED/abi is there, against the fact sheets, row by row in both
// directions.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"

namespace {

struct Layout {
  const char* type;
  const char* field;  // as in the fact sheets: __sizeof__, __alignof__ too
  size_t offset, size;
};

struct Expectation {
  Layout expected, actual;
};

struct Value {
  const char* name;
  int64_t expected, actual;
};

const std::vector<Expectation>& Layouts() {
  static const std::vector<Expectation> layouts = {
#define RKNN_TYPE(type, size, alignment)                                    \
  {{#type, "__sizeof__", 0, size}, {#type, "__sizeof__", 0, sizeof(type)}}, \
      {{#type, "__alignof__", 0, alignment},                                \
       {#type, "__alignof__", 0, alignof(type)}},
#define RKNN_FIELD(type, field, offset, size) \
  {{#type, #field, offset, size},             \
   {#type, #field, offsetof(type, field), sizeof(type::field)}},
#define RKNN_VALUE(name, value)
#ifdef __arm__
#include "tests/abi/layout/expectations_armhf.inc"
#else
#include "tests/abi/layout/expectations.inc"
#endif
#undef RKNN_TYPE
#undef RKNN_FIELD
#undef RKNN_VALUE
  };
  return layouts;
}

const std::vector<Value>& Values() {
  static const std::vector<Value> values = {
#define RKNN_TYPE(type, size, alignment)
#define RKNN_FIELD(type, field, offset, size)
#define RKNN_VALUE(name, value) {#name, value, static_cast<int64_t>(name)},
#include "tests/abi/layout/expectations.inc"
#undef RKNN_TYPE
#undef RKNN_FIELD
#undef RKNN_VALUE
  };
  return values;
}

std::string Key(const Layout& layout) {
  return std::string(layout.type) + "." + layout.field;
}

// Lines of a fact sheet without its head, cut at commas; empty if it is not
// there.
std::vector<std::vector<std::string>> FactSheet(const char* name) {
  const char* shared = std::getenv("RKNND_SHARED");  // NOLINT: one thread
  const std::filesystem::path folder =
      shared != nullptr ? shared : RKNND_SOURCE_ROOT "/../shared";
  std::ifstream file(folder / "abi" / name);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> row;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(LayoutTest, EveryTypeAndFieldLiesWhereProgramsExpectIt) {
  ASSERT_GT(Layouts().size(), 100U);
  for (const Expectation& e : Layouts()) {
    EXPECT_EQ(e.actual.offset, e.expected.offset) << Key(e.expected);
    EXPECT_EQ(e.actual.size, e.expected.size) << Key(e.expected);
  }
}

TEST(LayoutTest, EveryNameStandsForTheValueProgramsExpect) {
  ASSERT_GT(Values().size(), 100U);
  for (const Value& v : Values()) EXPECT_EQ(v.actual, v.expected) << v.name;
}

TEST(LayoutTest, ContextIsFourBytesOn32BitArmOnly) {
#ifdef __arm__
  EXPECT_EQ(sizeof(rknn_context), 4U);
  EXPECT_EQ(sizeof(rknn_custom_op_interal_context), 4U);
#else
  EXPECT_EQ(sizeof(rknn_context), 8U);
  EXPECT_EQ(sizeof(rknn_custom_op_interal_context), 8U);
#endif
}

TEST(FactSheetTest, LayoutsAgreeInBothDirections) {
  if (sizeof(void*) != 8)
    GTEST_SKIP() << "the sheet is that of 64-bit machines";
  const auto rows = FactSheet("abi_layout.csv");
  if (rows.empty()) GTEST_SKIP() << "no fact sheets: set RKNND_SHARED";
  std::map<std::string, Layout> ours;
  for (const Expectation& e : Layouts()) ours[Key(e.actual)] = e.actual;
  for (const std::vector<std::string>& row : rows) {
    ASSERT_EQ(row.size(), 5U) << row.front();
    const std::string key = row[1] + "." + row[2];
    const auto found = ours.find(key);
    ASSERT_NE(found, ours.end()) << key;
    EXPECT_EQ(std::to_string(found->second.offset), row[3]) << key;
    EXPECT_EQ(std::to_string(found->second.size), row[4]) << key;
    ours.erase(found);
  }
  for (const auto& [key, layout] : ours) ADD_FAILURE() << key << " has no row";
}

TEST(FactSheetTest, ValuesAgreeInBothDirections) {
  const auto rows = FactSheet("abi_enums.csv");
  if (rows.empty()) GTEST_SKIP() << "no fact sheets: set RKNND_SHARED";
  std::map<std::string, int64_t> ours;
  for (const Value& v : Values()) ours[v.name] = v.actual;
  for (const std::vector<std::string>& row : rows) {
    ASSERT_EQ(row.size(), 3U) << row.front();
    const auto found = ours.find(row[1]);
    ASSERT_NE(found, ours.end()) << row[1];
    EXPECT_EQ(std::to_string(found->second), row[2]) << row[1];
    ours.erase(found);
  }
  for (const auto& [name, value] : ours) ADD_FAILURE() << name << " has no row";
}

TEST(NamesTest, TypesPrintAsProgramsExpect) {
  const char* const expected[] = {"FP32",  "FP16",   "INT8",  "UINT8",
                                  "INT16", "UINT16", "INT32", "UINT32",
                                  "INT64", "BOOL",   "INT4",  "BF16"};
  for (int type = 0; type < RKNN_TENSOR_TYPE_MAX; ++type) {
    EXPECT_STREQ(get_type_string(static_cast<rknn_tensor_type>(type)),
                 expected[type]);
  }
  EXPECT_STREQ(get_type_string(RKNN_TENSOR_TYPE_MAX), "UNKNOW");
}

TEST(NamesTest, QuantisationsAndFormatsPrintAsProgramsExpect) {
  EXPECT_STREQ(get_qnt_type_string(RKNN_TENSOR_QNT_NONE), "NONE");
  EXPECT_STREQ(get_qnt_type_string(RKNN_TENSOR_QNT_DFP), "DFP");
  EXPECT_STREQ(get_qnt_type_string(RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC),
               "AFFINE");
  EXPECT_STREQ(get_qnt_type_string(RKNN_TENSOR_QNT_MAX), "UNKNOW");
  EXPECT_STREQ(get_format_string(RKNN_TENSOR_NCHW), "NCHW");
  EXPECT_STREQ(get_format_string(RKNN_TENSOR_NHWC), "NHWC");
  EXPECT_STREQ(get_format_string(RKNN_TENSOR_NC1HWC2), "NC1HWC2");
  EXPECT_STREQ(get_format_string(RKNN_TENSOR_UNDEFINED), "UNDEFINED");
  EXPECT_STREQ(get_format_string(RKNN_TENSOR_FORMAT_MAX), "UNKNOW");
}

TEST(NamesTest, ProductsPrintTheirEnumeratorButForTheNewestOne) {
  EXPECT_STREQ(get_matmul_type_string(RKNN_FLOAT16_MM_INT4_TO_BFLOAT16),
               "RKNN_FLOAT16_MM_INT4_TO_BFLOAT16");
  EXPECT_STREQ(get_matmul_type_string(RKNN_INT8_MM_INT8_TO_INT32),
               "RKNN_INT8_MM_INT8_TO_INT32");
  EXPECT_STREQ(get_matmul_type_string(RKNN_INT8_MM_INT4_TO_FLOAT16), "UNKNOW");
  EXPECT_STREQ(get_matmul_type_string(static_cast<rknn_matmul_type>(13)),
               "UNKNOW");
}

}  // namespace
