/* Matrix products as programs for the vendor's library write them: C99,
 * rknn_matmul_api.h and libc; all answers are computed here, too, number by
 * number.
 *
 *   matmul BLOCKS     products of every type the chip has, in every layout
 *   matmul scales     scales and zero points (RK3588)
 *   matmul shapes     listed shapes (RK3588)
 *   matmul again N    one product, N times, a line "run" after each (RK3588)
 *   matmul wrong      what must be refused (RK3588)
 *
 * BLOCKS names the chip's family: rk3588, rk3576 or rk356x. Exits with 0 when
 * all was right, with 1 after the lines that say what was not. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rknn_matmul_api.h"
#include "tests/integration/programs/expect.h"

static uint32_t seed = 1;
static uint32_t next_random(void) {
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

/* ---- numbers ------------------------------------------------------------- */

static double half_to_double(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const double fraction = (half & 1023) / 1024.0;
  const double size =
      exponent == 0 ? ldexp(fraction, -14) : ldexp(1 + fraction, exponent - 15);
  return half >> 15 ? -size : size;
}

static double number_at(rknn_tensor_type type, const void* from, size_t i) {
  switch (type) {
    case RKNN_TENSOR_INT4: {
      const int pair = ((const uint8_t*)from)[i / 2];
      const int number = i % 2 == 0 ? pair & 15 : pair >> 4;
      return number >= 8 ? number - 16 : number;
    }
    case RKNN_TENSOR_INT8:
      return ((const int8_t*)from)[i];
    case RKNN_TENSOR_INT16:
      return ((const int16_t*)from)[i];
    case RKNN_TENSOR_INT32:
      return ((const int32_t*)from)[i];
    case RKNN_TENSOR_FLOAT16:
      return half_to_double(((const uint16_t*)from)[i]);
    case RKNN_TENSOR_BFLOAT16: {
      const uint32_t bits = (uint32_t)((const uint16_t*)from)[i] << 16;
      float value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    default:
      return ((const float*)from)[i];
  }
}

/* Any bits but those of halves beyond 2: all of a matrix. */
static void fill(rknn_tensor_type type, void* to, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    ((uint8_t*)to)[i] = (uint8_t)next_random();
    if (type == RKNN_TENSOR_FLOAT16 && i % 2 == 1) {
      ((uint8_t*)to)[i] &= 0xbf;
    }
  }
}

/* ---- layouts: the dims that the library gave say all ------------------------
 */

static size_t place_of_a(const rknn_matmul_tensor_attr* a, int m, int k) {
  if (a->n_dims == 2) return (size_t)m * a->dims[1] + (size_t)k;
  const int block = (int)a->dims[2];
  return ((size_t)(k / block) * a->dims[1] + (size_t)m) * (size_t)block +
         (size_t)(k % block);
}

static size_t place_of_b(const rknn_matmul_tensor_attr* b,
                         rknn_matmul_layout layout, int k, int n) {
  if (layout == RKNN_MM_LAYOUT_NORM) {
    return (size_t)k * b->dims[1] + (size_t)n;
  }
  if (layout == RKNN_MM_LAYOUT_TP_NORM) {
    return (size_t)n * b->dims[1] + (size_t)k;
  }
  const int sub_n = (int)b->dims[2], sub_k = (int)b->dims[3];
  return (((size_t)(n / sub_n) * b->dims[1] + (size_t)(k / sub_k)) *
              (size_t)sub_n +
          (size_t)(n % sub_n)) *
             (size_t)sub_k +
         (size_t)(k % sub_k);
}

static size_t place_of_c(const rknn_matmul_tensor_attr* c, int m, int n) {
  return place_of_a(c, m, n);
}

/* ---- one product
 * -------------------------------------------------------------- */

struct product {
  rknn_matmul_info info;
  rknn_matmul_ctx ctx;
  rknn_matmul_io_attr attr;
  rknn_tensor_mem *a, *b, *c;
};

