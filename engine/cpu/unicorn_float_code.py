"""Host machine code for what `unicorn_float` computes, the instructions beside it.

`engine.cpu.unicorn_float` links it and says which of Unicorn's functions each routine is for.
They are called as Unicorn calls its own (System V): rdi is the CPUX86State, then come what the
function was given. Offsets into that structure, which a trial checks:

    0x0 regs, 0x98 cc_src, 0x25c fpstt, 0x260 fpus, 0x262 fpuc, 0x264 fptags (1 = empty),
    0x270 fpregs, 0x2f2 fpcs, 0x2f4 fpds, 0x2f8 fpip, 0x300 fpdp, 0x310 ft0, 0x330 mxcsr,
    0x338 xmm_regs.

Behind ft0's ten bytes are six that nobody uses: at 0x31a which kind of operand ft0 is (0 = the
stack register whose number is at 0x31b, 1 = float, 2 = double, 3 = int, 4 = none), at 0x31c
whether fpush came before.

A routine with an operation of x87 finds its code at r8: an instruction and ret. It goes one of
two ways. The light one, for masked exceptions and registers that are there, loads the operands
into the host's empty stack; everything else goes through `full`, which takes the guest's whole
x87 state to the host and back, so that what happens is what the processor does. In front of
the routines stand addresses of Unicorn's functions, under the names in brackets.
"""

from typing import Final

