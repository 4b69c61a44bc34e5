/* A model that lists shapes, with copies and with bound memory of the largest
 * one's size.
 *
 *   dynamic_shape MODEL */

#include "tests/programs/sample.h"

int main(int argc, char** argv) {
  static rknn_input_range range; /* 33 kB */
  rknn_context copying, bound;
  rknn_tensor_attr in, out;
  rknn_tensor_mem *in_mem, *out_mem;
  uint32_t row;
  EXPECT(argc == 2);
  copying = open_model(argv[1], 0);
  bound = open_model(argv[1], 0);
  CHECK(
      rknn_query(bound, RKNN_QUERY_INPUT_DYNAMIC_RANGE, &range, sizeof range));
  EXPECT(range.shape_number > 1 && range.n_dims == 4);
  printf("input %s lists %u shapes, %s\n", range.name, range.shape_number,
         get_format_string(range.fmt));
  /* Of the largest shape. */
  in = get_attr(bound, RKNN_QUERY_INPUT_ATTR, 0);
  out = get_attr(bound, RKNN_QUERY_OUTPUT_ATTR, 0);
  in_mem = rknn_create_mem(bound, in.size_with_stride);
  out_mem = rknn_create_mem(bound, out.n_elems * (uint32_t)sizeof(float));
  EXPECT(in_mem != NULL && out_mem != NULL);

  for (row = 0; row < range.shape_number; ++row) {
    rknn_context contexts[2];
    uint8_t* picture;
    float* expected;
    uint32_t count = 0;
    int i;
    contexts[0] = copying;
    contexts[1] = bound;
    for (i = 0; i < 2; ++i) {
      rknn_tensor_attr shape;
      memset(&shape, 0, sizeof shape);
      shape.index = 0;
      strcpy(shape.name, range.name);
      shape.fmt = range.fmt;
      shape.n_dims = range.n_dims;
      memcpy(shape.dims, range.dyn_range[row], range.n_dims * sizeof(uint32_t));
      CHECK(rknn_set_input_shapes(contexts[i], 1, &shape));
    }
    in = get_attr(bound, RKNN_QUERY_CURRENT_INPUT_ATTR, 0);
    out = get_attr(bound, RKNN_QUERY_CURRENT_OUTPUT_ATTR, 0);
    dump_attr(&in);
    EXPECT(memcmp(in.dims, range.dyn_range[row], 4 * sizeof(uint32_t)) == 0);
    in.type = RKNN_TENSOR_UINT8;
    out.type = RKNN_TENSOR_FLOAT32;
    CHECK(rknn_set_io_mem(bound, in_mem, &in));
    CHECK(rknn_set_io_mem(bound, out_mem, &out));
    picture = malloc(in.n_elems);
    EXPECT(picture != NULL);
    fill_picture(picture, in.n_elems, row);
    memcpy(in_mem->virt_addr, picture, in.n_elems);
    CHECK(rknn_run(bound, NULL));
    expected = infer(copying, picture, in.n_elems, &count);
    EXPECT(count == out.n_elems);
    EXPECT(memcmp(expected, out_mem->virt_addr, count * sizeof(float)) == 0);
    free(expected);
    free(picture);
  }
  CHECK(rknn_destroy_mem(bound, in_mem));
  CHECK(rknn_destroy_mem(bound, out_mem));
  CHECK(rknn_destroy(bound));
  CHECK(rknn_destroy(copying));
  return 0;
}
