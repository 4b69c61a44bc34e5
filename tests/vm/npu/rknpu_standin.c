// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A stand-in for the NPU's kernel driver, for guests without an NPU. It offers
 * the interface of `rknpu` 0.9.8 (memory, PRIME, actions, submits) on DRM nodes
 * of its own, and hands submitted jobs to a process that computes them (npu.cc)
 * on the same memory. Written from a description of the interface.
 *
 * It is stricter than the hardware. Cached memory has two sides, and what one
 * writes reaches the other by MEM_SYNC alone; the NPU's side begins with
 * rubbish, and is poisoned when a buffer goes. What a real driver would suffer
 * in silence is counted in debugfs, in rknpu/standin:
 *   stale         tokens and handles that are not there
 *   outside       calls about memory beyond the end of a buffer
 *   crowded       two jobs for one core, or a gang beside others
 *   faults        jobs that the NPU could not compute
 * beside the number of calls of each kind, and what is there now.
 *
 * Faults on demand, as parameters in /sys/module/rknpu_standin/parameters: how
 * many of the next submits are to fail in a way. `injected` counts them.
 */
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_mm.h>
#include <drm/drm_prime.h>
#include <drm/drm_vma_manager.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "tests/vm/npu/standin.h"

/* --- the interface -------------------------------------------------------- */

struct npu_action {
  u32 flags, value;
};
struct npu_create {
  u32 handle, flags;
  u64 size, obj_addr, dma_addr, sram_size;
  s32 iommu_domain_id;
  u32 core_mask;
};
struct npu_map {
  u32 handle, reserved;
  u64 offset;
};
struct npu_destroy {
  u32 handle, reserved;
  u64 obj_addr;
};
struct npu_sync {
  u32 flags, reserved;
  u64 obj_addr, offset, size;
};
struct npu_range {
  u32 start, number;
};
struct npu_submit {
  u32 flags, timeout, task_start, task_number, task_counter;
  s32 priority;
  u64 task_obj_addr;
  u32 iommu_domain_id, reserved;
  u64 task_base_addr;
  s64 hw_elapse_time;
  u32 core_mask;
  s32 fence_fd;
  struct npu_range ranges[5];
};

enum { FLAG_CACHEABLE = 2, FLAG_KERNEL_MAPPING = 8, FLAG_SRAM = 0x100 };
enum { CALLS = 6 };

/* --- parameters ----------------------------------------------------------- */

static int hang, wrong_status, counter_zero, reset_under, lose_interrupt;
static int iommu_fault;             /* the NPU's access fails, and it stops */
static int reset_fails;             /* of the next that somebody asks for */
static int random_faults;           /* of 1000 submits */
static unsigned int dead_cores;     /* as bits: their jobs never end */
static unsigned int slowness = 500; /* the guest's NPU is that much slower */
static unsigned int sram_bytes;
module_param(hang, int, 0644);
module_param(wrong_status, int, 0644);
module_param(counter_zero, int, 0644);
module_param(reset_under, int, 0644);
module_param(lose_interrupt, int, 0644);
module_param(iommu_fault, int, 0644);
module_param(reset_fails, int, 0644);
module_param(random_faults, int, 0644);
module_param(dead_cores, uint, 0644);
module_param(slowness, uint, 0644);
module_param(sram_bytes, uint, 0644);

/* --- state ---------------------------------------------------------------- */

struct npu_bo {
  struct drm_gem_object base;
  struct list_head link;
  u64 number;
  u32 flags;
  void *cpu, *npu;     /* the same, unless it is cached */
  struct page** pages; /* of the NPU's side */
  struct drm_mm_node node;
  u64 sram;
};
#define to_bo(obj) container_of(obj, struct npu_bo, base)

struct npu_job {
  struct list_head link;
  struct standin_job about;
  bool taken, done, fault;
};

static struct drm_device* device;
static struct platform_device* platform;
static struct dentry* folder;
static DEFINE_MUTEX(lock); /* of all below */
static LIST_HEAD(buffers);
static LIST_HEAD(jobs); /* submitted, not done */
static struct drm_mm addresses;
static u64 next_number = 1, next_job = 1, resets;
static u32 busy;
static DECLARE_WAIT_QUEUE_HEAD(changed);
static u64 calls[CALLS], stale, outside, crowded, faults, hangs, injected;
static u64 live_bytes, used_sram;