static struct product make(rknn_matmul_type type, int m, int k, int n,
                           rknn_matmul_layout b, rknn_matmul_layout ac) {
  struct product p;
  memset(&p, 0, sizeof p);
  p.info.M = m;
  p.info.K = k;
  p.info.N = n;
  p.info.type = type;
  p.info.B_layout = (int16_t)b;
  p.info.AC_layout = (int16_t)ac;
  return p;
}

static void create(struct product* p) {
  MUST(rknn_matmul_create(&p->ctx, &p->info, &p->attr));
  p->a = rknn_create_mem(p->ctx, p->attr.A.size);
  p->b = rknn_create_mem(p->ctx, p->attr.B.size);
  p->c = rknn_create_mem(p->ctx, p->attr.C.size);
  if (p->a == NULL || p->b == NULL || p->c == NULL) exit(2);
}

static void bind(struct product* p) {
  MUST(rknn_matmul_set_io_mem(p->ctx, p->a, &p->attr.A));
  MUST(rknn_matmul_set_io_mem(p->ctx, p->b, &p->attr.B));
  MUST(rknn_matmul_set_io_mem(p->ctx, p->c, &p->attr.C));
}

static void destroy(struct product* p) {
  MUST(rknn_destroy_mem(p->ctx, p->a));
  MUST(rknn_destroy_mem(p->ctx, p->b));
  MUST(rknn_destroy_mem(p->ctx, p->c));
  MUST(rknn_matmul_destroy(p->ctx));
}

/* What scales make of it; none: plain sums. */
struct scales {
  float a, c;
  int32_t a_zero, c_zero;
  const float* b;
  const int32_t* b_zero;
  int group; /* rows for each entry; 0: one for each column */
};

static void compare(const struct product* p, const struct scales* s) {
  const int m_count = p->info.M, k_count = p->info.K, n_count = p->info.N;
  int told = 0;
  for (int m = 0; m < m_count; ++m) {
    for (int n = 0; n < n_count; ++n) {
      double sum = 0, size = 0;
      for (int k = 0; k < k_count; ++k) {
        double a = number_at(p->attr.A.type, p->a->virt_addr,
                             place_of_a(&p->attr.A, m, k));
        double b = number_at(
            p->attr.B.type, p->b->virt_addr,
            place_of_b(&p->attr.B, (rknn_matmul_layout)p->info.B_layout, k, n));
        double product;
        if (s == NULL) {
          product = a * b;
        } else {
          const int entry = s->group == 0 ? n : k / s->group * n_count + n;
          product = (a - s->a_zero) * s->a *
                    (b - (s->b_zero == NULL ? 0 : s->b_zero[entry])) *
                    s->b[entry];
        }
        sum += product;
        size += fabs(product);
      }
      double most = 0; /* that it may be off */
      switch (p->attr.C.type) {
        case RKNN_TENSOR_INT8:
          if (s != NULL) sum = sum / s->c + s->c_zero;
          sum = sum < -128 ? -128 : sum > 127 ? 127 : sum;
          most = 0.5001; /* a tie may go either way */
          break;
        case RKNN_TENSOR_INT16:
          sum = sum < -32768 ? -32768 : sum > 32767 ? 32767 : sum;
          break;
        case RKNN_TENSOR_INT32:
          break;
        case RKNN_TENSOR_FLOAT16:
          most = fabs(sum) / 1024 + size * 1e-6;
          break;
        case RKNN_TENSOR_BFLOAT16:
          most = fabs(sum) / 128 + size * 1e-6;
          break;
        default:
          most = size * 1e-6;
      }
      const double got = number_at(p->attr.C.type, p->c->virt_addr,
                                   place_of_c(&p->attr.C, m, n));
      if (fabs(sum) > 65000 && p->attr.C.type == RKNN_TENSOR_FLOAT16) continue;
      if (fabs(got - sum) <= most) continue;
      ++faults;
      if (told++ > 2) continue;
      printf("%s, %dx%dx%d, B %d, A %d: row %d, column %d is %g, not %g\n",
             get_matmul_type_string(p->info.type), m_count, k_count, n_count,
             p->info.B_layout, p->info.AC_layout, m, n, got, sum);
    }
  }
}

