"""Host machine code of `unicorn_lent`, with the instructions it was assembled from.

Two routines take the place of Unicorn's own (System V): `translate`, of its translation of one
instruction of x86, and `fetch`, of its fetch of a byte of code. The others serve the code of
lent instructions, which `engine.arch.x86_64.vex_host` makes. In front of all stand addresses of
Unicorn's functions, under the names in brackets (`WORDS`).

`translate` notes where an instruction begins (words of the record of `unicorn_lent`: 0x0 address,
0x8 awaited, 0x10 bytes that are given instead, 0x18 code for it, 0x20 those bytes, 0x38 how many
have run, 0x40 the instruction). When its first byte is fetched, and not before, `fetch` looks
whether it has a VEX prefix, behind others perhaps, fetches the rest and asks for code. Where there
is some, Unicorn is given a no-operation as long, and a call of the code behind it: fetches that
fault, ends of pages, hooks and the trap flag stay Unicorn's. Code that sets flags leaves them in
cc_src (CC_OP_EFLAGS).

Code that goes the slow way has this frame: 0x8 the host's MXCSR, 0xc another, 0x10 an underflow
that is not masked, 0x18 room for the operand, 32 bytes at a multiple of 32, 0x60 its address,
0x68 the CPUX86State, 0x70 its bytes, 0x78 the return address, by which Unicorn knows the
instruction. `load`, `probe` and `store` leave the CPUX86State in rdi; `load` and `probe` the room
in rax. `guarded` and `flushed` load an MXCSR under which nothing is raised, behind which `judged`
raises what the guest wants raised, and `drowned` notes an underflow: one that is not masked is one
without loss too, as flushing to zero shows. They change rcx and rsi alone.
Where overflow or underflow is raised, PE may be set although nothing is lost.

Code that accesses memory by element calls these instead, in whatever frame, with the CPUX86State
in rdi, the address in rsi and the return address of the code itself last: `take` loads (edx bytes;
the value in rax), `claim` looks whether as many may be stored, `give` stores (the value in rdx,
ecx bytes). `control` puts esi into MXCSR, and leaves rdi.
"""

from typing import Final

WORDS: Final = (
    *("translate", "cpu_ldub_code", "tcg_emit_op", "make", "raise_exception_ra"),
    *("cpu_ldub_data_ra", "cpu_lduw_data_ra", "cpu_ldl_data_ra", "cpu_ldq_data_ra"),
    *("cpu_stb_data_ra", "cpu_stw_data_ra", "cpu_stl_data_ra", "cpu_stq_data_ra"),
    *("probe_access", "helper_ldmxcsr"),
)
"""The functions whose addresses stand in front, in this order."""

