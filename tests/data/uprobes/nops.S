        .globl _start, calm, leaf, entry, many
        .text
_start: mov $300, %ebx
        mov $0x1122334455667788, %r11
1:      mov %ebx, %edi
        lea 7(%rbx), %rcx
        lea (%rbx,%rbx,2), %rax
        call calm
        add %rax, total(%rip)
        add %r11, total(%rip)
        call entry
        add %rax, total(%rip)
        call many
        add %rax, total(%rip)
        dec %ebx
        jnz 1b
        call leaf
        call leaf
        add %rax, total(%rip)
        mov $1, %eax
        mov $1, %edi
        lea total(%rip), %rsi
        mov $8, %edx
        syscall
        mov $60, %eax
        xor %edi, %edi
        syscall

        .type calm, @function
calm:   sub $40, %rsp
        mov %rdi, 8(%rsp)
        stc
calm_nop:
        .byte 0x0f, 0x1f, 0x44, 0, 0
        adc %rcx, %rax
        add %r11, %rax
        add 8(%rsp), %rax
        add $40, %rsp
        ret
        .size calm, . - calm

        .type entry, @function
entry:  .byte 0x0f, 0x1f, 0x44, 0, 0
        lea (%rdi,%rdi), %rax
        ret
        .size entry, . - entry

        .type many, @function
many:   .byte 0x66, 0x66, 0x66, 0x66, 0x90
        xor %eax, %eax
        .byte 0xf3, 0x66, 0x66, 0x66, 0x90
        lea 1(%rdi), %rax
        ret
        .size many, . - many

        .type leaf, @function
leaf:   mov %rdi, -8(%rsp)
        mov %rbx, -48(%rsp)
        .byte 0x0f, 0x1f, 0x44, 0, 0
        mov -8(%rsp), %rax
        add -48(%rsp), %rax
        ret
        .size leaf, . - leaf
        .bss
total:  .quad 0
