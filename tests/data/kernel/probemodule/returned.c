// SPDX-License-Identifier: GPL-2.0
/*
 * A kretprobe of a user's own, in the spirit of Linux's kretprobe_example: an entry handler that
 * leaves kernel threads out, a data pouch with the time of the call, and fewer instances than
 * there are calls at a time. The first `dumps` hits print the
 * stack.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>

static int maxactive = 1;
module_param(maxactive, int, 0444);
static unsigned int dumps;
module_param(dumps, uint, 0644);

struct pouch {
	u64 entered;
};

static int __kprobes entered(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct pouch *pouch = (struct pouch *)instance->data;

	if (!current->mm)
		return 1;
	pouch->entered = ktime_get_ns();
	return 0;
}

static int returned(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct pouch *pouch = (struct pouch *)instance->data;

	pr_info("returned %d %d %llu\n", current->pid, (int)regs_return_value(regs),
		ktime_get_ns() - pouch->entered);
	if (dumps) {
		dumps--;
		dump_stack();
	}
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "do_nanosleep",
	.entry_handler = entered,
	.handler = returned,
	.data_size = sizeof(struct pouch),
};

static int __init start(void)
{
	int error;

	probe.maxactive = maxactive;
	error = register_kretprobe(&probe);
	pr_info("planted: %d\n", error);
	return error;
}

static void __exit stop(void)
{
	unregister_kretprobe(&probe);
	pr_info("missed %d\n", probe.nmissed);
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("A kretprobe with an entry handler and a data pouch");
MODULE_LICENSE("GPL");
