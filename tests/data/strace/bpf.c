/* All commands of bpf(2), which nobody but the machine's owner may use: whole, short and long. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
#include <string.h>
#include <stdint.h>
#include <linux/bpf.h>

static union {
  unsigned char bytes[4096];
  uint32_t words[1024];
  uint64_t longs[512];
} given;
static char path[] = "/sys/fs/bpf/name of an object that is longer than what is shown";
static char log_of_it[64] = "what the verifier said";
static struct bpf_insn program[] = {{0xb7, 0, 0, 0, 1}, {0x95, 0, 0, 0, 0}, {0x63, 10, 1, -4, -1},
  {0x18, 1, 2, 0, 5}, {0x1d, 3, 11, 7, 9}, {0xe6, 1, 1, 1, 1}, {0xdc, 1, 0, 0, 16}, {0x07, 1, 0, 0, 3}};
static uint32_t ids[] = {7, 8, 9};
static char *symbols[] = {"vfs_read", "vfs_write"};
static uint64_t places[] = {0xffffffff81000000, 0};

static void call(int command, unsigned size) { syscall(SYS_bpf, command, &given, size); }

/* All sizes at which a kernel has added a field, and one with something unknown behind it. */
static void sizes(int command, const unsigned char *all) {
  for (; *all; all++)
    call(command, *all);
  given.bytes[200] = 0x41;
  call(command, 204);
  given.bytes[200] = 0;
}

static void maps(void) {
  memcpy(given.words, (uint32_t[]){1, 4, 8, 100, 5, 3, -1}, 28);
  memcpy(given.bytes + 28, "counts", 6);
  memcpy(given.words + 11, (uint32_t[]){1, 4, 5, 6, 7}, 20);
  given.longs[8] = 123456789;
  sizes(BPF_MAP_CREATE, (unsigned char *)"\x10\x11\x18\x1c\x20\x2c\x30\x3c\x40\x48");
  memset(given.bytes + 28, 'n', 16);
  given.words[0] = 99;
  given.words[4] = 0x80004000;
  given.words[6] = 2;
  call(BPF_MAP_CREATE, 48);
  given.words[4] = 0;
  call(BPF_MAP_CREATE, 40);
  memset(&given, 0, sizeof given);
  given.words[0] = 3;
  given.longs[1] = (uint64_t)ids;
  given.longs[3] = 4;
  sizes(BPF_MAP_LOOKUP_ELEM, (unsigned char *)"\x04\x18\x20");
  sizes(BPF_MAP_LOOKUP_AND_DELETE_ELEM, (unsigned char *)"\x20");
  given.longs[3] = 2;
  sizes(BPF_MAP_UPDATE_ELEM, (unsigned char *)"\x08\x20");
  given.longs[3] = 77;
  call(BPF_MAP_UPDATE_ELEM, 32);
  sizes(BPF_MAP_DELETE_ELEM, (unsigned char *)"\x10\x20");
  sizes(BPF_MAP_GET_NEXT_KEY, (unsigned char *)"\x18");
  call(BPF_MAP_FREEZE, 4);
  for (int i = 0; i < 7; i++)
    given.longs[i] = i < 4 ? 0x1000 * i : 0;
  given.words[8] = 5;
  given.words[9] = 4;
  given.longs[5] = 4;
  given.longs[6] = 1;
  sizes(BPF_MAP_LOOKUP_BATCH, (unsigned char *)"\x24\x38");
  sizes(BPF_MAP_LOOKUP_AND_DELETE_BATCH, (unsigned char *)"\x38");
  sizes(BPF_MAP_UPDATE_BATCH, (unsigned char *)"\x38");
  sizes(BPF_MAP_DELETE_BATCH, (unsigned char *)"\x38");
}