static void multiply(rknn_matmul_type type, int m, int k, int n,
                     rknn_matmul_layout b, rknn_matmul_layout ac) {
  struct product p = make(type, m, k, n, b, ac);
  create(&p);
  EXPECT(strcmp(p.attr.A.name, "A") == 0 && strcmp(p.attr.C.name, "C") == 0);
  fill(p.attr.A.type, p.a->virt_addr, p.attr.A.size);
  bind(&p);
  /* After it was bound, as some do. */
  fill(p.attr.B.type, p.b->virt_addr, p.attr.B.size);
  MUST(rknn_matmul_run(p.ctx));
  compare(&p, NULL);
  /* Another B, and A in place. */
  rknn_tensor_mem* other = rknn_create_mem(p.ctx, p.attr.B.size);
  fill(p.attr.B.type, other->virt_addr, p.attr.B.size);
  MUST(rknn_matmul_set_io_mem(p.ctx, other, &p.attr.B));
  fill(p.attr.A.type, p.a->virt_addr, p.attr.A.size);
  MUST(rknn_matmul_run(p.ctx));
  rknn_tensor_mem* first = p.b;
  p.b = other;
  compare(&p, NULL);
  MUST(rknn_destroy_mem(p.ctx, first));
  destroy(&p);
}

static void every_type(const char* blocks) {
  static const rknn_matmul_type rk3588[] = {1, 2, 3, 4, 9, 10, 0};
  static const rknn_matmul_type rk3576[] = {1, 2, 4, 5, 6, 7, 8, 11, 12, 15, 0};
  static const rknn_matmul_type rk356x[] = {1, 2, 0};
  const rknn_matmul_type* types = strcmp(blocks, "rk3588") == 0   ? rk3588
                                  : strcmp(blocks, "rk3576") == 0 ? rk3576
                                                                  : rk356x;
  for (; *types != 0; ++types) {
    for (int b = 0; b < (types == rk356x ? 2 : 3); ++b) {
      for (int ac = 0; ac < 2; ++ac) {
        if (b == RKNN_MM_LAYOUT_TP_NORM && strcmp(blocks, "rk356x") == 0) {
          continue;
        }
        multiply(*types, 1, 64, 128, (rknn_matmul_layout)b,
                 (rknn_matmul_layout)ac);
        multiply(*types, 7, 96, 64, (rknn_matmul_layout)b,
                 (rknn_matmul_layout)ac);
      }
    }
  }
}

/* From rows to the native layout, by the library's own function. */
static void native_b(void) {
  struct product p = make(RKNN_INT8_MM_INT8_TO_INT32, 3, 8192 + 64, 64,
                          RKNN_MM_LAYOUT_NATIVE, RKNN_MM_LAYOUT_NORM);
  struct product rows = make(p.info.type, 3, p.info.K, 64, RKNN_MM_LAYOUT_NORM,
                             RKNN_MM_LAYOUT_NORM);
  create(&p);
  create(&rows);
  fill(RKNN_TENSOR_INT8, rows.a->virt_addr, rows.attr.A.size);
  fill(RKNN_TENSOR_INT8, rows.b->virt_addr, rows.attr.B.size);
  memcpy(p.a->virt_addr, rows.a->virt_addr, rows.attr.A.size);
  MUST(rknn_B_normal_layout_to_native_layout(rows.b->virt_addr, p.b->virt_addr,
                                             p.info.K, p.info.N, &p.info));
  bind(&p);
  bind(&rows);
  MUST(rknn_matmul_run(p.ctx));
  MUST(rknn_matmul_run(rows.ctx));
  compare(&rows, NULL);
  EXPECT(memcmp(p.c->virt_addr, rows.c->virt_addr, rows.attr.C.size) == 0);
  destroy(&p);
  destroy(&rows);
}

