/* Two models, run in turns, on one internal memory of the larger one's size,
 * which is asked for on contexts that can do nothing else.
 *
 *   internal_memory MODEL OTHER */

#include "tests/programs/sample.h"

static uint32_t internal_size(const char* path) {
  rknn_mem_size size;
  const rknn_context ctx = open_model(path, RKNN_FLAG_COLLECT_MODEL_INFO_ONLY);
  CHECK(rknn_query(ctx, RKNN_QUERY_MEM_SIZE, &size, sizeof size));
  CHECK(rknn_destroy(ctx));
  EXPECT(size.total_internal_size > 0);
  return size.total_internal_size;
}

int main(int argc, char** argv) {
  rknn_context ctx[2], plain[2];
  rknn_tensor_mem* memory;
  uint32_t size = 0, count = 0;
  int i, round;
  EXPECT(argc == 3);
  for (i = 0; i < 2; ++i) {
    const uint32_t needed = internal_size(argv[1 + i]);
    size = needed > size ? needed : size;
  }
  for (i = 0; i < 2; ++i) {
    ctx[i] = open_model(argv[1 + i], RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE);
    plain[i] = open_model(argv[1 + i], 0);
  }
  memory = rknn_create_mem(ctx[0], size);
  EXPECT(memory != NULL);
  for (i = 0; i < 2; ++i) CHECK(rknn_set_internal_mem(ctx[i], memory));

  for (round = 0; round < 6; ++round) {
    const rknn_tensor_attr in =
        get_attr(ctx[round % 2], RKNN_QUERY_INPUT_ATTR, 0);
    uint8_t* const picture = malloc(in.n_elems);
    float *expected, *got;
    EXPECT(picture != NULL);
    fill_picture(picture, in.n_elems, (uint32_t)round);
    expected = infer(plain[round % 2], picture, in.n_elems, &count);
    got = infer(ctx[round % 2], picture, in.n_elems, &count);
    EXPECT(memcmp(expected, got, count * sizeof(float)) == 0);
    free(expected);
    free(got);
    free(picture);
  }
  for (i = 0; i < 2; ++i) {
    CHECK(rknn_destroy(ctx[i]));
    CHECK(rknn_destroy(plain[i]));
  }
  /* After the context that made it, as some do. */
  CHECK(rknn_destroy_mem(0, memory));
  printf("internal memory: two models on %u bytes\n", size);
  return 0;
}
