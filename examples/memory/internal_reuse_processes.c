/* As internal_reuse.c, but the two networks are two processes': the first one
 * makes the memory and passes its descriptor, the second one brings it to its
 * own context. The vendor's runtime cannot do this: it does not know of the
 * other process, and runs would overlap. Here they take turns.
 *
 *   internal_reuse_processes MODEL_A MODEL_B */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "examples/memory/flow.h"

enum { kRuns = 5 };

/* The plain way to hand an open descriptor to another process. */
static void send_fd(int socket, int fd) {
  char byte = 0;
  struct iovec bytes = {&byte, 1};
  union {
    char space[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  struct msghdr message;
  memset(&message, 0, sizeof message);
  memset(&control, 0, sizeof control);
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.space;
  message.msg_controllen = sizeof control.space;
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(socket, &message, 0) != 1) fail("cannot pass the descriptor");
}

static int receive_fd(int socket) {
  char byte = 0;
  struct iovec bytes = {&byte, 1};
  union {
    char space[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  struct msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.space;
  message.msg_controllen = sizeof control.space;
  int fd = -1;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 ||
      CMSG_FIRSTHDR(&message) == NULL) {
    fail("no descriptor came");
  }
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

/* A process' part. The one that makes the memory makes it large enough for
 * both, which it is told by `at_least`. Returns whether all answers were the
 * same as the first. */
static int work(char* model, int socket, int makes_it) {
  rknn_context context = 0;
  struct tensors tensors;
  check(rknn_init(&context, model, 0, RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE, NULL),
        "rknn_init");
  const uint32_t needed = memory_of(context).total_internal_size;
  rknn_tensor_mem* internal = NULL;
  if (makes_it) {
    uint32_t others = 0;
    if (read(socket, &others, sizeof others) != sizeof others) {
      fail("the other process is gone");
    }
    internal =
        check_made(rknn_create_mem(context, needed > others ? needed : others),
                   "internal memory");
    send_fd(socket, internal->fd);
  } else {
    if (write(socket, &needed, sizeof needed) != sizeof needed) {
      fail("the other process is gone");
    }
    internal = check_made(
        rknn_create_mem_from_fd(context, receive_fd(socket), NULL, needed, 0),
        "the other process' memory");
  }
  check(rknn_set_internal_mem(context, internal), "rknn_set_internal_mem");

  bind_tensors(context, &tensors);
  const uint64_t first = run_once(context, &tensors);
  int same = 1;
  for (int i = 0; i < kRuns; ++i) {
    same = same && run_once(context, &tensors) == first;
  }
  free_tensors(context, &tensors);
  check(rknn_destroy_mem(context, internal), "rknn_destroy_mem");
  check(rknn_destroy(context), "rknn_destroy");
  return same;
}

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: internal_reuse_processes MODEL_A MODEL_B");
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    fail("no socket pair");
  }
  /* Before the first call of the API: each process has a session of its own. */
  const pid_t other = fork();
  if (other < 0) fail("cannot fork");
  if (other == 0) {
    close(pair[0]);
    return work(argv[2], pair[1], 0) ? 0 : 1;
  }
  close(pair[1]);
  const int same = work(argv[1], pair[0], 1);
  int status = 0;
  waitpid(other, &status, 0);
  printf("answers of this process: %s; of the other: %s\n",
         same ? "all the same" : "different",
         status == 0 ? "all the same" : "different");
  return same && status == 0 ? 0 : 1;
}
