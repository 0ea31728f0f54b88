// SPDX-License-Identifier: GPL-2.0
/*
 * Kprobes of a user's own, in the spirit of Linux's kprobe_example: at a function's entry, inside
 * of one with a post handler, inside of one without (which becomes a jump), and a disabled one.
 * The first hits of each, as many as `dumps` says, print the stack.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

static unsigned int inside = 0x21;
module_param(inside, uint, 0444);
static unsigned int dumps;
module_param(dumps, uint, 0644);

struct watched {
	struct kprobe kp;
	unsigned int dumped;
};

static int __kprobes before(struct kprobe *p, struct pt_regs *regs)
{
	struct watched *one = container_of(p, struct watched, kp);

	pr_info("before %s %d %lx %lx\n", p->symbol_name, current->pid, regs->di, regs->dx);
	if (one->dumped < dumps) {
		one->dumped++;
		dump_stack();
	}
	return 0;
}

static void __kprobes behind(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	pr_info("behind %s %d %lx\n", p->symbol_name, current->pid, regs->dx);
}

static struct watched entry = {
	.kp = { .symbol_name = "kernel_clone", .pre_handler = before, .post_handler = behind }
};
static struct watched stepped = {
	.kp = { .symbol_name = "vfs_read", .pre_handler = before, .post_handler = behind }
};
static struct watched jumped = { .kp = { .symbol_name = "vfs_write", .pre_handler = before } };
static struct watched disabled = {
	.kp = { .symbol_name = "vfs_open", .pre_handler = before, .flags = KPROBE_FLAG_DISABLED }
};
static struct kprobe *all[] = { &entry.kp, &stepped.kp, &jumped.kp, &disabled.kp };

static int __init start(void)
{
	int error;

	stepped.kp.offset = inside;
	jumped.kp.offset = inside;
	error = register_kprobes(all, ARRAY_SIZE(all));
	pr_info("planted: %d\n", error);
	return error;
}

static void __exit stop(void)
{
	unregister_kprobes(all, ARRAY_SIZE(all));
	pr_info("missed %lu %lu %lu\n", entry.kp.nmissed, stepped.kp.nmissed,
		jumped.kp.nmissed);
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Kprobes with both handlers");
MODULE_LICENSE("GPL");