static struct npu_bo* bo_of_token(u64 token) {
  struct npu_bo* bo;

  list_for_each_entry(bo, &buffers,
                      link) if ((u64)(uintptr_t)bo == token) return bo;
  stale++;
  return NULL;
}

/* --- memory --------------------------------------------------------------- */

static void bo_free(struct drm_gem_object* obj) {
  struct npu_bo* bo = to_bo(obj);

  mutex_lock(&lock);
  if (!list_empty(&bo->link)) {
    list_del(&bo->link);
    live_bytes -= obj->size;
    used_sram -= bo->sram;
  }
  if (drm_mm_node_allocated(&bo->node)) drm_mm_remove_node(&bo->node);
  mutex_unlock(&lock);
  if (obj->import_attach) {
    if (bo->npu) vunmap(bo->npu);
    drm_prime_gem_destroy(obj, NULL);
  } else {
    if (bo->npu) {
      memset(bo->npu, 0xdb, obj->size);
      vfree(bo->npu);
    }
    if (bo->cpu != bo->npu) vfree(bo->cpu);
  }
  kvfree(bo->pages);
  drm_gem_object_release(obj);
  kfree(bo);
}

static int bo_mmap(struct drm_gem_object* obj, struct vm_area_struct* vma) {
  struct npu_bo* bo = to_bo(obj);

  if (obj->import_attach) return -ENODEV;
  vma->vm_pgoff -= drm_vma_node_start(&obj->vma_node);
  return remap_vmalloc_range(vma, bo->cpu, vma->vm_pgoff);
}

static struct sg_table* bo_sg_table(struct drm_gem_object* obj) {
  struct npu_bo* bo = to_bo(obj);
  size_t i, count = obj->size >> PAGE_SHIFT;
  struct page** pages = kvcalloc(count, sizeof(*pages), GFP_KERNEL);
  struct sg_table* table;

  if (!pages) return ERR_PTR(-ENOMEM);
  for (i = 0; i < count; i++)
    pages[i] = vmalloc_to_page(bo->cpu + (i << PAGE_SHIFT));
  table = drm_prime_pages_to_sg(obj->dev, pages, count);
  kvfree(pages);
  return table;
}

static int bo_vmap(struct drm_gem_object* obj, struct iosys_map* map) {
  iosys_map_set_vaddr(map, to_bo(obj)->cpu);
  return 0;
}

static const struct vm_operations_struct bo_vm_ops = {
    .open = drm_gem_vm_open,
    .close = drm_gem_vm_close,
};

static const struct drm_gem_object_funcs bo_funcs = {
    .free = bo_free,
    .mmap = bo_mmap,
    .get_sg_table = bo_sg_table,
    .vmap = bo_vmap,
    .vm_ops = &bo_vm_ops,
};

/* A buffer with room among the addresses, not yet one of `buffers`. */
static struct npu_bo* bo_new(struct drm_device* dev, size_t size) {
  struct npu_bo* bo = kzalloc(sizeof(*bo), GFP_KERNEL);
  int error;

  if (!bo) return ERR_PTR(-ENOMEM);
  INIT_LIST_HEAD(&bo->link);
  bo->base.funcs = &bo_funcs;
  drm_gem_private_object_init(dev, &bo->base, size);
  bo->pages = kvcalloc(size >> PAGE_SHIFT, sizeof(*bo->pages), GFP_KERNEL);
  mutex_lock(&lock);
  /* One page between two: who leaves a buffer meets nothing. */
  error = drm_mm_insert_node_in_range(&addresses, &bo->node, size + PAGE_SIZE,
                                      PAGE_SIZE, 0, 0, 1ULL << 32,
                                      DRM_MM_INSERT_HIGH);
  mutex_unlock(&lock);
  if (!bo->pages || error) {
    drm_gem_object_put(&bo->base);
    return ERR_PTR(error ? -EFAULT : -ENOMEM);
  }
  return bo;
}

static void bo_publish(struct npu_bo* bo) {
  mutex_lock(&lock);
  bo->number = next_number++;
  live_bytes += bo->base.size;
  list_add_tail(&bo->link, &buffers);
  mutex_unlock(&lock);
}

static struct npu_bo* bo_create(struct drm_device* dev, u64 wanted, u32 flags) {
  size_t i, size = PAGE_ALIGN(wanted);
  struct npu_bo* bo;