/* ---- scales
 * -------------------------------------------------------------------- */

static void set_scales(rknn_matmul_ctx ctx, const char* name,
                       const float* scale, const int32_t* zp, int count) {
  /* Gone right after the call, as the API allows. */
  float* scales = malloc((size_t)count * sizeof *scales);
  int32_t* zeros = malloc((size_t)count * sizeof *zeros);
  rknn_quant_params params;
  memset(&params, 0, sizeof params);
  strcpy(params.name, name);
  memcpy(scales, scale, (size_t)count * sizeof *scales);
  params.scale = scales;
  params.scale_len = count;
  if (zp != NULL) {
    memcpy(zeros, zp, (size_t)count * sizeof *zeros);
    params.zp = zeros;
    params.zp_len = count;
  }
  MUST(rknn_matmul_set_quant_params(ctx, &params));
  memset(scales, 0x7f, (size_t)count * sizeof *scales);
  memset(zeros, 0x7f, (size_t)count * sizeof *zeros);
  free(scales);
  free(zeros);
}

static void scaled(rknn_matmul_type type, int quantization, int group,
                   rknn_matmul_layout b) {
  float b_scale[64 * 4];
  int32_t b_zero[64 * 4];
  struct product p = make(type, 5, 128, 64, b, RKNN_MM_LAYOUT_NORM);
  p.info.B_quant_type = (int16_t)quantization;
  p.info.AC_quant_type = RKNN_QUANT_TYPE_PER_LAYER_ASYM;
  p.info.group_size = (int16_t)group;
  create(&p);
  fill(p.attr.A.type, p.a->virt_addr, p.attr.A.size);
  fill(p.attr.B.type, p.b->virt_addr, p.attr.B.size);
  bind(&p);
  const int asymmetric = quantization % 2;
  const int count = group == 0 ? quantization < 2 ? 1 : 64 : 64 * 128 / group;
  for (int i = 0; i < count; ++i) {
    b_scale[i] = 0.01f * (float)(i % 23 + 1);
    b_zero[i] = asymmetric ? i % 9 - 4 : 0;
  }
  struct scales s = {0.02f, 3.0f, 5, -7, b_scale, b_zero, group};
  set_scales(p.ctx, "A", &s.a, &s.a_zero, 1);
  set_scales(p.ctx, "B", b_scale, asymmetric ? b_zero : NULL, count);
  set_scales(p.ctx, "C", &s.c, type == 3 ? &s.c_zero : NULL, 1);
  if (type != 3) s.c = 1;
  for (int i = count; i < 64; ++i) {
    b_scale[i] = b_scale[0];
    b_zero[i] = b_zero[0];
  }
  MUST(rknn_matmul_run(p.ctx));
  compare(&p, &s);
  destroy(&p);
}

