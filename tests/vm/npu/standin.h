/* What the stand-in for the NPU's driver (rknpu_standin.c) and the process that
 * computes for it (npu.cc) say to each other on /dev/rknpu_standin. C, as the
 * module is. Ours, under the project's licence.
 */
#ifndef TESTS_VM_NPU_STANDIN_H_
#define TESTS_VM_NPU_STANDIN_H_

#include <linux/ioctl.h>
#include <linux/types.h>

#define STANDIN_MOST_REGIONS 512

/* Memory that the NPU sees. mmap of the file at `token` maps its side of it;
 * tokens are never used again. */
struct standin_region {
  __u64 address;
  __u64 size;
  __u64 token;
};

struct standin_range {
  __u32 start, number;
};

/* STANDIN_NEXT waits for one; `regions` is where they are written. */
struct standin_job {
  __u64 id;
  __u64 tasks; /* address of the task table */
  __u64 regions;
  __u32 region_count; /* in: room; out: how many */
  __u32 core_mask;
  struct standin_range ranges[3]; /* by core */
};

struct standin_done {
  __u64 id;
  __u32 fault; /* not 0: the program did what no NPU does; it never ends */
  __u32 reserved;
};

#define STANDIN_NEXT _IOWR('R', 1, struct standin_job)
#define STANDIN_DONE _IOW('R', 2, struct standin_done)

#endif
