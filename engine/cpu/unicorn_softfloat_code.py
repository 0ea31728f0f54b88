"""Host machine code of `unicorn_softfloat`, with the instructions it was assembled from.

Called as Unicorn's own functions are (System V): the operands, what a fused one negates, and the
float_status, with the rounding mode at 1 and the flags at 2.
"""

from typing import Final

PLACE: Final = bytes.fromhex("1122334455667788")
"""Stands for the address of Unicorn's function."""

ADD64: Final = bytes.fromhex("f20f58c1")
"""addsd xmm0, xmm1: stands for the operation; its third byte says which."""

ADD32: Final = bytes.fromhex("f30f58c1")
"""addss xmm0, xmm1."""

TWO64: Final = bytes.fromhex(
    # two64:
    "0fb74201"  # movzx eax,word [rdx+0x1]
    "25ff200000"  # and eax,0x20ff
    "3d00200000"  # cmp eax,0x2000
    "7552"  # jne slow
    "49b80000000000002000"  # movabs r8,0x20000000000000
    "49b9000000000000c0ff"  # movabs r9,0xffc0<<48
    "488d043f"  # lea rax,[rdi+rdi*1]
    "4c29c0"  # sub rax,r8
    "4c39c8"  # cmp rax,r9
    "7332"  # jae slow
    "488d0436"  # lea rax,[rsi+rsi*1]
    "4c29c0"  # sub rax,r8
    "4c39c8"  # cmp rax,r9
    "7326"  # jae slow
    "66480f6ec7"  # movq xmm0,rdi
    "66480f6ece"  # movq xmm1,rsi
    "f20f58c1"  # addsd xmm0,xmm1
    "66480f7ec0"  # movq rax,xmm0
    "488d0c00"  # lea rcx,[rax+rax*1]
    "4d29c1"  # sub r9,r8
    "4c29c1"  # sub rcx,r8
    "4c29c1"  # sub rcx,r8
    "4c39c9"  # cmp rcx,r9
    "7301"  # jae slow
    "c3"  # ret
    # slow:
    "49bb1122334455667788"  # movabs r11,0x8877665544332211
    "41ffe3"  # jmp r11
)

TWO32: Final = bytes.fromhex(
    # two32:
    "0fb74201"  # movzx eax,word [rdx+0x1]
    "25ff200000"  # and eax,0x20ff
    "3d00200000"  # cmp eax,0x2000
    "7540"  # jne slow
    "8d043f"  # lea eax,[rdi+rdi*1]
    "2d00000001"  # sub eax,0x1000000
    "3d000000fe"  # cmp eax,0xfe000000
    "7331"  # jae slow
    "8d0436"  # lea eax,[rsi+rsi*1]
    "2d00000001"  # sub eax,0x1000000
    "3d000000fe"  # cmp eax,0xfe000000
    "7322"  # jae slow
    "660f6ec7"  # movd xmm0,edi
    "660f6ece"  # movd xmm1,esi
    "f30f58c1"  # addss xmm0,xmm1
    "660f7ec0"  # movd eax,xmm0
    "8d0c00"  # lea ecx,[rax+rax*1]
    "81e900000002"  # sub ecx,0x2000000
    "81f9000000fd"  # cmp ecx,0xfd000000
    "7301"  # jae slow
    "c3"  # ret
    # slow:
    "49bb1122334455667788"  # movabs r11,0x8877665544332211
    "41ffe3"  # jmp r11
)

ROOT64: Final = bytes.fromhex(
    # root64:
    "0fb74601"  # movzx eax,word [rsi+0x1]
    "25ff200000"  # and eax,0x20ff
    "3d00200000"  # cmp eax,0x2000
    "752e"  # jne slow
    "49b80000000000001000"  # movabs r8,0x10000000000000
    "49b9000000000000e07f"  # movabs r9,0x7fe0000000000000
    "4889f8"  # mov rax,rdi
    "4c29c0"  # sub rax,r8
    "4c39c8"  # cmp rax,r9
    "730f"  # jae slow
    "66480f6ec7"  # movq xmm0,rdi
    "f20f51c0"  # sqrtsd xmm0,xmm0
    "66480f7ec0"  # movq rax,xmm0
    "c3"  # ret
    # slow:
    "49bb1122334455667788"  # movabs r11,0x8877665544332211
    "41ffe3"  # jmp r11
)