static void every_scale(void) {
  for (int b = 0; b < 3; ++b) {
    for (int quantization = 0; quantization < 4; ++quantization) {
      scaled(RKNN_INT8_MM_INT8_TO_INT8, quantization, 0, (rknn_matmul_layout)b);
      scaled(RKNN_INT8_MM_INT8_TO_FLOAT32, quantization, 0,
             (rknn_matmul_layout)b);
    }
    scaled(RKNN_INT8_MM_INT8_TO_FLOAT32, RKNN_QUANT_TYPE_PER_GROUP_SYM, 32,
           (rknn_matmul_layout)b);
    scaled(RKNN_INT8_MM_INT8_TO_FLOAT32, RKNN_QUANT_TYPE_PER_GROUP_ASYM, 64,
           (rknn_matmul_layout)b);
  }
  /* What is read back makes up what was set. */
  float scale[32], back[32], factor = 0;
  struct product p = make(RKNN_INT8_MM_INT8_TO_INT32, 1, 32, 32, 0, 0);
  p.info.B_quant_type = RKNN_QUANT_TYPE_PER_CHANNEL_SYM;
  create(&p);
  for (int i = 0; i < 32; ++i) scale[i] = 0.5f + (float)i;
  set_scales(p.ctx, "B", scale, NULL, 32);
  rknn_quant_params params;
  memset(&params, 0, sizeof params);
  params.scale = back;
  params.scale_len = 32;
  MUST(rknn_matmul_get_quant_params(p.ctx, &params, &factor));
  EXPECT(strcmp(params.name, "B") == 0 && params.scale_len == 32);
  for (int i = 0; i < 32; ++i) {
    EXPECT(fabsf(back[i] * factor - scale[i]) < 1e-4f && back[i] <= 1);
  }
  destroy(&p);
}

/* ---- listed shapes
 * -------------------------------------------------------------- */

static void listed_shapes(rknn_matmul_type type) {
  rknn_matmul_shape shapes[] = {{1, 64, 96}, {9, 64, 96}, {4, 64, 96}};
  rknn_matmul_io_attr attrs[3];
  struct product p = make(type, 0, 0, 0, RKNN_MM_LAYOUT_NORM, 0);
  MUST(rknn_matmul_create_dynamic_shape(&p.ctx, &p.info, 3, shapes, attrs));
  p.a = rknn_create_mem(p.ctx, attrs[1].A.size);
  p.b = rknn_create_mem(p.ctx, attrs[1].B.size);
  p.c = rknn_create_mem(p.ctx, attrs[1].C.size);
  fill(attrs[0].B.type, p.b->virt_addr, attrs[0].B.size);
  MUST(rknn_matmul_set_io_mem(p.ctx, p.b, &attrs[0].B));
  for (int turn = 0; turn < 7; ++turn) {
    const int i = turn % 3;
    p.attr = attrs[i];
    p.info.M = shapes[i].M;
    p.info.K = shapes[i].K;
    p.info.N = shapes[i].N;
    MUST(rknn_matmul_set_dynamic_shape(p.ctx, &shapes[i]));
    fill(p.attr.A.type, p.a->virt_addr, p.attr.A.size);
    MUST(rknn_matmul_set_io_mem(p.ctx, p.a, &p.attr.A));
    MUST(rknn_matmul_set_io_mem(p.ctx, p.c, &p.attr.C));
    MUST(rknn_matmul_run(p.ctx));
    compare(&p, NULL);
  }
  rknn_matmul_shape other = {2, 64, 96};
  EXPECT(rknn_matmul_set_dynamic_shape(p.ctx, &other) < 0);
  destroy(&p);
}

static void many_shapes(void) {
  static rknn_matmul_shape shapes[256];
  static rknn_matmul_io_attr attrs[256];
  struct product p = make(RKNN_INT8_MM_INT8_TO_FLOAT32, 0, 0, 0, 0, 0);
  for (int i = 0; i < 256; ++i) {
    shapes[i].M = i + 1;
    shapes[i].K = 64;
    shapes[i].N = 64;
  }
  MUST(rknn_matmul_create_dynamic_shape(&p.ctx, &p.info, 256, shapes, attrs));
  EXPECT(attrs[255].A.dims[0] == 256 && attrs[255].C.size == 256 * 64 * 4);
  MUST(rknn_matmul_destroy(p.ctx));
}

/* ---- over the daemon's death
 * ------------------------------------------------------ */

