.intel_syntax noprefix
// Copies of vectors, and what computes: where each byte of `to` comes from is known.
.globl _start
_start:
    lea rsi, [rip + from]
    lea rdi, [rip + to]
    vmovdqu ymm1, [rsi]
    vmovaps ymm2, ymm1
    vmovups [rdi], ymm2
    vmovss xmm3, dword ptr [rsi + 8]
    vmovss dword ptr [rdi + 32], xmm3
    vmovq xmm4, qword ptr [rsi + 16]
    vmovq qword ptr [rdi + 40], xmm4
    vmovd eax, xmm3
    mov [rdi + 48], eax
    vaddps ymm5, ymm1, ymm1
    vmovups [rdi + 64], ymm5
    vmovdqu xmm6, [rsi + 16]
    vmovups [rdi + 96], ymm6
cleared:
    vpxor xmm1, xmm1, xmm1
kept:
    addps xmm2, xmm2
    mov eax, 60
    xor edi, edi
    syscall
.data
.balign 64
from:
    .ascii "abcdefghijklmnopqrstuvwxyzABCDEF"
to:
    .zero 128
