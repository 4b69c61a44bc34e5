/* The library is a good guest of its program: what is the process's own stays
 * as it was, nothing is printed on the standard output, and calls in an order
 * that programs have do no harm.
 *
 *   good_guest MODEL */

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/programs/sample.h"

extern char** environ;

static int open_descriptors(void) {
  DIR* const folder = opendir("/proc/self/fd");
  int count = 0;
  EXPECT(folder != NULL);
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static void count_signal(int number) { (void)number; }

/* What a host has of its own. */
struct host {
  struct sigaction actions[32];
  sigset_t mask;
  char locale[128];
  char* environment[512];
  size_t variables;
  mode_t umask_bits;
  int priority;
  char folder[4096];
};

static void look(struct host* host) {
  int number;
  memset(host, 0, sizeof *host);
  for (number = 1; number < 32; ++number) {
    EXPECT(sigaction(number, NULL, &host->actions[number]) == 0);
  }
  EXPECT(sigprocmask(SIG_SETMASK, NULL, &host->mask) == 0);
  strncpy(host->locale, setlocale(LC_ALL, NULL), sizeof host->locale - 1);
  while (environ[host->variables] != NULL && host->variables < 511) {
    host->environment[host->variables] = environ[host->variables];
    ++host->variables;
  }
  host->umask_bits = umask(0);
  umask(host->umask_bits);
  host->priority = getpriority(PRIO_PROCESS, 0);
  EXPECT(getcwd(host->folder, sizeof host->folder) != NULL);
}

static void expect_same(const struct host* a, const struct host* b) {
  int number;
  for (number = 1; number < 32; ++number) {
    EXPECT(a->actions[number].sa_handler == b->actions[number].sa_handler);
    EXPECT(a->actions[number].sa_flags == b->actions[number].sa_flags);
  }
  EXPECT(memcmp(&a->mask, &b->mask, sizeof a->mask) == 0);
  EXPECT(strcmp(a->locale, b->locale) == 0);
  EXPECT(a->variables == b->variables);
  EXPECT(memcmp(a->environment, b->environment, sizeof a->environment) == 0);
  EXPECT(a->umask_bits == b->umask_bits && a->priority == b->priority);
  EXPECT(strcmp(a->folder, b->folder) == 0);
}

/* Orders that programs have. */
static void use(const char* path) {
  rknn_context ctx = 0, other = 0;
  rknn_output output;
  rknn_tensor_attr in;
  rknn_tensor_mem *owner, *import;
  rknn_perf_detail detail;
  uint8_t* picture;
  uint32_t count = 0;
  EXPECT(rknn_init(&ctx, (void*)"/does/not/exist", 0, 0, NULL) < 0);
  EXPECT(rknn_destroy(0) < 0);
  EXPECT(rknn_destroy_mem(0, NULL) < 0);
  ctx = open_model(path, 0);
  other = open_model(path, 0);
  /* Released before anything was got, and NULL. */
  memset(&output, 0, sizeof output);
  CHECK(rknn_outputs_release(ctx, 1, &output));
  rknn_outputs_release(ctx, 1, NULL);
  in = get_attr(ctx, RKNN_QUERY_INPUT_ATTR, 0);
  picture = malloc(in.n_elems);
  EXPECT(picture != NULL);
  fill_picture(picture, in.n_elems, 1);
  free(infer(ctx, picture, in.n_elems, &count));
  /* Without RKNN_FLAG_COLLECT_PERF_MASK there is a text. */
  CHECK(rknn_query(ctx, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail));
  EXPECT(detail.perf_data != NULL);
  rknn_wait(ctx, NULL);
  /* Memory whose maker is gone before those who import it. */
  in.type = RKNN_TENSOR_UINT8;
  owner = rknn_create_mem(ctx, in.size_with_stride);
  EXPECT(owner != NULL);
  import = rknn_create_mem_from_fd(other, owner->fd, owner->virt_addr,
                                   owner->size, 0);
  EXPECT(import != NULL);
  CHECK(rknn_set_io_mem(other, import, &in));
  CHECK(rknn_destroy_mem(ctx, owner));
  CHECK(rknn_destroy(ctx));
  CHECK(rknn_run(other, NULL));
  CHECK(rknn_destroy_mem(other, import));
  CHECK(rknn_destroy(other));
  EXPECT(rknn_run(other, NULL) < 0);
  free(picture);
}

int main(int argc, char** argv) {
  static struct host before, after;
  char* const output = strdup("good_guest_XXXXXX");
  const int standard = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  int caught = -1, descriptors, round;
  EXPECT(argc == 2 && output != NULL && standard >= 0);
  /* Whatever is written to the standard output is caught. */
  caught = mkstemp(output);
  EXPECT(caught >= 0 && unlink(output) == 0);
  EXPECT(dup2(caught, STDOUT_FILENO) == STDOUT_FILENO);
  free(output);

  EXPECT(signal(SIGUSR1, count_signal) != SIG_ERR);
  EXPECT(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
  EXPECT(signal(SIGCHLD, count_signal) != SIG_ERR);
  setlocale(LC_ALL, "C.UTF-8");
  EXPECT(setenv("GOOD_GUEST", "1", 1) == 0);
  look(&before);
  use(argv[1]);
  look(&after);
  expect_same(&before, &after);
  /* The session stays open for the next context; nothing else does. */
  descriptors = open_descriptors();
  for (round = 0; round < 20; ++round) use(argv[1]);
  EXPECT(open_descriptors() == descriptors);

  EXPECT(fflush(stdout) == 0 && lseek(caught, 0, SEEK_END) == 0);
  EXPECT(dup2(standard, STDOUT_FILENO) == STDOUT_FILENO);
  close(standard);
  close(caught);
  printf("good guest: what is the process's own is as it was\n");
  return 0;
}