static void again(int times) {
  struct product p = make(RKNN_INT8_MM_INT8_TO_INT8, 2, 64, 64, 0, 0);
  create(&p);
  fill(RKNN_TENSOR_INT8, p.a->virt_addr, p.attr.A.size);
  fill(RKNN_TENSOR_INT8, p.b->virt_addr, p.attr.B.size);
  const float b = 0.5f;
  struct scales s = {1, 90, 0, 0, NULL, NULL, 0};
  float b_scale[64];
  for (int i = 0; i < 64; ++i) b_scale[i] = b;
  s.b = b_scale;
  set_scales(p.ctx, "B", &b, NULL, 1);
  set_scales(p.ctx, "C", &s.c, NULL, 1);
  bind(&p);
  MUST(rknn_matmul_set_core_mask(p.ctx, RKNN_NPU_CORE_0_1));
  for (int i = 0; i < times; ++i) {
    memset(p.c->virt_addr, 0x55, p.attr.C.size);
    MUST(rknn_matmul_run(p.ctx));
    compare(&p, &s);
    printf("run\n");
    fflush(stdout);
    if (i + 1 < times && getchar() == EOF) exit(2);
  }
  destroy(&p);
}

/* ---- what must be refused
 * ----------------------------------------------------------- */

static int refuses(rknn_matmul_info info) {
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr attr;
  return rknn_matmul_create(&ctx, &info, &attr) < 0;
}