  if (!wanted || wanted > (1ULL << 32))
    return ERR_PTR(wanted ? -EFAULT : -EINVAL);
  bo = bo_new(dev, size);
  if (IS_ERR(bo)) return bo;
  bo->flags = flags;
  bo->cpu = vmalloc_user(size);
  bo->npu = bo->cpu;
  if (bo->cpu && (flags & FLAG_CACHEABLE)) {
    bo->npu = vmalloc_user(size);
    if (bo->npu) memset(bo->npu, 0xa5, size);
  }
  if (!bo->cpu || !bo->npu) {
    drm_gem_object_put(&bo->base);
    return ERR_PTR(-ENOMEM);
  }
  for (i = 0; i < size >> PAGE_SHIFT; i++)
    bo->pages[i] = vmalloc_to_page(bo->npu + (i << PAGE_SHIFT));
  bo_publish(bo);
  return bo;
}

static struct drm_gem_object* import_table(struct drm_device* dev,
                                           struct dma_buf_attachment* attach,
                                           struct sg_table* table) {
  size_t size = PAGE_ALIGN(attach->dmabuf->size);
  struct npu_bo* bo = bo_new(dev, size);
  int error;

  if (IS_ERR(bo)) return ERR_CAST(bo);
  error = drm_prime_sg_to_page_array(table, bo->pages, size >> PAGE_SHIFT);
  if (!error)
    bo->npu = vmap(bo->pages, size >> PAGE_SHIFT, VM_MAP, PAGE_KERNEL);
  if (error || !bo->npu) {
    drm_gem_object_put(&bo->base);
    return ERR_PTR(error ? error : -ENOMEM);
  }
  bo->cpu = bo->npu;
  bo_publish(bo);
  return &bo->base;
}

/* --- calls ---------------------------------------------------------------- */

static int call_create(struct drm_device* dev, void* data,
                       struct drm_file* file) {
  struct npu_create* args = data;
  struct drm_gem_object* obj = NULL;
  struct npu_bo* bo;
  int error = 0;

  calls[2]++;
  if (args->handle) obj = drm_gem_object_lookup(file, args->handle);
  if (obj) {
    bo = to_bo(obj);
  } else {
    bo = bo_create(dev, args->size, args->flags);
    if (IS_ERR(bo)) return PTR_ERR(bo);
    obj = &bo->base;
    if ((args->flags & FLAG_SRAM) && sram_bytes) {
      mutex_lock(&lock);
      bo->sram = min3((u64)obj->size, (u64)sram_bytes - used_sram,
                      args->sram_size ? args->sram_size : ~0ULL);
      used_sram += bo->sram;
      mutex_unlock(&lock);
      memset(bo->cpu, 0x5a, bo->sram);
    }
    error = drm_gem_handle_create(file, obj, &args->handle);
  }
  args->size = obj->size;
  args->obj_addr = (u64)(uintptr_t)bo;
  args->dma_addr = bo->node.start;
  args->sram_size = bo->sram;
  drm_gem_object_put(obj);
  return error;
}

static int call_map(struct drm_device* dev, void* data, struct drm_file* file) {
  struct npu_map* args = data;

  calls[3]++;
  return drm_gem_dumb_map_offset(file, dev, args->handle, &args->offset);
}

static int call_destroy(struct drm_device* dev, void* data,
                        struct drm_file* file) {
  struct npu_destroy* args = data;
  int error = drm_gem_handle_delete(file, args->handle);

  calls[4]++;
  if (error) stale++;
  return error;
}

static int call_sync(struct drm_device* dev, void* data,
                     struct drm_file* file) {
  struct npu_sync* args = data;
  struct npu_bo* bo;
  int error = 0;

  mutex_lock(&lock);
  calls[5]++;
  bo = bo_of_token(args->obj_addr);
  if (!bo || !(bo->flags & FLAG_CACHEABLE)) {
    error = -EINVAL;
  } else if (args->offset > bo->base.size ||
             args->size > bo->base.size - args->offset) {
    outside++; /* the real one would go on beyond the end */
  } else {
    if (args->flags & 1)
      memcpy(bo->npu + args->offset, bo->cpu + args->offset, args->size);
    if (args->flags & 2)
      memcpy(bo->cpu + args->offset, bo->npu + args->offset, args->size);
  }
  mutex_unlock(&lock);
  return error;
}