ROUTINES: Final = (
    (
        "translate",
        "488b8670810000"  # mov rax,qword [rsi+0x8170]
        "4885c0"  # test rax,rax
        "0f84c7000000"  # je plain
        "488b4008"  # mov rax,qword [rax+0x8]
        "4885c0"  # test rax,rax
        "0f84ba000000"  # je plain
        "8b8e008b0000"  # mov ecx,dword [rsi+0x8b00]
        "f7d1"  # not ecx
        "f7c103800000"  # test ecx,0x8003
        "0f85a6000000"  # jne plain
        "488b4f10"  # mov rcx,qword [rdi+0x10]
        "53"  # push rbx
        "55"  # push rbp
        "4154"  # push r12
        "4889fb"  # mov rbx,rdi
        "4889f5"  # mov rbp,rsi
        "4989c4"  # mov r12,rax
        "49890c24"  # mov qword [r12],rcx
        "49c744240801000000"  # mov qword [r12+0x8],0x1
        "49c744241000000000"  # mov qword [r12+0x10],0x0
        "49c744241800000000"  # mov qword [r12+0x18],0x0
        "ff1521ffffff"  # call qword [translate]
        "498b442418"  # mov rax,qword [r12+0x18]
        "31c9"  # xor ecx,ecx
        "49894c2408"  # mov qword [r12+0x8],rcx
        "49894c2410"  # mov qword [r12+0x10],rcx
        "4885c0"  # test rax,rax
        "7455"  # je ready
        "4989c4"  # mov r12,rax
        "488bada8810000"  # mov rbp,qword [rbp+0x81a8]
        "488bad00030000"  # mov rbp,qword [rbp+0x300]
        "4889ef"  # mov rdi,rbp
        "be02000000"  # mov esi,0x2
        "ff15fcfeffff"  # call qword [emit]
        "c6400101"  # mov byte [rax+0x1],0x1
        "488b8df0980000"  # mov rcx,qword [rbp+0x98f0]
        "4801e9"  # add rcx,rbp
        "48894818"  # mov qword [rax+0x18],rcx
        "4c89e1"  # mov rcx,r12
        "4883e1f0"  # and rcx,0xfffffffffffffff0
        "48894820"  # mov qword [rax+0x20],rcx
        "48c7402800000000"  # mov qword [rax+0x28],0x0
        "41f6c401"  # test r12b,0x1
        "740b"  # je ready
        "c7437401000000"  # mov dword [rbx+0x74],0x1
        "c6437c01"  # mov byte [rbx+0x7c],0x1
        # ready:
        "415c"  # pop r12
        "5d"  # pop rbp
        "5b"  # pop rbx
        "c3"  # ret
        # plain:
        "ff25abfeffff",  # jmp qword [translate]
    ),
    (
        "fetch",
        "488b8720f7ffff"  # mov rax,qword [rdi-0x8e0]
        "4885c0"  # test rax,rax
        "7421"  # je ordinary
        "488b4008"  # mov rax,qword [rax+0x8]
        "4885c0"  # test rax,rax
        "7418"  # je ordinary
        "4889f1"  # mov rcx,rsi
        "482b08"  # sub rcx,qword [rax]
        "483b4810"  # cmp rcx,qword [rax+0x10]
        "7212"  # jb given
        "4885c9"  # test rcx,rcx
        "7507"  # jne ordinary
        "4883780800"  # cmp qword [rax+0x8],0x0
        "750c"  # jne begin
        # ordinary:
        "ff2580feffff"  # jmp qword [fetch]
        # given:
        "0fb6440820"  # movzx eax,byte [rax+rcx*1+0x20]
        "c3"  # ret
        # begin:
        "53"  # push rbx
        "55"  # push rbp
        "4154"  # push r12
        "4155"  # push r13
        "4156"  # push r14
        "4157"  # push r15
        "4883ec08"  # sub rsp,0x8
        "4889c3"  # mov rbx,rax
        "4889fd"  # mov rbp,rdi
        "4989f4"  # mov r12,rsi
        "48c7430800000000"  # mov qword [rbx+0x8],0x0
        "4531ed"  # xor r13d,r13d
        # first:
        "e85b010000"  # call next
        "89c1"  # mov ecx,eax
        "80e1e7"  # and cl,0xe7
        "80f926"  # cmp cl,0x26
        "740e"  # je prefix
        "3c67"  # cmp al,0x67
        "740a"  # je prefix
        "89c1"  # mov ecx,eax
        "80e1fe"  # and cl,0xfe
        "80f964"  # cmp cl,0x64
        "750b"  # jne opcode
        # prefix:
        "4183fd0b"  # cmp r13d,0xb
        "72dd"  # jb first
        "e925010000"  # jmp other
        # opcode:
        "41be01000000"  # mov r14d,0x1
        "3cc5"  # cmp al,0xc5
        "7413"  # je last
        "3cc4"  # cmp al,0xc4
        "0f8513010000"  # jne other
        "e821010000"  # call next
        "83e01f"  # and eax,0x1f
        "4189c6"  # mov r14d,eax
        # last:
        "e816010000"  # call next
        "e811010000"  # call next
        "418d4eff"  # lea ecx,[r14-0x1]
        "83f902"  # cmp ecx,0x2
        "0f87f1000000"  # ja other
        "41c1e608"  # shl r14d,0x8
        "4109c6"  # or r14d,eax
        "4181fe77010000"  # cmp r14d,0x177
        "0f8485000000"  # je whole
        "e8eb000000"  # call next
        "89c1"  # mov ecx,eax
        "c1e906"  # shr ecx,0x6
        "83e007"  # and eax,0x7
        "4531ff"  # xor r15d,r15d
        "83f903"  # cmp ecx,0x3
        "744a"  # je immediate
        "ba01000000"  # mov edx,0x1
        "83f901"  # cmp ecx,0x1
        "440f44fa"  # cmove r15d,edx
        "ba04000000"  # mov edx,0x4
        "83f902"  # cmp ecx,0x2
        "440f44fa"  # cmove r15d,edx
        "890c24"  # mov dword [rsp],ecx
        "83f804"  # cmp eax,0x4
        "750b"  # jne based
        "e8b6000000"  # call next
        "83e007"  # and eax,0x7
        "8b0c24"  # mov ecx,dword [rsp]
        # based:
        "83f805"  # cmp eax,0x5
        "750b"  # jne displaced
        "ba04000000"  # mov edx,0x4
        "85c9"  # test ecx,ecx
        "440f44fa"  # cmove r15d,edx
        # displaced:
        "4585ff"  # test r15d,r15d
        "740a"  # je immediate
        "e896000000"  # call next
        "41ffcf"  # dec r15d
        "ebf1"  # jmp displaced
        # immediate:
        "4489f0"  # mov eax,r14d
        "3d00030000"  # cmp eax,0x300
        "7317"  # jae numbered
        "2d70010000"  # sub eax,0x170
        "83f803"  # cmp eax,0x3
        "760d"  # jbe numbered
        "83f852"  # cmp eax,0x52
        "7408"  # je numbered
        "83e854"  # sub eax,0x54
        "83f802"  # cmp eax,0x2
        "7705"  # ja whole
        # numbered:
        "e86b000000"  # call next
        # whole:
        "4c89e7"  # mov rdi,r12
        "488d7340"  # lea rsi,[rbx+0x40]
        "4489ea"  # mov edx,r13d
        "488b85581b0000"  # mov rax,qword [rbp+0x1b58]
        "488b8830040000"  # mov rcx,qword [rax+0x430]
        "480b8848040000"  # or rcx,qword [rax+0x448]
        "ff154efdffff"  # call qword [make]
        "4885c0"  # test rax,rax
        "742e"  # je other
        "48894318"  # mov qword [rbx+0x18],rax
        "48b86666666666666666"  # movabs rax,0x6666666666666666
        "48894320"  # mov qword [rbx+0x20],rax
        "48894328"  # mov qword [rbx+0x28],rax
        "6642c7442b1d0f1f"  # mov word [rbx+r13*1+0x1d],0x1f0f
        "42c6442b1f00"  # mov byte [rbx+r13*1+0x1f],0x0
        "4c896b10"  # mov qword [rbx+0x10],r13
        "0fb64320"  # movzx eax,byte [rbx+0x20]
        "eb04"  # jmp fetched
        # other:
        "0fb64340"  # movzx eax,byte [rbx+0x40]
        # fetched:
        "4883c408"  # add rsp,0x8
        "415f"  # pop r15
        "415e"  # pop r14
        "415d"  # pop r13
        "415c"  # pop r12
        "5d"  # pop rbp
        "5b"  # pop rbx
        "c3"  # ret
        # next:
        "4883ec08"  # sub rsp,0x8
        "4889ef"  # mov rdi,rbp
        "4b8d342c"  # lea rsi,[r12+r13*1]
        "ff15e7fcffff"  # call qword [fetch]
        "0fb6c0"  # movzx eax,al
        "4288442b40"  # mov byte [rbx+r13*1+0x40],al
        "49ffc5"  # inc r13
        "4883c408"  # add rsp,0x8
        "c3",  # ret
    ),
    (
        "load",
        "53"  # push rbx
        "55"  # push rbp
        "4154"  # push r12
        "4155"  # push r13
        "4883ec08"  # sub rsp,0x8
        "488d5c2467"  # lea rbx,[rsp+0x67]
        "4883e3e0"  # and rbx,0xffffffffffffffe0
        "31ed"  # xor ebp,ebp
        "448ba424a0000000"  # mov r12d,dword [rsp+0xa0]
        "4183fc08"  # cmp r12d,0x8
        "722f"  # jb small
        # words8:
        "488bbc2498000000"  # mov rdi,qword [rsp+0x98]
        "488bb42490000000"  # mov rsi,qword [rsp+0x90]
        "4801ee"  # add rsi,rbp
        "488b9424a8000000"  # mov rdx,qword [rsp+0xa8]
        "ff15cbfcffff"  # call qword [ldq]
        "4889042b"  # mov qword [rbx+rbp*1],rax
        "83c508"  # add ebp,0x8
        "4439e5"  # cmp ebp,r12d
        "72d3"  # jb words8
        "eb29"  # jmp loaded
        # small:
        "488bbc2498000000"  # mov rdi,qword [rsp+0x98]
        "488bb42490000000"  # mov rsi,qword [rsp+0x90]
        "488b9424a8000000"  # mov rdx,qword [rsp+0xa8]
        "488d0586fcffff"  # lea rax,[ldub]
        "41d1ec"  # shr r12d,1
        "42ff14e0"  # call qword [rax+r12*8]
        "488903"  # mov qword [rbx],rax
        # loaded:
        "488bbc2498000000"  # mov rdi,qword [rsp+0x98]
        "4889d8"  # mov rax,rbx
        "4883c408"  # add rsp,0x8
        "415d"  # pop r13
        "415c"  # pop r12
        "5d"  # pop rbp
        "5b"  # pop rbx
        "c3",  # ret
    ),
    (
        "probe",
        "53"  # push rbx
        "4883ec10"  # sub rsp,0x10
        "488b842480000000"  # mov rax,qword [rsp+0x80]
        "89c1"  # mov ecx,eax
        "81c900f0ffff"  # or ecx,0xfffff000
        "f7d9"  # neg ecx
        "8b9c2490000000"  # mov ebx,dword [rsp+0x90]
        "39d9"  # cmp ecx,ebx
        "0f47cb"  # cmova ecx,ebx
        "890c24"  # mov dword [rsp],ecx
        "89ca"  # mov edx,ecx
        "e82e000000"  # call touch
        "2b1c24"  # sub ebx,dword [rsp]
        "7412"  # je probed
        "89da"  # mov edx,ebx
        "8b0424"  # mov eax,dword [rsp]
        "4803842480000000"  # add rax,qword [rsp+0x80]
        "e817000000"  # call touch
        # probed:
        "488bbc2488000000"  # mov rdi,qword [rsp+0x88]
        "488d442457"  # lea rax,[rsp+0x57]
        "4883e0e0"  # and rax,0xffffffffffffffe0
        "4883c410"  # add rsp,0x10
        "5b"  # pop rbx
        "c3"  # ret
        # touch:
        "4883ec08"  # sub rsp,0x8
        "488bbc2498000000"  # mov rdi,qword [rsp+0x98]
        "4889c6"  # mov rsi,rax
        "b901000000"  # mov ecx,0x1
        "41b801000000"  # mov r8d,0x1
        "4c8b8c24a8000000"  # mov r9,qword [rsp+0xa8]
        "ff1523fcffff"  # call qword [probe]
        "4883c408"  # add rsp,0x8
        "c3",  # ret
    ),
    (
        "store",
        "53"  # push rbx
        "55"  # push rbp
        "4154"  # push r12
        "4155"  # push r13
        "4883ec08"  # sub rsp,0x8
        "488d5c2467"  # lea rbx,[rsp+0x67]
        "4883e3e0"  # and rbx,0xffffffffffffffe0
        "31ed"  # xor ebp,ebp
        "448ba424a0000000"  # mov r12d,dword [rsp+0xa0]
        "488b842490000000"  # mov rax,qword [rsp+0x90]
        "25ff0f0000"  # and eax,0xfff
        "4401e0"  # add eax,r12d
        "3d00100000"  # cmp eax,0x1000
        "41bd01000000"  # mov r13d,0x1
        "770e"  # ja pieces
        "41bd08000000"  # mov r13d,0x8
        "4183fc08"  # cmp r12d,0x8
        "450f42ec"  # cmovb r13d,r12d
        # pieces:
        "488bbc2498000000"  # mov rdi,qword [rsp+0x98]
        "488bb42490000000"  # mov rsi,qword [rsp+0x90]
        "4801ee"  # add rsi,rbp
        "488b142b"  # mov rdx,qword [rbx+rbp*1]
        "488b8c24a8000000"  # mov rcx,qword [rsp+0xa8]
        "488d0590fbffff"  # lea rax,[stb]
        "450fbcc5"  # bsf r8d,r13d
        "42ff14c0"  # call qword [rax+r8*8]
        "4401ed"  # add ebp,r13d
        "4439e5"  # cmp ebp,r12d
        "72ca"  # jb pieces
        "488bbc2498000000"  # mov rdi,qword [rsp+0x98]
        "4883c408"  # add rsp,0x8
        "415d"  # pop r13
        "415c"  # pop r12
        "5d"  # pop rbp
        "5b"  # pop rbx
        "c3",  # ret
    ),
    (
        "guarded",
        "0fae5c2410"  # stmxcsr dword [rsp+0x10]
        "8b8f30030000"  # mov ecx,dword [rdi+0x330]
        "81e1c0ff0000"  # and ecx,0xffc0
        "f6c508"  # test ch,0x8
        "7503"  # jne masked
        "80e57f"  # and ch,0x7f
        # masked:
        "81c9801f0000"  # or ecx,0x1f80
        "894c2414"  # mov dword [rsp+0x14],ecx
        "0fae542414"  # ldmxcsr dword [rsp+0x14]
        "c3",  # ret
    ),
    (
        "judged",
        "0fae5c2414"  # stmxcsr dword [rsp+0x14]
        "0fae542410"  # ldmxcsr dword [rsp+0x10]
        "8b4c2414"  # mov ecx,dword [rsp+0x14]
        "83e13f"  # and ecx,0x3f
        "0b4c2418"  # or ecx,dword [rsp+0x18]
        "8bb730030000"  # mov esi,dword [rdi+0x330]
        "c1ee07"  # shr esi,0x7
        "f7d6"  # not esi
        "21ce"  # and esi,ecx
        "7507"  # jne unmasked
        "098f30030000"  # or dword [rdi+0x330],ecx
        "c3"  # ret
        # unmasked:
        "f7c607000000"  # test esi,0x7
        "7403"  # je raised
        "83e107"  # and ecx,0x7
        # raised:
        "098f30030000"  # or dword [rdi+0x330],ecx
        "c5f877"  # vzeroupper
        "4881c480000000"  # add rsp,0x80
        "488b1424"  # mov rdx,qword [rsp]
        "be13000000"  # mov esi,0x13
        "ff25c7faffff",  # jmp qword [raise]
    ),
    (
        "flushed",
        "0fae5c2410"  # stmxcsr dword [rsp+0x10]
        "8b8f30030000"  # mov ecx,dword [rdi+0x330]
        "81e140600000"  # and ecx,0x6040
        "81c9809f0000"  # or ecx,0x9f80
        "894c2414"  # mov dword [rsp+0x14],ecx
        "0fae542414"  # ldmxcsr dword [rsp+0x14]
        "c3",  # ret
    ),
    (
        "drowned",
        "0fae5c2414"  # stmxcsr dword [rsp+0x14]
        "0fae542410"  # ldmxcsr dword [rsp+0x10]
        "8b4c2414"  # mov ecx,dword [rsp+0x14]
        "83e110"  # and ecx,0x10
        "894c2418"  # mov dword [rsp+0x18],ecx
        "c3",  # ret
    ),
    (
        "misaligned",
        "488b1424"  # mov rdx,qword [rsp]
        "be0d000000"  # mov esi,0xd
        "ff2581faffff",  # jmp qword [raise]
    ),
    (
        "take",
        "89d0"  # mov eax,edx
        "4889ca"  # mov rdx,rcx
        "4c8d057dfaffff"  # lea r8,[ldub]
        "0fbcc0"  # bsf eax,eax
        "41ff24c0",  # jmp qword [r8+rax*8]
    ),
    (
        "claim",
        "8d4416ff"  # lea eax,[rsi+rdx*1-0x1]
        "31f0"  # xor eax,esi
        "a900100000"  # test eax,0x1000
        "7514"  # jne both
        "4989c9"  # mov r9,rcx
        "b901000000"  # mov ecx,0x1
        "41b801000000"  # mov r8d,0x1
        "ff2595faffff"  # jmp qword [probe]
        # both:
        "53"  # push rbx
        "55"  # push rbp
        "4154"  # push r12
        "4889fb"  # mov rbx,rdi
        "488d6c16ff"  # lea rbp,[rsi+rdx*1-0x1]
        "4881e500f0ffff"  # and rbp,0xfffffffffffff000
        "4989cc"  # mov r12,rcx
        "4989c9"  # mov r9,rcx
        "ba01000000"  # mov edx,0x1
        "b901000000"  # mov ecx,0x1
        "41b801000000"  # mov r8d,0x1
        "ff1566faffff"  # call qword [probe]
        "4889df"  # mov rdi,rbx
        "4889ee"  # mov rsi,rbp
        "ba01000000"  # mov edx,0x1
        "b901000000"  # mov ecx,0x1
        "41b801000000"  # mov r8d,0x1
        "4d89e1"  # mov r9,r12
        "ff1547faffff"  # call qword [probe]
        "415c"  # pop r12
        "5d"  # pop rbp
        "5b"  # pop rbx
        "c3",  # ret
    ),
    (
        "give",
        "8d440eff"  # lea eax,[rsi+rcx*1-0x1]
        "31f0"  # xor eax,esi
        "a900100000"  # test eax,0x1000
        "7511"  # jne bytes
        "0fbcc1"  # bsf eax,ecx
        "4c89c1"  # mov rcx,r8
        "4c8d0d08faffff"  # lea r9,[stb]
        "41ff24c1"  # jmp qword [r9+rax*8]
        # bytes:
        "53"  # push rbx
        "55"  # push rbp
        "4154"  # push r12
        "4155"  # push r13
        "4156"  # push r14
        "4889fb"  # mov rbx,rdi
        "4889f5"  # mov rbp,rsi
        "4989d4"  # mov r12,rdx
        "4189cd"  # mov r13d,ecx
        "4d89c6"  # mov r14,r8
        # each:
        "4889df"  # mov rdi,rbx
        "4889ee"  # mov rsi,rbp
        "410fb6d4"  # movzx edx,r12b
        "4c89f1"  # mov rcx,r14
        "ff15daf9ffff"  # call qword [stb]
        "48ffc5"  # inc rbp
        "49c1ec08"  # shr r12,0x8
        "41ffcd"  # dec r13d
        "75e1"  # jne each
        "415e"  # pop r14
        "415d"  # pop r13
        "415c"  # pop r12
        "5d"  # pop rbp
        "5b"  # pop rbx
        "c3",  # ret
    ),
    (
        "control",
        "4883ec10"  # sub rsp,0x10
        "48893c24"  # mov qword [rsp],rdi
        "ff15dff9ffff"  # call qword [control]
        "488b3c24"  # mov rdi,qword [rsp]
        "4883c410"  # add rsp,0x10
        "c3",  # ret
    ),
)
"""(name, code) of the routines, in the order in which they call one another."""
