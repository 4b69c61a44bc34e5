/* rknn_dup_context over the border of a process: a token names the network of a
 * context, and whoever has it makes a context of his own from it. No file, no
 * byte of the network is sent; weights exist once on the board.
 *
 *   model_token MODEL */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "examples/memory/flow.h"
#include "rknnd.h"

/* The other process: knows the token only, and gives its answer back. */
static int follow(int socket) {
  rknnd_token token;
  memset(&token, 0, sizeof token);
  if (read(socket, &token, sizeof token) != sizeof token) return 1;
  rknn_context context = 0;
  struct tensors tensors;
  check(rknnd_init_from_token(&context, &token), "rknnd_init_from_token");
  bind_tensors(context, &tensors);
  const uint64_t answer = run_once(context, &tensors);
  rknnd_memory memory;
  check(rknnd_query_memory(context, &memory, sizeof memory), "memory");
  printf(
      "another process has the network too: %llu bytes of weights on the "
      "board\n",
      (unsigned long long)memory.weight);
  fflush(stdout);
  if (write(socket, &answer, sizeof answer) != sizeof answer) return 1;
  free_tensors(context, &tensors);
  check(rknn_destroy(context), "rknn_destroy");
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: model_token MODEL");
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    fail("no socket pair");
  }
  const pid_t other = fork();
  if (other < 0) fail("cannot fork");
  if (other == 0) {
    close(pair[0]);
    return follow(pair[1]);
  }
  close(pair[1]);

  rknn_context context = 0;
  struct tensors tensors;
  check(rknn_init(&context, argv[1], 0, 0, NULL), "rknn_init");
  bind_tensors(context, &tensors);
  const uint64_t wanted = run_once(context, &tensors);

  rknnd_token token;
  check(rknnd_model_token(context, &token), "rknnd_model_token");
  printf("the token: %.20s...\n", token.text);
  uint64_t answer = 0;
  if (write(pair[0], &token, sizeof token) != sizeof token ||
      read(pair[0], &answer, sizeof answer) != sizeof answer) {
    fail("the other process is gone");
  }
  int status = 0;
  waitpid(other, &status, 0);
  const int same = answer == wanted && status == 0;
  printf("its answer is %s\n", same ? "the same" : "another");
  free_tensors(context, &tensors);
  check(rknn_destroy(context), "rknn_destroy");
  return same ? 0 : 1;
}