static bool take(int* count) {
  if (*count <= 0) return false;
  --*count;
  return true;
}

static void reset_all(void) {
  mutex_lock(&lock);
  resets++;
  mutex_unlock(&lock);
  msleep(10);
  wake_up_all(&changed);
}

static int call_action(struct drm_device* dev, void* data,
                       struct drm_file* file) {
  struct npu_action* args = data;
  int error;

  calls[0]++;
  switch (args->flags) {
    case 0:
      args->value = 0x46495245;
      return 0;
    case 1:
      args->value = 908;
      return 0;
    case 2:
      args->value = 1000000000;
      return 0;
    case 6:
      mutex_lock(&lock);
      error = take(&reset_fails) ? -EIO : 0;
      mutex_unlock(&lock);
      if (!error) reset_all();
      return error;
    case 18:
      args->value = 1;
      return 0;
    case 22:
      args->value = sram_bytes;
      return 0;
    case 23:
      args->value = sram_bytes - used_sram;
      return 0;
    default:
      return -EINVAL;
  }
}

static int call_submit(struct drm_device* dev, void* data,
                       struct drm_file* file) {
  struct npu_submit* args = data;
  const u32 mask = args->core_mask;
  const int first = hweight32(mask) == 3 ? 2 : 0;
  struct npu_job* job;
  struct npu_bo* bo;
  u64 era;
  u32 i, counter;
  bool never, under, zero;
  long left;
  int error = 0;

  if (args->task_number == 0 || mask > 7) return -EINVAL;
  job = kzalloc(sizeof(*job), GFP_KERNEL);
  if (!job) return -ENOMEM;
  INIT_LIST_HEAD(&job->link);
  mutex_lock(&lock);
  calls[1]++;
  bo = bo_of_token(args->task_obj_addr);
  if (!bo || !(bo->flags & FLAG_KERNEL_MAPPING)) {
    if (bo) stale++;
    mutex_unlock(&lock);
    kfree(job);
    return -EINVAL;
  }
  drm_gem_object_get(&bo->base);
  never = mask == 0 || mask == 5 || mask == 6 || (mask & dead_cores) ||
          take(&hang) || take(&wrong_status) || take(&lose_interrupt) ||
          take(&iommu_fault);
  zero = !never && take(&counter_zero);
  under = !never && !zero && take(&reset_under);
  if (!never && random_faults && get_random_u32_below(1000) < random_faults) {
    switch (get_random_u32_below(3)) {
      case 0:
        never = true;
        break;
      case 1:
        zero = true;
        break;
      default:
        under = true;
    }
  }
  if ((busy & mask) || (hweight32(mask) > 1 && busy)) crowded++;
  busy |= mask;
  era = resets;
  job->about.id = next_job++;
  job->about.tasks = bo->node.start;
  job->about.core_mask = mask;
  for (i = 0; i < 3; i++) {
    if (!(mask & (1u << i))) continue;
    job->about.ranges[i].start = args->ranges[first + i].start;
    job->about.ranges[i].number = args->ranges[first + i].number;
    if (((u64)job->about.ranges[i].start + job->about.ranges[i].number) * 40 >
        bo->base.size)
      outside++;
  }
  if (never || zero || under) {
    hangs += never;
    injected++;
  } else {
    list_add_tail(&job->link, &jobs);
  }
  mutex_unlock(&lock);
  wake_up_all(&changed);

  counter = args->task_number;
  if (zero) {
    counter = 0;
  } else if (under) {
    reset_all();
    error = -EINVAL;
  } else if (never) {
    /* The hardware's time is not what is tested. */
    left = wait_event_timeout(changed, READ_ONCE(resets) != era,
                              msecs_to_jiffies(20));
    error = left ? -EINVAL : -ETIMEDOUT;
  } else {
    left = wait_event_timeout(changed,
                              READ_ONCE(job->done) || READ_ONCE(resets) != era,
                              msecs_to_jiffies(args->timeout * slowness));
    if (!READ_ONCE(job->done))
      error = left ? -EINVAL : -ETIMEDOUT;
    else if (job->fault)
      error = -ETIMEDOUT;
  }
  if (error == -ETIMEDOUT) reset_all();

  mutex_lock(&lock);
  /* Who computes it may still be at it: memory stays until it says so. */
  while (job->taken && !job->done) {
    mutex_unlock(&lock);
    wait_event(changed, READ_ONCE(job->done));
    mutex_lock(&lock);
  }
  list_del_init(&job->link);
  busy &= ~mask;
  mutex_unlock(&lock);
  drm_gem_object_put(&bo->base);
  args->task_counter = error ? 0 : counter;
  args->hw_elapse_time = 1000;
  kfree(job);
  return error;
}

