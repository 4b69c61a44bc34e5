/* Memory of the library's, bound once, with the type edited after the query as
 * programs do: UINT8 in, FLOAT32 out, while attr.size stays as it was.
 *
 *   zero_copy MODEL */

#include "tests/programs/sample.h"

/* Rows of a picture into memory whose rows may be wider. */
static void copy_rows(rknn_tensor_mem* mem, const rknn_tensor_attr* attr,
                      const uint8_t* picture) {
  const uint32_t height = attr->dims[1], width = attr->dims[2];
  const uint32_t channels = attr->dims[3];
  uint32_t y;
  if (width == attr->w_stride) {
    memcpy(mem->virt_addr, picture, (size_t)width * height * channels);
    return;
  }
  for (y = 0; y < height; ++y) {
    memcpy((uint8_t*)mem->virt_addr + (size_t)y * attr->w_stride * channels,
           picture + (size_t)y * width * channels, (size_t)width * channels);
  }
}

int main(int argc, char** argv) {
  rknn_context ctx, plain;
  rknn_tensor_attr in, out;
  rknn_tensor_mem *in_mem, *out_mem;
  uint8_t* picture;
  uint32_t count = 0, seed;
  EXPECT(argc == 2);
  ctx = open_model(argv[1], 0);
  plain = open_model(argv[1], 0);

  in = get_attr(ctx, RKNN_QUERY_INPUT_ATTR, 0);
  out = get_attr(ctx, RKNN_QUERY_OUTPUT_ATTR, 0);
  in.type = RKNN_TENSOR_UINT8;
  in.fmt = RKNN_TENSOR_NHWC;
  in_mem = rknn_create_mem(ctx, in.size_with_stride);
  out.type = RKNN_TENSOR_FLOAT32;
  out_mem = rknn_create_mem(ctx, out.n_elems * (uint32_t)sizeof(float));
  EXPECT(in_mem != NULL && out_mem != NULL);
  EXPECT(in_mem->fd > 0 && in_mem->offset == 0);
  CHECK(rknn_set_io_mem(ctx, in_mem, &in));
  CHECK(rknn_set_io_mem(ctx, out_mem, &out));

  picture = malloc(in.n_elems);
  EXPECT(picture != NULL);
  for (seed = 0; seed < 5; ++seed) {
    float* expected;
    fill_picture(picture, in.n_elems, seed);
    copy_rows(in_mem, &in, picture);
    CHECK(rknn_run(ctx, NULL));
    CHECK(rknn_mem_sync(ctx, out_mem, RKNN_MEMORY_SYNC_FROM_DEVICE));
    expected = infer(plain, picture, in.n_elems, &count);
    EXPECT(count == out.n_elems);
    EXPECT(memcmp(expected, out_mem->virt_addr, count * sizeof(float)) == 0);
    free(expected);
  }
  free(picture);
  CHECK(rknn_destroy_mem(ctx, in_mem));
  CHECK(rknn_destroy_mem(ctx, out_mem));
  CHECK(rknn_destroy(ctx));
  CHECK(rknn_destroy(plain));
  printf("zero copy: %u values are those of copies\n", count);
  return 0;
}