ROUTINES: Final = (
    (
        "pending",
        "488b1424"  # mov rdx,qword [rsp]
        "be10000000"  # mov esi,0x10
        "ff25a9ffffff",  # jmp qword [raise]
    ),
    (
        "full",
        "4881ec88000000"  # sub rsp,0x88
        "e8f5000000"  # call enter
        "41ffd1"  # call r9
        "dd3424"  # fnsave [rsp]
        "8b442404"  # mov eax,dword [rsp+0x4]
        "89c1"  # mov ecx,eax
        "c1e90b"  # shr ecx,0xb
        "83e107"  # and ecx,0x7
        "898f5c020000"  # mov dword [rdi+0x25c],ecx
        "25ffc70000"  # and eax,0xc7ff
        "66898760020000"  # mov word [rdi+0x260],ax
        "8b442408"  # mov eax,dword [rsp+0x8]
        "4189c0"  # mov r8d,eax
        "41d1e8"  # shr r8d,1
        "4421c0"  # and eax,r8d
        "2555550000"  # and eax,0x5555
        "4989c0"  # mov r8,rax
        "49c1e018"  # shl r8,0x18
        "4c09c0"  # or rax,r8
        "49b8ff000000ff000000"  # movabs r8,0xff000000ff
        "4c21c0"  # and rax,r8
        "4989c0"  # mov r8,rax
        "49c1e00c"  # shl r8,0xc
        "4c09c0"  # or rax,r8
        "49b80f000f000f000f00"  # movabs r8,0xf000f000f000f
        "4c21c0"  # and rax,r8
        "4989c0"  # mov r8,rax
        "49c1e006"  # shl r8,0x6
        "4c09c0"  # or rax,r8
        "49b80101010101010101"  # movabs r8,0x101010101010101
        "4c21c0"  # and rax,r8
        "48898764020000"  # mov qword [rdi+0x264],rax
        "4c8d44241c"  # lea r8,[rsp+0x1c]
        "89c8"  # mov eax,ecx
        "c1e004"  # shl eax,0x4
        "4d8b10"  # mov r10,qword [r8]
        "450fb75808"  # movzx r11d,word [r8+0x8]
        "4c89940770020000"  # mov qword [rdi+rax+0x270],r10
        "6644899c0778020000"  # mov word [rdi+rax+0x278],r11w
        "4983c00a"  # add r8,0xa
        "ffc1"  # inc ecx
        "83e107"  # and ecx,0x7
        "488d44246c"  # lea rax,[rsp+0x6c]
        "4939c0"  # cmp r8,rax
        "72cf"  # jb CCSRC+0x52
        "4881c488000000"  # add rsp,0x88
        "c3",  # ret
    ),
    (
        "partly",
        "4881ec88000000"  # sub rsp,0x88
        "e829000000"  # call enter
        "41ffd1"  # call r9
        "dd3424"  # fnsave [rsp]
        "8b442404"  # mov eax,dword [rsp+0x4]
        "25ffc70000"  # and eax,0xc7ff
        "66898760020000"  # mov word [rdi+0x260],ax
        "4881c488000000"  # add rsp,0x88
        "0fb78f62020000"  # movzx ecx,word [rdi+0x262]
        "f7d1"  # not ecx
        "21c1"  # and ecx,eax
        "c3",  # ret
    ),
    (
        "enter",
        "0fb78762020000"  # movzx eax,word [rdi+0x262]
        "4889442408"  # mov qword [rsp+0x8],rax
        "0fb78760020000"  # movzx eax,word [rdi+0x260]
        "257f470000"  # and eax,0x477f
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "83e107"  # and ecx,0x7
        "4189c8"  # mov r8d,ecx
        "41c1e00b"  # shl r8d,0xb
        "4409c0"  # or eax,r8d
        "488944240c"  # mov qword [rsp+0xc],rax
        "488b8764020000"  # mov rax,qword [rdi+0x264]
        "488d0440"  # lea rax,[rax+rax*2]
        "4989c0"  # mov r8,rax
        "49c1e806"  # shr r8,0x6
        "4c09c0"  # or rax,r8
        "49b80f000f000f000f00"  # movabs r8,0xf000f000f000f
        "4c21c0"  # and rax,r8
        "4989c0"  # mov r8,rax
        "49c1e80c"  # shr r8,0xc
        "4c09c0"  # or rax,r8
        "49b8ff000000ff000000"  # movabs r8,0xff000000ff
        "4c21c0"  # and rax,r8
        "4989c0"  # mov r8,rax
        "49c1e818"  # shr r8,0x18
        "4409c0"  # or eax,r8d
        "0fb7c0"  # movzx eax,ax
        "4889442410"  # mov qword [rsp+0x10],rax
        "48c744241800000000"  # mov qword [rsp+0x18],0x0
        "c744242000000000"  # mov dword [rsp+0x20],0x0
        "4c8d442424"  # lea r8,[rsp+0x24]
        "89c8"  # mov eax,ecx
        "c1e004"  # shl eax,0x4
        "4c8b940770020000"  # mov r10,qword [rdi+rax+0x270]
        "448b9c0778020000"  # mov r11d,dword [rdi+rax+0x278]
        "4d8910"  # mov qword [r8],r10
        "6645895808"  # mov word [r8+0x8],r11w
        "4983c00a"  # add r8,0xa
        "ffc1"  # inc ecx
        "83e107"  # and ecx,0x7
        "488d442474"  # lea rax,[rsp+0x74]
        "4939c0"  # cmp r8,rax
        "72d0"  # jb enter+0x91
        "dd642408"  # frstor [rsp+0x8]
        "c3",  # ret
    ),
    (
        "clean",
        "440fb79f60020000"  # movzx r11d,word [rdi+0x260]
        "dfe0"  # fnstsw ax
        "4589da"  # mov r10d,r11d
        "41f7d2"  # not r10d
        "4421d0"  # and eax,r10d
        "a83f"  # test al,0x3f
        "7402"  # je clean+0x19
        "dbe2"  # fnclex
        "6681bf620200007f03"  # cmp word [rdi+0x262],0x37f
        "7406"  # je clean+0x2a
        "d9af62020000"  # fldcw word [rdi+0x262]
        "c3",  # ret
    ),
    (
        "settle",
        "253f020000"  # and eax,0x23f
        "4181e3fffd0000"  # and r11d,0xfdff
        "4409d8"  # or eax,r11d
        "66898760020000"  # mov word [rdi+0x260],ax
        "6681bf620200007f03"  # cmp word [rdi+0x262],0x37f
        "7406"  # je REGS
        "d92dd0fdffff"  # fldcw word [cw]
        "c3",  # ret
    ),
    (
        "arith",
        "0fb6871a030000"  # movzx eax,byte [rdi+0x31a]
        "488d9710030000"  # lea rdx,[rdi+0x310]
        "85c0"  # test eax,eax
        "757a"  # jne pair+0x17
        "0fb6871b030000"  # movzx eax,byte [rdi+0x31b]
        "4d8d0c80"  # lea r9,[r8+rax*4]
        "8a8762020000"  # mov al,byte [rdi+0x262]
        "243f"  # and al,0x3f
        "3c3f"  # cmp al,0x3f
        "0f85b9fdffff"  # jne full
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "0f85a5fdffff"  # jne full
        "0fb6871b030000"  # movzx eax,byte [rdi+0x31b]
        "01c8"  # add eax,ecx
        "83e007"  # and eax,0x7
        "80bc076402000000"  # cmp byte [rdi+rax+0x264],0x0
        "0f858bfdffff"  # jne full
        "4d8d4804"  # lea r9,[r8+0x4]
        "c1e004"  # shl eax,0x4
        "488d940770020000"  # lea rdx,[rdi+rax+0x270]
        "c1e104"  # shl ecx,0x4
        "488d8c0f70020000",  # lea rcx,[rdi+rcx+0x270]
    ),
    (
        "pair",
        "e833ffffff"  # call clean
        "db2a"  # fld tbyte [rdx]
        "db29"  # fld tbyte [rcx]
        "41ffd1"  # call r9
        "dfe0"  # fnstsw ax
        "db39"  # fstp tbyte [rcx]
        "ddd8"  # fstp st(0)
        "e94cffffff"  # jmp settle
        "4d8d4c801c"  # lea r9,[r8+rax*4+0x1c]
        "8a8762020000"  # mov al,byte [rdi+0x262]
        "243f"  # and al,0x3f
        "3c3f"  # cmp al,0x3f
        "0f8545fdffff"  # jne full
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "0f8531fdffff"  # jne full
        "c1e104"  # shl ecx,0x4
        "488d8c0f70020000",  # lea rcx,[rdi+rcx+0x270]
    ),
    (
        "single",
        "e8e8feffff"  # call clean
        "db29"  # fld tbyte [rcx]
        "41ffd1"  # call r9
        "dfe0"  # fnstsw ax
        "db39"  # fstp tbyte [rcx]
        "e905ffffff",  # jmp settle
    ),
    (
        "upon",
        "83e607"  # and esi,0x7
        "4d8d4cb02c"  # lea r9,[r8+rsi*4+0x2c]
        "8a8762020000"  # mov al,byte [rdi+0x262]
        "243f"  # and al,0x3f
        "3c3f"  # cmp al,0x3f
        "0f85fbfcffff"  # jne full
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "0f85e7fcffff"  # jne full
        "01ce"  # add esi,ecx
        "83e607"  # and esi,0x7
        "80bc376402000000"  # cmp byte [rdi+rsi+0x264],0x0
        "0f85d4fcffff"  # jne full
        "4d8d4804"  # lea r9,[r8+0x4]
        "c1e104"  # shl ecx,0x4
        "488d940f70020000"  # lea rdx,[rdi+rcx+0x270]
        "c1e604"  # shl esi,0x4
        "488d8c3770020000"  # lea rcx,[rdi+rsi+0x270]
        "e944ffffff",  # jmp pair
    ),
    (
        "compare",
        "0fb6871a030000"  # movzx eax,byte [rdi+0x31a]
        "488d9710030000"  # lea rdx,[rdi+0x310]
        "85c0"  # test eax,eax
        "7572"  # jne compare+0x84
        "0fb6871b030000"  # movzx eax,byte [rdi+0x31b]
        "4d8d0c80"  # lea r9,[r8+rax*4]
        "8a8762020000"  # mov al,byte [rdi+0x262]
        "243f"  # and al,0x3f
        "3c3f"  # cmp al,0x3f
        "0f8588fcffff"  # jne full
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "0f8574fcffff"  # jne full
        "0fb6871b030000"  # movzx eax,byte [rdi+0x31b]
        "01c8"  # add eax,ecx
        "83e007"  # and eax,0x7
        "80bc076402000000"  # cmp byte [rdi+rax+0x264],0x0
        "0f855afcffff"  # jne full
        "4d8d4804"  # lea r9,[r8+0x4]
        "c1e004"  # shl eax,0x4
        "488d940770020000"  # lea rdx,[rdi+rax+0x270]
        "c1e104"  # shl ecx,0x4
        "e80afeffff"  # call clean
        "db2a"  # fld tbyte [rdx]
        "dbac0f70020000"  # fld tbyte [rdi+rcx+0x270]
        "41ffd1"  # call r9
        "dfe0"  # fnstsw ax
        "ddd8"  # fstp st(0)
        "eb3d"  # jmp compare+0xc1
        "4d8d4c801c"  # lea r9,[r8+rax*4+0x1c]
        "8a8762020000"  # mov al,byte [rdi+0x262]
        "243f"  # and al,0x3f
        "3c3f"  # cmp al,0x3f
        "0f851cfcffff"  # jne full
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "0f8508fcffff"  # jne full
        "c1e104"  # shl ecx,0x4
        "e8c7fdffff"  # call clean
        "dbac0f70020000"  # fld tbyte [rdi+rcx+0x270]
        "41ffd1"  # call r9
        "dfe0"  # fnstsw ax
        "ddd8"  # fstp st(0)
        "253f470000"  # and eax,0x473f
        "4181e3ffb80000"  # and r11d,0xb8ff
        "4109c3"  # or r11d,eax
        "e9d0fdffff",  # jmp settle
    ),
    (
        "flagged",
        "0fb6871b030000"  # movzx eax,byte [rdi+0x31b]
        "4d8d0c80"  # lea r9,[r8+rax*4]
        "8a8762020000"  # mov al,byte [rdi+0x262]
        "243f"  # and al,0x3f
        "3c3f"  # cmp al,0x3f
        "7572"  # jne flagged+0x89
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "7562"  # jne flagged+0x89
        "0fb6871b030000"  # movzx eax,byte [rdi+0x31b]
        "01c8"  # add eax,ecx
        "83e007"  # and eax,0x7
        "80bc076402000000"  # cmp byte [rdi+rax+0x264],0x0
        "754c"  # jne flagged+0x89
        "4d8d4804"  # lea r9,[r8+0x4]
        "c1e004"  # shl eax,0x4
        "488d940770020000"  # lea rdx,[rdi+rax+0x270]
        "c1e104"  # shl ecx,0x4
        "e851fdffff"  # call clean
        "db2a"  # fld tbyte [rdx]
        "dbac0f70020000"  # fld tbyte [rdi+rcx+0x270]
        "41ffd1"  # call r9
        "9f"  # lahf
        "0fb6cc"  # movzx ecx,ah
        "dfe0"  # fnstsw ax
        "ddd8"  # fstp st(0)
        "ddd8"  # fstp st(0)
        "83e145"  # and ecx,0x45
        "48898f98000000"  # mov qword [rdi+0x98],rcx
        "83e03f"  # and eax,0x3f
        "4589da"  # mov r10d,r11d
        "4181e200020000"  # and r10d,0x200
        "4409d0"  # or eax,r10d
        "e947fdffff"  # jmp settle
        "4883ec18"  # sub rsp,0x18
        "4c890c24"  # mov qword [rsp],r9
        "4c8d0d1b000000"  # lea r9,[full_flags+0xa]
        "e80c000000"  # call full_flags
        "4883c418"  # add rsp,0x18
        "48899798000000"  # mov qword [rdi+0x98],rdx
        "c3",  # ret
    ),
    (
        "full_flags",
        "488b542408"  # mov rdx,qword [rsp+0x8]
        "e92bfbffff"  # jmp full
        "ffd2"  # call rdx
        "9f"  # lahf
        "0fb6d4"  # movzx edx,ah
        "83e245"  # and edx,0x45
        "c3",  # ret
    ),
    (
        "load",
        "4889b710030000"  # mov qword [rdi+0x310],rsi
        "488d9710030000",  # lea rdx,[rdi+0x310]
    ),
    (
        "push",
        "4d89c1"  # mov r9,r8
        "c6871c03000000"  # mov byte [rdi+0x31c],0x0
        "8a8762020000"  # mov al,byte [rdi+0x262]
        "243f"  # and al,0x3f
        "3c3f"  # cmp al,0x3f
        "0f85f9faffff"  # jne full
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "ffc9"  # dec ecx
        "83e107"  # and ecx,0x7
        "80bc0f6402000001"  # cmp byte [rdi+rcx+0x264],0x1
        "0f85e0faffff"  # jne full
        "e8a2fcffff"  # call clean
        "41ffd1"  # call r9
        "dfe0"  # fnstsw ax
        "898f5c020000"  # mov dword [rdi+0x25c],ecx
        "c6840f6402000000"  # mov byte [rdi+rcx+0x264],0x0
        "c1e104"  # shl ecx,0x4
        "dbbc0f70020000"  # fstp tbyte [rdi+rcx+0x270]
        "e9abfcffff",  # jmp settle
    ),
    (
        "store",
        "4d89c1"  # mov r9,r8
        "4883ec18"  # sub rsp,0x18
        "4889e2"  # mov rdx,rsp
        "8a8762020000"  # mov al,byte [rdi+0x262]
        "243f"  # and al,0x3f
        "3c3f"  # cmp al,0x3f
        "7532"  # jne store+0x48
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "7522"  # jne store+0x48
        "c1e104"  # shl ecx,0x4
        "e852fcffff"  # call clean
        "dbac0f70020000"  # fld tbyte [rdi+rcx+0x270]
        "41ffd1"  # call r9
        "dfe0"  # fnstsw ax
        "e86cfcffff"  # call settle
        "488b0424"  # mov rax,qword [rsp]
        "4883c418"  # add rsp,0x18
        "c3"  # ret
        "e838fbffff"  # call partly
        "f6c11f"  # test cl,0x1f
        "488b0424"  # mov rax,qword [rsp]
        "488d642418"  # lea rsp,[rsp+0x18]
        "0f854bfaffff"  # jne pending
        "c3",  # ret
    ),
    (
        "whole",
        "4d89c1"  # mov r9,r8
        "e951faffff",  # jmp full
    ),
    (
        "unary",
        "4d89c1"  # mov r9,r8
        "8a8762020000"  # mov al,byte [rdi+0x262]
        "243f"  # and al,0x3f
        "3c3f"  # cmp al,0x3f
        "0f853efaffff"  # jne full
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "0f852afaffff"  # jne full
        "c1e104"  # shl ecx,0x4
        "488d8c0f70020000"  # lea rcx,[rdi+rcx+0x270]
        "e9f4fcffff",  # jmp single
    ),
    (
        "pushing",
        "c6871c03000001",  # mov byte [rdi+0x31c],0x1
    ),
    (
        "nothing",
        "c3",  # ret
    ),
    (
        "freeing",
        "03b75c020000"  # add esi,dword [rdi+0x25c]
        "83e607"  # and esi,0x7
        "c684376402000001"  # mov byte [rdi+rsi+0x264],0x1
        "6681a760020000fffd"  # and word [rdi+0x260],0xfdff
        "c3",  # ret
    ),
    (
        "copy",
        "83e607"  # and esi,0x7
        "4d8d4cb020"  # lea r9,[r8+rsi*4+0x20]
        "80bf1c03000000"  # cmp byte [rdi+0x31c],0x0
        "c6871c03000000"  # mov byte [rdi+0x31c],0x0
        "0f84dbf9ffff"  # je full
        "ffce"  # dec esi
        "83e607"  # and esi,0x7
        "4d8d0cb0"  # lea r9,[r8+rsi*4]
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "01ce"  # add esi,ecx
        "83e607"  # and esi,0x7
        "ffc9"  # dec ecx
        "83e107"  # and ecx,0x7
        "80bc376402000000"  # cmp byte [rdi+rsi+0x264],0x0
        "0f85b4f9ffff"  # jne full
        "80bc0f6402000001"  # cmp byte [rdi+rcx+0x264],0x1
        "0f85a6f9ffff"  # jne full
        "c1e604"  # shl esi,0x4
        "f30f6f843770020000"  # movdqu xmm0,[rdi+rsi+0x270]
        "898f5c020000"  # mov dword [rdi+0x25c],ecx
        "c6840f6402000000"  # mov byte [rdi+rcx+0x264],0x0
        "c1e104"  # shl ecx,0x4
        "f30f7f840f70020000"  # movdqu [rdi+rcx+0x270],xmm0
        "6681a760020000fffd"  # and word [rdi+0x260],0xfdff
        "c3",  # ret
    ),
    (
        "assign",
        "83e607"  # and esi,0x7
        "4d8d0cb0"  # lea r9,[r8+rsi*4]
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "0f855bf9ffff"  # jne full
        "01ce"  # add esi,ecx
        "83e607"  # and esi,0x7
        "c684376402000000"  # mov byte [rdi+rsi+0x264],0x0
        "c1e104"  # shl ecx,0x4
        "f30f6f840f70020000"  # movdqu xmm0,[rdi+rcx+0x270]
        "c1e604"  # shl esi,0x4
        "f30f7f843770020000"  # movdqu [rdi+rsi+0x270],xmm0
        "6681a760020000fffd"  # and word [rdi+0x260],0xfdff
        "c3",  # ret
    ),
    (
        "exchange",
        "83e607"  # and esi,0x7
        "4d8d0cb0"  # lea r9,[r8+rsi*4]
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "0f8511f9ffff"  # jne full
        "01ce"  # add esi,ecx
        "83e607"  # and esi,0x7
        "80bc376402000000"  # cmp byte [rdi+rsi+0x264],0x0
        "0f85fef8ffff"  # jne full
        "c1e104"  # shl ecx,0x4
        "c1e604"  # shl esi,0x4
        "f30f6f840f70020000"  # movdqu xmm0,[rdi+rcx+0x270]
        "f30f6f8c3770020000"  # movdqu xmm1,[rdi+rsi+0x270]
        "f30f7f843770020000"  # movdqu [rdi+rsi+0x270],xmm0
        "f30f7f8c0f70020000"  # movdqu [rdi+rcx+0x270],xmm1
        "6681a760020000fffd"  # and word [rdi+0x260],0xfdff
        "c3",  # ret
    ),
    (
        "control",
        "81e63f1f0000"  # and esi,0x1f3f
        "83ce40"  # or esi,0x40
        "6689b762020000"  # mov word [rdi+0x262],si
        "6681a7600200007f7f"  # and word [rdi+0x260],0x7f7f
        "f7d6"  # not esi
        "6623b760020000"  # and si,word [rdi+0x260]
        "40f6c63f"  # test sil,0x3f
        "7409"  # je control+0x31
        "66818f600200008080"  # or word [rdi+0x260],0x8080
        "ff256cf8ffff",  # jmp qword [status]
    ),
    (
        "fetch",
        "53"  # push rbx
        "55"  # push rbp
        "4154"  # push r12
        "4889fb"  # mov rbx,rdi
        "4889f5"  # mov rbp,rsi
        "4d89c4"  # mov r12,r8
        "488b542418"  # mov rdx,qword [rsp+0x18]
        "ff152cf8ffff"  # call qword [ldq]
        "48898310030000"  # mov qword [rbx+0x310],rax
        "4889df"  # mov rdi,rbx
        "488d7508"  # lea rsi,[rbp+0x8]
        "488b542418"  # mov rdx,qword [rsp+0x18]
        "ff151bf8ffff"  # call qword [lduw]
        "4889df"  # mov rdi,rbx
        "4d89e1"  # mov r9,r12
        "415c"  # pop r12
        "5d"  # pop rbp
        "5b"  # pop rbx
        "66898718030000"  # mov word [rdi+0x318],ax
        "488d9710030000"  # lea rdx,[rdi+0x310]
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "ffc9"  # dec ecx
        "83e107"  # and ecx,0x7
        "80bc0f6402000001"  # cmp byte [rdi+rcx+0x264],0x1
        "0f8531f8ffff"  # jne full
        "418039db"  # cmp byte [r9],0xdb
        "0f8527f8ffff"  # jne full
        "898f5c020000"  # mov dword [rdi+0x25c],ecx
        "c6840f6402000000"  # mov byte [rdi+rcx+0x264],0x0
        "f30f6f02"  # movdqu xmm0,[rdx]
        "c1e104"  # shl ecx,0x4
        "f30f7f840f70020000"  # movdqu [rdi+rcx+0x270],xmm0
        "6681a760020000fffd"  # and word [rdi+0x260],0xfdff
        "c3",  # ret
    ),
    (
        "put",
        "4883ec28"  # sub rsp,0x28
        "4d89c1"  # mov r9,r8
        "4889e2"  # mov rdx,rsp
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "80bc0f6402000000"  # cmp byte [rdi+rcx+0x264],0x0
        "7522"  # jne put+0x3c
        "418039db"  # cmp byte [r9],0xdb
        "751c"  # jne put+0x3c
        "c1e104"  # shl ecx,0x4
        "f30f6f840f70020000"  # movdqu xmm0,[rdi+rcx+0x270]
        "f30f7f0424"  # movdqu [rsp],xmm0
        "6681a760020000fffd"  # and word [rdi+0x260],0xfdff
        "eb0a"  # jmp put+0x46
        "e88af8ffff"  # call partly
        "f6c11f"  # test cl,0x1f
        "753c"  # jne put+0x82
        "4889742410"  # mov qword [rsp+0x10],rsi
        "48897c2418"  # mov qword [rsp+0x18],rdi
        "488b1424"  # mov rdx,qword [rsp]
        "488b4c2428"  # mov rcx,qword [rsp+0x28]
        "ff1561f7ffff"  # call qword [stq]
        "488b7c2418"  # mov rdi,qword [rsp+0x18]
        "488b742410"  # mov rsi,qword [rsp+0x10]
        "4883c608"  # add rsi,0x8
        "0fb7542408"  # movzx edx,word [rsp+0x8]
        "488b4c2428"  # mov rcx,qword [rsp+0x28]
        "ff154bf7ffff"  # call qword [stw]
        "4883c428"  # add rsp,0x28
        "c3"  # ret
        "4883c428"  # add rsp,0x28
        "e965f7ffff",  # jmp pending
    ),
    (
        "flds_FT0",
        "89b710030000"  # mov dword [rdi+0x310],esi
        "c6871a03000001"  # mov byte [rdi+0x31a],0x1
        "c3",  # ret
    ),
    (
        "fldl_FT0",
        "4889b710030000"  # mov qword [rdi+0x310],rsi
        "c6871a03000002"  # mov byte [rdi+0x31a],0x2
        "c3",  # ret
    ),
    (
        "fildl_FT0",
        "89b710030000"  # mov dword [rdi+0x310],esi
        "c6871a03000003"  # mov byte [rdi+0x31a],0x3
        "c3",  # ret
    ),
    (
        "fldz_FT0",
        "c6871a03000004"  # mov byte [rdi+0x31a],0x4
        "c3",  # ret
    ),
    (
        "fmov_FT0_STN",
        "83e607"  # and esi,0x7
        "c6871a03000000"  # mov byte [rdi+0x31a],0x0
        "4088b71b030000"  # mov byte [rdi+0x31b],sil
        "c3",  # ret
    ),
    (
        "fpop",
        "0fb78762020000"  # movzx eax,word [rdi+0x262]
        "f7d0"  # not eax
        "66238760020000"  # and ax,word [rdi+0x260]
        "a807"  # test al,0x7
        "7519"  # jne fpop+0x2d
        "8b875c020000"  # mov eax,dword [rdi+0x25c]
        "c684076402000001"  # mov byte [rdi+rax+0x264],0x1
        "ffc0"  # inc eax
        "83e007"  # and eax,0x7
        "89875c020000"  # mov dword [rdi+0x25c],eax
        "c3",  # ret
    ),
    (
        "fnstsw",
        "0fb78760020000"  # movzx eax,word [rdi+0x260]
        "257f470000"  # and eax,0x477f
        "8b8f5c020000"  # mov ecx,dword [rdi+0x25c]
        "c1e10b"  # shl ecx,0xb
        "09c8"  # or eax,ecx
        "0fb78f62020000"  # movzx ecx,word [rdi+0x262]
        "f7d1"  # not ecx
        "21c1"  # and ecx,eax
        "f6c13f"  # test cl,0x3f
        "7405"  # je fnstsw+0x2c
        "0d80800000"  # or eax,0x8080
        "c3",  # ret
    ),
    (
        "fstenv",
        "53"  # push rbx
        "55"  # push rbp
        "4154"  # push r12
        "4155"  # push r13
        "4881ec88000000"  # sub rsp,0x88
        "4889fb"  # mov rbx,rdi
        "4889f5"  # mov rbp,rsi
        "4189d4"  # mov r12d,edx
        "440fb7af62020000"  # movzx r13d,word [rdi+0x262]
        "66838f620200003f"  # or word [rdi+0x262],0x3f
        "e8aaf7ffff"  # call enter
        "664489ab62020000"  # mov word [rbx+0x262],r13w
        "dd3424"  # fnsave [rsp]
        "4889df"  # mov rdi,rbx
        "e895ffffff"  # call fnstsw
        "4181cd0000ffff"  # or r13d,0xffff0000
        "0d0000ffff"  # or eax,0xffff0000
        "44892c24"  # mov dword [rsp],r13d
        "89442404"  # mov dword [rsp+0x4],eax
        "814c24080000ffff"  # or dword [rsp+0x8],0xffff0000
        "8b83f8020000"  # mov eax,dword [rbx+0x2f8]
        "8944240c"  # mov dword [rsp+0xc],eax
        "0fb783f2020000"  # movzx eax,word [rbx+0x2f2]
        "89442410"  # mov dword [rsp+0x10],eax
        "8b8300030000"  # mov eax,dword [rbx+0x300]
        "89442414"  # mov dword [rsp+0x14],eax
        "0fb783f4020000"  # movzx eax,word [rbx+0x2f4]
        "0d0000ffff"  # or eax,0xffff0000
        "89442418"  # mov dword [rsp+0x18],eax
        "4531ed"  # xor r13d,r13d
        "4889df"  # mov rdi,rbx
        "4889ee"  # mov rsi,rbp
        "428b14ac"  # mov edx,dword [rsp+r13*4]
        "488b8c24a8000000"  # mov rcx,qword [rsp+0xa8]
        "4585e4"  # test r12d,r12d
        "740c"  # je fstenv+0xaf
        "4883c504"  # add rbp,0x4
        "ff15f8f5ffff"  # call qword [stl]
        "eb0a"  # jmp fstenv+0xb9
        "4883c502"  # add rbp,0x2
        "ff15e4f5ffff"  # call qword [stw]
        "41ffc5"  # inc r13d
        "4183fd07"  # cmp r13d,0x7
        "72ca"  # jb fstenv+0x8c
        "4889df"  # mov rdi,rbx
        "4881c488000000"  # add rsp,0x88
        "415d"  # pop r13
        "415c"  # pop r12
        "5d"  # pop rbp
        "5b"  # pop rbx
        "66838f620200003f"  # or word [rdi+0x262],0x3f
        "6681a7600200007f7f"  # and word [rdi+0x260],0x7f7f
        "ff25c4f5ffff",  # jmp qword [status]
    ),
    (
        "guarded",
        "0fae5c2408"  # stmxcsr dword [rsp+8]
        "8b8730030000"  # mov eax,dword [rdi+0x330]
        "25c0ff0000"  # and eax,0xffc0
        "f6c408"  # test ah,8
        "7503"  # jne guarded+0x18
        "80e47f"  # and ah,0x7f
        "0d801f0000"  # or eax,0x1f80
        "8944240c"  # mov dword [rsp+0xc],eax
        "0fae54240c"  # ldmxcsr dword [rsp+0xc]
        "c3",  # ret
    ),
    (
        "judged",
        "0fae5c240c"  # stmxcsr dword [rsp+0xc]
        "0fae542408"  # ldmxcsr dword [rsp+0x8]
        "448b44240c"  # mov r8d,dword [rsp+0xc]
        "4183e03f"  # and r8d,0x3f
        "448b8f30030000"  # mov r9d,dword [rdi+0x330]
        "4589ca"  # mov r10d,r9d
        "41c1ea07"  # shr r10d,0x7
        "41f7d2"  # not r10d
        "4521c2"  # and r10d,r8d
        "7508"  # jne judged+0x31
        "44098730030000"  # or dword [rdi+0x330],r8d
        "c3"  # ret
        "41f7c207000000"  # test r10d,0x7
        "7404"  # je judged+0x3e
        "4183e007"  # and r8d,0x7
        "44098730030000"  # or dword [rdi+0x330],r8d
        "4883c420"  # add rsp,0x20
        "488b1424"  # mov rdx,qword [rsp]
        "be13000000"  # mov esi,0x13
        "ff2515f5ffff",  # jmp qword [raise]
    ),
    (
        "flushed",
        "0fae5c2408"  # stmxcsr dword [rsp+8]
        "8b8730030000"  # mov eax,dword [rdi+0x330]
        "2540600000"  # and eax,0x6040
        "0d809f0000"  # or eax,0x9f80
        "8944240c"  # mov dword [rsp+0xc],eax
        "0fae54240c"  # ldmxcsr dword [rsp+0xc]
        "c3",  # ret
    ),
    (
        "drowned",
        "0fae5c240c"  # stmxcsr dword [rsp+0xc]
        "0fae542408"  # ldmxcsr dword [rsp+8]
        "f644240c10"  # test byte [rsp+0xc],0x10
        "7501"  # jne drowned+0x12
        "c3"  # ret
        "838f3003000010"  # or dword [rdi+0x330],0x10
        "4883c420"  # add rsp,0x20
        "488b1424"  # mov rdx,qword [rsp]
        "be13000000"  # mov esi,0x13
        "ff25caf4ffff",  # jmp qword [raise]
    ),
    (
        "ldmxcsr",
        "f7c60000ffff"  # test esi,0xffff0000
        "750c"  # jne ldmxcsr+0x14
        "89b730030000"  # mov dword [rdi+0x330],esi
        "ff25eef4ffff"  # jmp qword [sse]
        "488b1424"  # mov rdx,qword [rsp]
        "be0d000000"  # mov esi,0xd
        "ff25a7f4ffff",  # jmp qword [raise]
    ),
    (
        "lengths",
        "0f100e"  # movups xmm1,[rsi]
        "0f1012"  # movups xmm2,[rdx]
        "488b07"  # mov rax,qword [rdi]
        "488b5710"  # mov rdx,qword [rdi+0x10]
        "f7c100010000"  # test ecx,0x100
        "7506"  # jne lengths+0x1b
        "4863c0"  # movsxd rax,eax
        "4863d2"  # movsxd rdx,edx
        "eb06",  # jmp ends+0x6
    ),
    (
        "ends",
        "0f100e"  # movups xmm1,[rsi]
        "0f1012"  # movups xmm2,[rdx]
        "0f108738030000"  # movups xmm0,[rdi+0x338]
        "0fb6c9"  # movzx ecx,cl
        "4d8d1ccb"  # lea r11,[r11+rcx*8]
        "488b4f08"  # mov rcx,qword [rdi+0x8]
        "41ffd3"  # call r11
        "9c"  # pushf
        "58"  # pop rax
        "25d5080000"  # and eax,0x8d5
        "48898798000000"  # mov qword [rdi+0x98],rax
        "48894f08"  # mov qword [rdi+0x8],rcx
        "0f118738030000"  # movups [rdi+0x338],xmm0
        "c3",  # ret
    ),
    (
        "features",
        "53"  # push rbx
        "b801000000"  # mov eax,0x1
        "0fa2"  # cpuid
        "89c8"  # mov eax,ecx
        "5b"  # pop rbx
        "c3",  # ret
    ),
)
"""(name, code) of the routines, in the order in which they jump to one another."""