static void programs(void) {
  memset(&given, 0, sizeof given);
  given.words[0] = BPF_PROG_TYPE_KPROBE;
  given.words[1] = sizeof program / sizeof *program;
  given.longs[1] = (uint64_t)program;
  given.longs[2] = (uint64_t) "GPL";
  given.words[6] = 1;
  given.words[7] = sizeof log_of_it;
  given.longs[4] = (uint64_t)log_of_it;
  given.words[10] = 0x06010c;
  given.words[11] = 1;
  memcpy(given.bytes + 48, "watch", 5);
  given.words[16] = 0;
  given.words[17] = BPF_TRACE_KPROBE_MULTI;
  memcpy(given.words + 18, (uint32_t[]){3, 8, 0, 0, 1, 16, 0x1000, 0, 2, 11, 12}, 44);
  given.longs[15] = (uint64_t)ids;
  sizes(BPF_PROG_LOAD, (unsigned char *)"\x08\x18\x28\x2c\x30\x40\x44\x48\x70\x74\x78\x80");
  given.words[7] = 4;
  given.words[1] = 0;
  given.longs[2] = 0;
  call(BPF_PROG_LOAD, 48);
  given.words[7] = 0;
  given.longs[4] = 0;
  call(BPF_PROG_LOAD, 48);
  memcpy(given.words, (uint32_t[]){3, 4, 100, 5, 6}, 20);
  sizes(BPF_PROG_ATTACH, (unsigned char *)"\x10\x14");
  given.words[2] = 2;
  sizes(BPF_PROG_DETACH, (unsigned char *)"\x0c");
  memset(&given, 0, sizeof given);
  memcpy(given.words, (uint32_t[]){3, 1, 64, 128, 16, 0, 32, 0, 2, 3, 8, 9, 1, 0, 2, 0, 3, 1, 5}, 76);
  sizes(BPF_PROG_TEST_RUN, (unsigned char *)"\x20\x28\x40\x48\x4c");
  memset(&given, 0, sizeof given);
  memcpy(given.words, (uint32_t[]){1, 2, 24}, 12);
  for (int command = BPF_PROG_GET_NEXT_ID; command <= BPF_MAP_GET_FD_BY_ID; command++)
    sizes(command, (unsigned char *)"\x04\x08\x0c");
  sizes(BPF_BTF_GET_NEXT_ID, (unsigned char *)"\x0c");
  sizes(BPF_LINK_GET_NEXT_ID, (unsigned char *)"\x0c");
  sizes(BPF_LINK_GET_FD_BY_ID, (unsigned char *)"\x04");
  sizes(BPF_BTF_GET_FD_BY_ID, (unsigned char *)"\x04");
  given.longs[1] = 0x1000;
  sizes(BPF_OBJ_GET_INFO_BY_FD, (unsigned char *)"\x08\x10");
  memcpy(given.words, (uint32_t[]){3, 1, 1, 3}, 16);
  given.longs[2] = (uint64_t)ids;
  given.words[6] = 3;
  sizes(BPF_PROG_QUERY, (unsigned char *)"\x1c");
  given.words[6] = 0;
  call(BPF_PROG_QUERY, 28);
}

static void others(void) {
  memset(&given, 0, sizeof given);
  given.longs[0] = (uint64_t)path;
  given.words[2] = 3;
  given.words[3] = 8;
  sizes(BPF_OBJ_PIN, (unsigned char *)"\x0c\x10");
  given.longs[0] = 0;
  sizes(BPF_OBJ_GET, (unsigned char *)"\x10");
  given.longs[0] = (uint64_t) "sched_switch";
  sizes(BPF_RAW_TRACEPOINT_OPEN, (unsigned char *)"\x0c");
  given.longs[0] = (uint64_t)ids;
  given.longs[1] = (uint64_t)log_of_it;
  memcpy(given.words + 4, (uint32_t[]){12, 64, 1}, 12);
  sizes(BPF_BTF_LOAD, (unsigned char *)"\x1c");
  memset(&given, 0, sizeof given);
  memcpy(given.words, (uint32_t[]){1, 3, 0, 64}, 16);
  given.longs[2] = (uint64_t)log_of_it;
  memcpy(given.words + 6, (uint32_t[]){5, 4}, 8);
  given.longs[4] = 0x10;
  sizes(BPF_TASK_FD_QUERY, (unsigned char *)"\x30");
  memset(&given, 0, sizeof given);
  memcpy(given.words, (uint32_t[]){3, 4, 0, 1, 9}, 20);
  sizes(BPF_LINK_CREATE, (unsigned char *)"\x10\x14\x30");
  given.words[2] = BPF_PERF_EVENT;
  sizes(BPF_LINK_CREATE, (unsigned char *)"\x10\x18\x30");
  given.words[2] = BPF_TRACE_ITER;
  given.longs[2] = (uint64_t)ids;
  given.words[6] = 2;
  sizes(BPF_LINK_CREATE, (unsigned char *)"\x1c");
  given.words[2] = BPF_XDP;
  sizes(BPF_LINK_CREATE, (unsigned char *)"\x10\x1c");
  given.words[2] = BPF_TRACE_KPROBE_MULTI;
  given.words[4] = 1;
  given.words[5] = 2;
  given.longs[3] = (uint64_t)symbols;
  given.longs[4] = (uint64_t)places;
  sizes(BPF_LINK_CREATE, (unsigned char *)"\x30");
  memcpy(given.words, (uint32_t[]){3, 4, 0, 5}, 16);
  sizes(BPF_LINK_UPDATE, (unsigned char *)"\x10");
  given.words[2] = 4;
  sizes(BPF_LINK_UPDATE, (unsigned char *)"\x0c\x10");
  call(BPF_ENABLE_STATS, 4);
  call(BPF_LINK_DETACH, 4);
  call(999, 16);
  call(BPF_MAP_CREATE, 0);
  call(BPF_MAP_CREATE, 5000);
  syscall(SYS_bpf, BPF_MAP_CREATE, 0, 16);
  syscall(SYS_bpf, BPF_MAP_CREATE, 8, 16);
}

int main(void) {
  maps();
  programs();
  others();
  return 0;
}