#define CALL(number, type, function)                            \
  [number] = {.cmd = DRM_IOWR(DRM_COMMAND_BASE + number, type), \
              .func = function,                                 \
              .flags = DRM_RENDER_ALLOW,                        \
              .name = #function}
static const struct drm_ioctl_desc call_table[] = {
    CALL(0, struct npu_action, call_action),
    CALL(1, struct npu_submit, call_submit),
    CALL(2, struct npu_create, call_create),
    CALL(3, struct npu_map, call_map),
    CALL(4, struct npu_destroy, call_destroy),
    CALL(5, struct npu_sync, call_sync),
};

DEFINE_DRM_GEM_FOPS(npu_fops);

static const struct drm_driver npu_driver = {
    .driver_features = DRIVER_GEM | DRIVER_RENDER,
    .name = "rknpu",
    .desc = "RKNPU driver",
    .date = "20240828",
    .major = 0,
    .minor = 9,
    .patchlevel = 8,
    .fops = &npu_fops,
    .ioctls = call_table,
    .num_ioctls = ARRAY_SIZE(call_table),
    .gem_prime_import_sg_table = import_table,
};

/* --- the process that computes -------------------------------------------- */

static struct npu_job* next_free_job(void) {
  struct npu_job* job;

  list_for_each_entry(job, &jobs, link) if (!job->taken) return job;
  return NULL;
}

static bool has_free_job(void) {
  bool has;

  mutex_lock(&lock);
  has = next_free_job() != NULL;
  mutex_unlock(&lock);
  return has;
}

static long give_job(struct standin_job __user* to) {
  struct standin_job asked;
  struct standin_region* regions;
  struct npu_job* job;
  struct npu_bo* bo;
  u32 count = 0;
  long error = 0;

  if (copy_from_user(&asked, to, sizeof(asked))) return -EFAULT;
  regions = kvcalloc(STANDIN_MOST_REGIONS, sizeof(*regions), GFP_KERNEL);
  if (!regions) return -ENOMEM;
  do {
    error = wait_event_interruptible(changed, has_free_job());
    if (error) goto out;
    mutex_lock(&lock);
    job = next_free_job();
    if (job) {
      job->taken = true;
      list_for_each_entry(bo, &buffers, link) {
        if (count == STANDIN_MOST_REGIONS) break;
        regions[count].address = bo->node.start;
        regions[count].size = bo->base.size;
        regions[count].token = bo->number << PAGE_SHIFT;
        count++;
      }
      job->about.regions = asked.regions;
      job->about.region_count = count;
      asked = job->about;
    }
    mutex_unlock(&lock);
  } while (!job);
  if (copy_to_user((void __user*)(uintptr_t)asked.regions, regions,
                   count * sizeof(*regions)) ||
      copy_to_user(to, &asked, sizeof(asked)))
    error = -EFAULT;
out:
  kvfree(regions);
  return error;
}

static long end_job(const struct standin_done __user* from) {
  struct standin_done done;
  struct npu_job* job;

  if (copy_from_user(&done, from, sizeof(done))) return -EFAULT;
  mutex_lock(&lock);
  list_for_each_entry(job, &jobs, link) {
    if (job->about.id != done.id) continue;
    job->fault = done.fault != 0;
    faults += job->fault;
    WRITE_ONCE(job->done, true);
    break;
  }
  mutex_unlock(&lock);
  wake_up_all(&changed);
  return 0;
}

static long control_ioctl(struct file* file, unsigned int cmd,
                          unsigned long arg) {
  if (cmd == STANDIN_NEXT) return give_job((struct standin_job __user*)arg);
  if (cmd == STANDIN_DONE)
    return end_job((const struct standin_done __user*)arg);
  return -ENOTTY;
}

static int control_mmap(struct file* file, struct vm_area_struct* vma) {
  struct npu_bo* bo;
  int error = -EINVAL;

  mutex_lock(&lock);
  list_for_each_entry(bo, &buffers, link) {
    if (bo->number != vma->vm_pgoff) continue;
    error = vm_map_pages_zero(vma, bo->pages, bo->base.size >> PAGE_SHIFT);
    break;
  }
  mutex_unlock(&lock);
  return error;
}

/* A process that goes leaves no job behind. */
static int control_release(struct inode* inode, struct file* file) {
  struct npu_job* job;

  mutex_lock(&lock);
  list_for_each_entry(job, &jobs, link) {
    if (job->taken && !job->done) {
      job->fault = true;
      WRITE_ONCE(job->done, true);
    }
  }
  mutex_unlock(&lock);
  wake_up_all(&changed);
  return 0;
}

static const struct file_operations control_fops = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = control_ioctl,
    .mmap = control_mmap,
    .release = control_release,
};

