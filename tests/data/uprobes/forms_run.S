/* Registers, flags and vectors with fixed values in front of an instruction, and kept behind it. */
	.set ST, 0x20000000
	.globl enter, epilogue
	.text
enter:
	mov %rdi, ST+0x0ff8
	fninit
	vzeroall
	mov $ST+0x2000, %rbx
	vmovdqu64 (%rbx), %zmm0
	vmovdqu64 64(%rbx), %zmm1
	vmovdqu64 128(%rbx), %zmm2
	vmovdqu64 192(%rbx), %zmm3
	vmovdqu64 256(%rbx), %zmm17
	vmovdqu64 256(%rbx), %zmm7
	mov $0xa5, %eax
	kmovq %rax, %k1
	not %rax
	kmovq %rax, %k2
	kmovw %eax, %k3
	fld1
	fldpi
	mov $0x5a, %r8d
	mov $ST+0x2400, %r9
	mov $0x1234567887654321, %r10
	mov $7, %r11d
	mov $ST+0x2480, %r12
	mov $0, %r13d
	mov $0x77, %r14d
	mov $0x0f0f, %r15d
	mov $ST+0x2800, %rbp
	mov $ST+0x2200, %rsi
	mov $ST+0x2300, %rdi
	mov $3, %ecx
	mov $0x5555, %edx
	mov $ST+0x4f00, %rsp
	mov ST+0x0ff0, %rax
	push %rax
	popfq
	mov $102, %eax
	jmp *ST+0x0ff8
epilogue:
	mov %rax, ST+0
	mov %rcx, ST+8
	mov %rdx, ST+16
	mov %rbx, ST+24
	mov %rsp, ST+32
	mov %rbp, ST+40
	mov %rsi, ST+48
	mov %rdi, ST+56
	mov %r8, ST+64
	mov %r9, ST+72
	mov %r10, ST+80
	mov %r11, ST+88
	mov %r12, ST+96
	mov %r13, ST+104
	mov %r14, ST+112
	mov %r15, ST+120
	mov $ST+0xf00, %rsp
	pushfq
	popq ST+128
	stmxcsr ST+136
	fxsave64 ST+0x200
	movq $0, ST+0x208
	kmovq %k0, %rax
	mov %rax, ST+144
	kmovq %k1, %rax
	mov %rax, ST+152
	kmovq %k2, %rax
	mov %rax, ST+160
	kmovq %k3, %rax
	mov %rax, ST+168
	vmovdqu64 %zmm0, ST+0x400
	vmovdqu64 %zmm1, ST+0x440
	vmovdqu64 %zmm2, ST+0x480
	vmovdqu64 %zmm3, ST+0x4c0
	vmovdqu64 %zmm7, ST+0x500
	vmovdqu64 %zmm17, ST+0x540
	vmovdqu64 %zmm18, ST+0x580
	mov $60, %eax
	xor %edi, %edi
	syscall
