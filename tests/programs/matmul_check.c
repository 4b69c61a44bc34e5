/* A product of bytes in all layouts of B, compared with plain loops.
 *
 *   matmul_check [M K N] */

#include "rknn_matmul_api.h"
#include "tests/programs/sample.h"

static int32_t M = 4, K = 64, N = 32;

static void multiply(const int8_t* a, const int8_t* b, int32_t* c) {
  int32_t m, n, k;
  for (m = 0; m < M; ++m) {
    for (n = 0; n < N; ++n) {
      int32_t sum = 0;
      for (k = 0; k < K; ++k) sum += a[m * K + k] * b[k * N + n];
      c[m * N + n] = sum;
    }
  }
}

static void check_layout(int16_t layout, int8_t* a, int8_t* b,
                         const int32_t* expected) {
  rknn_matmul_ctx ctx;
  rknn_matmul_info info;
  rknn_matmul_io_attr attr;
  rknn_tensor_mem *mem_a, *mem_b, *mem_c;
  int round;
  memset(&info, 0, sizeof info);
  info.M = M;
  info.K = K;
  info.N = N;
  info.type = RKNN_INT8_MM_INT8_TO_INT32;
  info.B_layout = layout;
  info.AC_layout = RKNN_MM_LAYOUT_NORM;
  CHECK(rknn_matmul_create(&ctx, &info, &attr));
  EXPECT(strcmp(attr.A.name, "A") == 0 && strcmp(attr.C.name, "C") == 0);
  mem_a = rknn_create_mem(ctx, attr.A.size);
  mem_b = rknn_create_mem(ctx, attr.B.size);
  mem_c = rknn_create_mem(ctx, attr.C.size);
  EXPECT(mem_a != NULL && mem_b != NULL && mem_c != NULL);
  memcpy(mem_a->virt_addr, a, (size_t)M * K);
  switch (layout) {
    case RKNN_MM_LAYOUT_NATIVE:
      CHECK(rknn_B_normal_layout_to_native_layout(b, mem_b->virt_addr, K, N,
                                                  &info));
      break;
    case RKNN_MM_LAYOUT_TP_NORM: {
      int32_t k, n;
      for (k = 0; k < K; ++k) {
        for (n = 0; n < N; ++n) {
          ((int8_t*)mem_b->virt_addr)[n * K + k] = b[k * N + n];
        }
      }
      break;
    }
    default:
      memcpy(mem_b->virt_addr, b, (size_t)K * N);
  }
  CHECK(rknn_matmul_set_io_mem(ctx, mem_a, &attr.A));
  CHECK(rknn_matmul_set_io_mem(ctx, mem_b, &attr.B));
  CHECK(rknn_matmul_set_io_mem(ctx, mem_c, &attr.C));
  for (round = 0; round < 3; ++round) {
    memset(mem_c->virt_addr, 0xee, attr.C.size);
    CHECK(rknn_matmul_run(ctx));
    EXPECT(memcmp(mem_c->virt_addr, expected,
                  (size_t)M * N * sizeof *expected) == 0);
  }
  CHECK(rknn_destroy_mem(ctx, mem_a));
  CHECK(rknn_destroy_mem(ctx, mem_b));
  CHECK(rknn_destroy_mem(ctx, mem_c));
  CHECK(rknn_matmul_destroy(ctx));
}

int main(int argc, char** argv) {
  int8_t *a, *b;
  int32_t* expected;
  int32_t i;
  if (argc == 4) {
    M = atoi(argv[1]);
    K = atoi(argv[2]);
    N = atoi(argv[3]);
  }
  a = malloc((size_t)M * K);
  b = malloc((size_t)K * N);
  expected = malloc((size_t)M * N * sizeof *expected);
  EXPECT(a != NULL && b != NULL && expected != NULL);
  for (i = 0; i < M * K; ++i) a[i] = (int8_t)(i * 7 % 255 - 127);
  for (i = 0; i < K * N; ++i) b[i] = (int8_t)(i * 11 % 253 - 126);
  multiply(a, b, expected);
  check_layout(RKNN_MM_LAYOUT_NORM, a, b, expected);
  check_layout(RKNN_MM_LAYOUT_NATIVE, a, b, expected);
  check_layout(RKNN_MM_LAYOUT_TP_NORM, a, b, expected);
  free(a);
  free(b);
  free(expected);
  printf("matmul: %dx%dx%d is right in three layouts\n", M, K, N);
  return 0;
}