static struct miscdevice control = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "rknpu_standin",
    .fops = &control_fops,
};

/* --- debugfs -------------------------------------------------------------- */

static int standin_show(struct seq_file* out, void* unused) {
  static const char* const names[CALLS] = {"action", "submit",  "create",
                                           "map",    "destroy", "sync"};
  struct npu_bo* bo;
  u32 i, count = 0;

  mutex_lock(&lock);
  list_for_each_entry(bo, &buffers, link) count++;
  for (i = 0; i < CALLS; i++) seq_printf(out, "%s %llu\n", names[i], calls[i]);
  seq_printf(out, "stale %llu\noutside %llu\ncrowded %llu\nfaults %llu\n",
             stale, outside, crowded, faults);
  seq_printf(out, "hangs %llu\ninjected %llu\nresets %llu\n", hangs, injected,
             resets);
  seq_printf(out, "buffers %u\nbytes %llu\nsram %llu\n", count, live_bytes,
             used_sram);
  mutex_unlock(&lock);
  return 0;
}
DEFINE_SHOW_ATTRIBUTE(standin);

static int driver_version_show(struct seq_file* out, void* unused) {
  seq_puts(out, "RKNPU driver: v0.9.8\n");
  return 0;
}
DEFINE_SHOW_ATTRIBUTE(driver_version);

static int load_show(struct seq_file* out, void* unused) {
  u32 now = READ_ONCE(busy), i;

  seq_puts(out, "NPU load: ");
  for (i = 0; i < 3; i++)
    seq_printf(out, " Core%u: %2u%%,", i, now >> i & 1 ? 100 : 0);
  seq_puts(out, "\n");
  return 0;
}
DEFINE_SHOW_ATTRIBUTE(load);

/* --- coming and going ----------------------------------------------------- */

static int __init standin_init(void) {
  int error;

  platform = platform_device_register_simple("fdab0000.npu",
                                             PLATFORM_DEVID_NONE, NULL, 0);
  if (IS_ERR(platform)) return PTR_ERR(platform);
  dma_coerce_mask_and_coherent(&platform->dev, DMA_BIT_MASK(40));
  drm_mm_init(&addresses, 1 << 20, (1ULL << 32) - (2 << 20));
  device = drm_dev_alloc(&npu_driver, &platform->dev);
  if (IS_ERR(device)) {
    error = PTR_ERR(device);
    goto no_device;
  }
  error = drm_dev_register(device, 0);
  if (error) goto no_nodes;
  error = misc_register(&control);
  if (error) goto no_control;
  folder = debugfs_create_dir("rknpu", NULL);
  debugfs_create_file("standin", 0444, folder, NULL, &standin_fops);
  debugfs_create_file("version", 0444, folder, NULL, &driver_version_fops);
  debugfs_create_file("load", 0444, folder, NULL, &load_fops);
  return 0;

no_control:
  drm_dev_unregister(device);
no_nodes:
  drm_dev_put(device);
no_device:
  platform_device_unregister(platform);
  return error;
}

static void __exit standin_exit(void) {
  debugfs_remove_recursive(folder);
  misc_deregister(&control);
  drm_dev_unregister(device);
  drm_dev_put(device);
  drm_mm_takedown(&addresses);
  platform_device_unregister(platform);
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Stand-in for the NPU's driver, for tests");
MODULE_IMPORT_NS(DMA_BUF);