static void wrong(void) {
  const struct product good =
      make(RKNN_INT8_MM_INT8_TO_INT8, 2, 64, 64, RKNN_MM_LAYOUT_NORM, 0);
  rknn_matmul_info info = good.info;
  EXPECT(!refuses(info));
#define REFUSED(field, value) \
  info = good.info;           \
  info.field = value;         \
  EXPECT(refuses(info))
  REFUSED(M, 0);
  REFUSED(M, -1);
  REFUSED(M, INT32_MAX);
  REFUSED(K, 0);
  REFUSED(K, 33);
  REFUSED(K, INT32_MAX);
  REFUSED(N, -32);
  REFUSED(N, 48);
  REFUSED(N, 1 << 20);
  REFUSED(type, (rknn_matmul_type)0);
  REFUSED(type, (rknn_matmul_type)13);
  REFUSED(type, (rknn_matmul_type)-1);
  REFUSED(type, RKNN_FLOAT16_MM_INT4_TO_FLOAT32); /* another chip's */
  REFUSED(B_layout, 3);
  REFUSED(B_layout, -1);
  REFUSED(AC_layout, 2);
  REFUSED(AC_layout, -1);
  REFUSED(B_quant_type, 6);
  REFUSED(B_quant_type, -1);
  REFUSED(AC_quant_type, 2);
  REFUSED(B_quant_type, RKNN_QUANT_TYPE_PER_GROUP_SYM); /* group_size 0 */

  struct product p = good;
  rknn_matmul_shape shape = {2, 64, 64};
  rknn_matmul_io_attr attr;
  EXPECT(rknn_matmul_create(NULL, &p.info, &attr) < 0);
  EXPECT(rknn_matmul_create(&p.ctx, NULL, &attr) < 0);
  EXPECT(rknn_matmul_create(&p.ctx, &p.info, NULL) < 0);
  EXPECT(rknn_matmul_create_dynamic_shape(&p.ctx, &p.info, 0, &shape, &attr) <
         0);
  EXPECT(rknn_matmul_create_dynamic_shape(&p.ctx, &p.info, -1, &shape, &attr) <
         0);
  EXPECT(rknn_matmul_create_dynamic_shape(&p.ctx, &p.info, 1, NULL, &attr) < 0);

  create(&p);
  EXPECT(rknn_matmul_run(p.ctx) < 0);
  rknn_matmul_tensor_attr named = p.attr.A;
  EXPECT(rknn_matmul_set_io_mem(p.ctx, NULL, &p.attr.A) < 0);
  EXPECT(rknn_matmul_set_io_mem(p.ctx, p.a, NULL) < 0);
  strcpy(named.name, "D");
  EXPECT(rknn_matmul_set_io_mem(p.ctx, p.a, &named) < 0);
  memset(named.name, 'A', sizeof named.name);
  EXPECT(rknn_matmul_set_io_mem(p.ctx, p.a, &named) < 0);
  rknn_tensor_mem* small = rknn_create_mem(p.ctx, p.attr.B.size - 1);
  EXPECT(rknn_matmul_set_io_mem(p.ctx, small, &p.attr.B) < 0);
  bind(&p);

  float scale[64];
  int32_t zp[64] = {0};
  for (int i = 0; i < 64; ++i) scale[i] = 1;
  rknn_quant_params params;
  memset(&params, 0, sizeof params);
  params.scale = scale;
  params.scale_len = 1;
  EXPECT(rknn_matmul_set_quant_params(p.ctx, &params) < 0); /* no name */
  strcpy(params.name, "B");
  params.scale_len = 64; /* it is one for the layer */
  EXPECT(rknn_matmul_set_quant_params(p.ctx, &params) < 0);
  params.scale_len = -1;
  EXPECT(rknn_matmul_set_quant_params(p.ctx, &params) < 0);
  params.scale_len = 1;
  params.zp = zp;
  params.zp_len = 2;
  EXPECT(rknn_matmul_set_quant_params(p.ctx, &params) < 0);
  params.zp_len = 1;
  zp[0] = 128;
  EXPECT(rknn_matmul_set_quant_params(p.ctx, &params) < 0);
  zp[0] = 1; /* symmetric */
  EXPECT(rknn_matmul_set_quant_params(p.ctx, &params) < 0);
  zp[0] = 0;
  scale[0] = NAN;
  EXPECT(rknn_matmul_set_quant_params(p.ctx, &params) < 0);
  scale[0] = -1;
  EXPECT(rknn_matmul_set_quant_params(p.ctx, &params) < 0);
  params.scale = NULL;
  EXPECT(rknn_matmul_set_quant_params(p.ctx, &params) < 0);
  EXPECT(rknn_matmul_set_quant_params(p.ctx, NULL) < 0);
  float factor = 0;
  EXPECT(rknn_matmul_get_quant_params(p.ctx, &params, &factor) < 0);
  EXPECT(rknn_matmul_set_dynamic_shape(p.ctx, NULL) < 0);
  EXPECT(rknn_matmul_set_core_mask(p.ctx, (rknn_core_mask)1234) < 0);
  EXPECT(rknn_B_normal_layout_to_native_layout(NULL, scale, 64, 64, &p.info) <
         0);
  EXPECT(rknn_B_normal_layout_to_native_layout(scale, scale, 63, 64, &p.info) <
         0);

  /* Nothing of that is left. */
  fill(RKNN_TENSOR_INT8, p.a->virt_addr, p.attr.A.size);
  fill(RKNN_TENSOR_INT8, p.b->virt_addr, p.attr.B.size);
  MUST(rknn_matmul_run(p.ctx));
  compare(&p, NULL);
  MUST(rknn_destroy_mem(p.ctx, small));
  destroy(&p);
  EXPECT(rknn_matmul_run(p.ctx) < 0);
  EXPECT(rknn_matmul_destroy(p.ctx) < 0);
  EXPECT(rknn_matmul_destroy(0) < 0);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (strcmp(argv[1], "scales") == 0) {
    every_scale();
  } else if (strcmp(argv[1], "shapes") == 0) {
    listed_shapes(RKNN_INT8_MM_INT8_TO_INT32);
    listed_shapes(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32);
    listed_shapes(RKNN_INT8_MM_INT8_TO_FLOAT32);
    many_shapes();
  } else if (strcmp(argv[1], "again") == 0 && argc == 3) {
    again(atoi(argv[2]));
  } else if (strcmp(argv[1], "wrong") == 0) {
    wrong();
  } else {
    every_type(argv[1]);
    if (strcmp(argv[1], "rk3588") == 0) native_b();
  }
  return faults == 0 ? 0 : 1;
}