ROOT32: Final = bytes.fromhex(
    # root32:
    "0fb74601"  # movzx eax,word [rsi+0x1]
    "25ff200000"  # and eax,0x20ff
    "3d00200000"  # cmp eax,0x2000
    "751a"  # jne slow
    "8d87000080ff"  # lea eax,[rdi-0x800000]
    "3d0000007f"  # cmp eax,0x7f000000
    "730d"  # jae slow
    "660f6ec7"  # movd xmm0,edi
    "f30f51c0"  # sqrtss xmm0,xmm0
    "660f7ec0"  # movd eax,xmm0
    "c3"  # ret
    # slow:
    "49bb1122334455667788"  # movabs r11,0x8877665544332211
    "41ffe3"  # jmp r11
)

FUSED64: Final = bytes.fromhex(
    # fused64:
    "410fb74001"  # movzx eax,word [r8+0x1]
    "25ff200000"  # and eax,0x20ff
    "3d00200000"  # cmp eax,0x2000
    "7568"  # jne slow
    "85c9"  # test ecx,ecx
    "7564"  # jne slow
    "49ba0000000000002000"  # movabs r10,0x20000000000000
    "49b9000000000000c0ff"  # movabs r9,0xffc0<<48
    "488d043f"  # lea rax,[rdi+rdi*1]
    "4c29d0"  # sub rax,r10
    "4c39c8"  # cmp rax,r9
    "7344"  # jae slow
    "488d0436"  # lea rax,[rsi+rsi*1]
    "4c29d0"  # sub rax,r10
    "4c39c8"  # cmp rax,r9
    "7338"  # jae slow
    "488d0412"  # lea rax,[rdx+rdx*1]
    "4c29d0"  # sub rax,r10
    "4c39c8"  # cmp rax,r9
    "732c"  # jae slow
    "66480f6ec7"  # movq xmm0,rdi
    "66480f6ece"  # movq xmm1,rsi
    "66480f6ed2"  # movq xmm2,rdx
    "c4e2f1a9c2"  # vfmadd213sd xmm0,xmm1,xmm2
    "66480f7ec0"  # movq rax,xmm0
    "4c8d1c00"  # lea r11,[rax+rax*1]
    "4d29d1"  # sub r9,r10
    "4d29d3"  # sub r11,r10
    "4d29d3"  # sub r11,r10
    "4d39cb"  # cmp r11,r9
    "7301"  # jae slow
    "c3"  # ret
    # slow:
    "49bb1122334455667788"  # movabs r11,0x8877665544332211
    "41ffe3"  # jmp r11
)

FUSED32: Final = bytes.fromhex(
    # fused32:
    "410fb74001"  # movzx eax,word [r8+0x1]
    "25ff200000"  # and eax,0x20ff
    "3d00200000"  # cmp eax,0x2000
    "755b"  # jne slow
    "85c9"  # test ecx,ecx
    "7557"  # jne slow
    "8d043f"  # lea eax,[rdi+rdi*1]
    "2d00000001"  # sub eax,0x1000000
    "3d000000fe"  # cmp eax,0xfe000000
    "7348"  # jae slow
    "8d0436"  # lea eax,[rsi+rsi*1]
    "2d00000001"  # sub eax,0x1000000
    "3d000000fe"  # cmp eax,0xfe000000
    "7339"  # jae slow
    "8d0412"  # lea eax,[rdx+rdx*1]
    "2d00000001"  # sub eax,0x1000000
    "3d000000fe"  # cmp eax,0xfe000000
    "732a"  # jae slow
    "660f6ec7"  # movd xmm0,edi
    "660f6ece"  # movd xmm1,esi
    "660f6ed2"  # movd xmm2,edx
    "c4e271a9c2"  # vfmadd213ss xmm0,xmm1,xmm2
    "660f7ec0"  # movd eax,xmm0
    "448d1c00"  # lea r11d,[rax+rax*1]
    "4181eb00000002"  # sub r11d,0x2000000
    "4181fb000000fd"  # cmp r11d,0xfd000000
    "7301"  # jae slow
    "c3"  # ret
    # slow:
    "49bb1122334455667788"  # movabs r11,0x8877665544332211
    "41ffe3"  # jmp r11
)

# int fuses(void): 1 if the processor has FMA and the system keeps its registers.
FUSES: Final = bytes.fromhex(
    # fuses:
    "53"  # push rbx
    "b801000000"  # mov eax,0x1
    "31c9"  # xor ecx,ecx
    "0fa2"  # cpuid
    "31c0"  # xor eax,eax
    "81e100100018"  # and ecx,0x18001000
    "81f900100018"  # cmp ecx,0x18001000
    "7511"  # jne out
    "31c9"  # xor ecx,ecx
    "0f01d0"  # xgetbv
    "83e006"  # and eax,0x6
    "83f806"  # cmp eax,0x6
    "0f94c0"  # sete al
    "0fb6c0"  # movzx eax,al
    # out:
    "5b"  # pop rbx
    "c3"  # ret
)
