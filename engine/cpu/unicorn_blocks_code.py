"""Host machine code of the ways between blocks, with the instructions it was assembled from.

`engine.cpu.unicorn_blocks` places it and says what it means. Offsets are those of the pinned
build, in whose functions the code stands or which it calls.
"""

from typing import Final

PLACE: Final = bytes.fromhex("1122334455667788")
"""Stands for the address of what comes after a search without success."""

# void *helper_lookup_tb_ptr(env): the block at pc in the engine's table, at its own place.
LOOKUP_X86: Final = bytes.fromhex(
    # lookup:
    "4c8b9720f7ffff"  # mov r10,[rdi-0x8e0]
    "488b8780000000"  # mov rax,[rdi+0x80]
    "8b8f88000000"  # mov ecx,dword [rdi+0x88]
    "81e100310700"  # and ecx,0x73100
    "0b8fb0000000"  # or ecx,dword [rdi+0xb0]
    "4d85d2"  # test r10,r10
    "745d"  # je miss
    "4d8b02"  # mov r8,[r10]
    "458b88d0980000"  # mov r9d,dword [r8+0x98d0]
    "4d0388d8000000"  # add r9,[r8+0xd8]
    "4c038f78f7ffff"  # add r9,[rdi-0x888]
    "4c038f80f7ffff"  # add r9,[rdi-0x880]
    "4c038f88f7ffff"  # add r9,[rdi-0x878]
    "4889c2"  # mov rdx,rax
    "48c1ea0c"  # shr rdx,0xc
    "31c2"  # xor edx,eax
    "81e2ff7f0000"  # and edx,0x7fff
    "c1e205"  # shl edx,0x5
    "498d541240"  # lea rdx,[r10+rdx*1+0x40]
    "483902"  # cmp [rdx],rax
    "751b"  # jne miss
    "48394a08"  # cmp [rdx+0x8],rcx
    "7515"  # jne miss
    "4c394a10"  # cmp [rdx+0x10],r9
    "750f"  # jne miss
    "4883bfd800000000"  # cmp [rdi+0xd8],0x0
    "7505"  # jne miss
    "488b4218"  # mov rax,[rdx+0x18]
    "c3"  # ret
    # miss:
    "49bb1122334455667788"  # movabs r11,0x8877665544332211
    "41ffe3"  # jmp r11
)

LOOKUP_ARM: Final = bytes.fromhex(
    # lookup:
    "4c8b9720deffff"  # mov r10,[rdi-0x21e0]
    "488b8740010000"  # mov rax,[rdi+0x140]
    "8b8f28020000"  # mov ecx,dword [rdi+0x228]
    "48c1e120"  # shl rcx,0x20
    "448b8750010000"  # mov r8d,dword [rdi+0x150]
    "4c09c1"  # or rcx,r8
    "4d85d2"  # test r10,r10
    "7454"  # je miss
    "4d8b02"  # mov r8,[r10]
    "458b88d0a80000"  # mov r9d,dword [r8+0xa8d0]
    "4d0388d8000000"  # add r9,[r8+0xd8]
    "4c038f78deffff"  # add r9,[rdi-0x2188]
    "4c038f80deffff"  # add r9,[rdi-0x2180]
    "4c038f88deffff"  # add r9,[rdi-0x2178]
    "4889c2"  # mov rdx,rax
    "48c1ea0e"  # shr rdx,0xe
    "4831c2"  # xor rdx,rax
    "81e2fcff0100"  # and edx,0x1fffc
    "c1e203"  # shl edx,0x3
    "498d541240"  # lea rdx,[r10+rdx*1+0x40]
    "483902"  # cmp [rdx],rax
    "7511"  # jne miss
    "48394a08"  # cmp [rdx+0x8],rcx
    "750b"  # jne miss
    "4c394a10"  # cmp [rdx+0x10],r9
    "7505"  # jne miss
    "488b4218"  # mov rax,[rdx+0x18]
    "c3"  # ret
    # miss:
    "49bb1122334455667788"  # movabs r11,0x8877665544332211
    "41ffe3"  # jmp r11
)

# What comes after it: the address of tb_htable_lookup stands 16 bytes in front, for ARM that of
# cpu_get_tb_cpu_state behind that. Without a table it does as Unicorn's own function did.
MISSING_X86: Final = bytes.fromhex(
    # missing:
    "4883ec38"  # sub rsp,0x38
    "48893c24"  # mov [rsp],rdi
    "4889542408"  # mov [rsp+0x8],rdx
    "4c894c2410"  # mov [rsp+0x10],r9
    "4889442418"  # mov [rsp+0x18],rax
    "48894c2420"  # mov [rsp+0x20],rcx
    "4c89542428"  # mov [rsp+0x28],r10
    "488b97d8000000"  # mov rdx,[rdi+0xd8]
    "488d3410"  # lea rsi,[rax+rdx*1]
    "448b8744f7ffff"  # mov r8d,dword [rdi-0x8bc]
    "41c1e018"  # shl r8d,0x18
    "4881ef508a0000"  # sub rdi,0x8a50
    "4d85d2"  # test r10,r10
    "7560"  # jne search
    "4989f1"  # mov r9,rsi
    "49c1e906"  # shr r9,0x6
    "4931f1"  # xor r9,rsi
    "4489c8"  # mov eax,r9d
    "49c1e906"  # shr r9,0x6
    "83e03f"  # and eax,0x3f
    "4181e1c00f0000"  # and r9d,0xfc0
    "4109c1"  # or r9d,eax
    "4e8d8ccf38010000"  # lea r9,[rdi+r9*8+0x138]
    "4c894c2430"  # mov [rsp+0x30],r9
    "498b01"  # mov rax,[r9]
    "4885c0"  # test rax,rax
    "742d"  # je search
    "483930"  # cmp [rax],rsi
    "7528"  # jne search
    "48395008"  # cmp [rax+0x8],rdx
    "7522"  # jne search
    "394810"  # cmp dword [rax+0x10],ecx
    "751d"  # jne search
    "448b501c"  # mov r10d,dword [rax+0x1c]
    "4c3b9788810000"  # cmp r10,[rdi+0x8188]
    "7510"  # jne search
    "448b5018"  # mov r10d,dword [rax+0x18]
    "4181e2ffff0eff"  # and r10d,0xff0effff
    "4539c2"  # cmp r10d,r8d
    "744a"  # je done
    # search:
    "ff1547ffffff"  # call [rip+-0x47]
    "4885c0"  # test rax,rax
    "7452"  # je none
    "4c8b542428"  # mov r10,[rsp+0x28]
    "4d85d2"  # test r10,r10
    "743e"  # je keep
    "488b3c24"  # mov rdi,[rsp]
    "4883bfd800000000"  # cmp [rdi+0xd8],0x0
    "7527"  # jne done
    "488b542408"  # mov rdx,[rsp+0x8]
    "488b4c2418"  # mov rcx,[rsp+0x18]
    "48890a"  # mov [rdx],rcx
    "488b4c2420"  # mov rcx,[rsp+0x20]
    "48894a08"  # mov [rdx+0x8],rcx
    "488b4c2410"  # mov rcx,[rsp+0x10]
    "48894a10"  # mov [rdx+0x10],rcx
    "488b4820"  # mov rcx,[rax+0x20]
    "48894a18"  # mov [rdx+0x18],rcx
    # done:
    "488b4020"  # mov rax,[rax+0x20]
    "4883c438"  # add rsp,0x38
    "c3"  # ret
    # keep:
    "488b542430"  # mov rdx,[rsp+0x30]
    "488902"  # mov [rdx],rax
    "ebed"  # jmp done
    # none:
    "488b3c24"  # mov rdi,[rsp]
    "488b8758f7ffff"  # mov rax,[rdi-0x8a8]
    "488b8000030000"  # mov rax,[rax+0x300]
    "488b8098000000"  # mov rax,[rax+0x98]
    "4883c438"  # add rsp,0x38
    "c3"  # ret
)

MISSING_ARM: Final = bytes.fromhex(
    # missing:
    "4883ec58"  # sub rsp,0x58
    "48893c24"  # mov [rsp],rdi
    "4889542408"  # mov [rsp+0x8],rdx
    "4c894c2410"  # mov [rsp+0x10],r9
    "4889442418"  # mov [rsp+0x18],rax
    "48894c2420"  # mov [rsp+0x20],rcx
    "4c89542428"  # mov [rsp+0x28],r10
    "488d742430"  # lea rsi,[rsp+0x30]
    "488d542438"  # lea rdx,[rsp+0x38]
    "488d4c2440"  # lea rcx,[rsp+0x40]
    "ff15c2ffffff"  # call [rip+-0xc2]
    "488b3c24"  # mov rdi,[rsp]
    "488b742430"  # mov rsi,[rsp+0x30]
    "488b542438"  # mov rdx,[rsp+0x38]
    "8b4c2440"  # mov ecx,dword [rsp+0x40]
    "448b8744deffff"  # mov r8d,dword [rdi-0x21bc]
    "41c1e018"  # shl r8d,0x18
    "4881ef50a30000"  # sub rdi,0xa350
    "4c8b542428"  # mov r10,[rsp+0x28]
    "4d85d2"  # test r10,r10
    "7578"  # jne search
    "4189cb"  # mov r11d,ecx
    "488b87a8810000"  # mov rax,[rdi+0x81a8]
    "488b80a8020000"  # mov rax,[rax+0x2a8]
    "8b4804"  # mov ecx,dword [rax+0x4]
    "83e906"  # sub ecx,0x6
    "4989f1"  # mov r9,rsi
    "49d3e9"  # shr r9,cl
    "4931f1"  # xor r9,rsi
    "4489c8"  # mov eax,r9d
    "49d3e9"  # shr r9,cl
    "4489d9"  # mov ecx,r11d
    "83e03f"  # and eax,0x3f
    "4181e1c00f0000"  # and r9d,0xfc0
    "4109c1"  # or r9d,eax
    "4e8d8ccf38010000"  # lea r9,[rdi+r9*8+0x138]
    "4c894c2448"  # mov [rsp+0x48],r9
    "498b01"  # mov rax,[r9]
    "4885c0"  # test rax,rax
    "742d"  # je search
    "483930"  # cmp [rax],rsi
    "7528"  # jne search
    "48395008"  # cmp [rax+0x8],rdx
    "7522"  # jne search
    "394810"  # cmp dword [rax+0x10],ecx
    "751d"  # jne search
    "448b501c"  # mov r10d,dword [rax+0x1c]
    "4c3b9788810000"  # cmp r10,[rdi+0x8188]
    "7510"  # jne search
    "448b5018"  # mov r10d,dword [rax+0x18]
    "4181e2ffff0eff"  # and r10d,0xff0effff
    "4539c2"  # cmp r10d,r8d
    "7446"  # je done
    # search:
    "ff150effffff"  # call [rip+-0x0e]
    "4885c0"  # test rax,rax
    "744e"  # je none
    "4c8b542428"  # mov r10,[rsp+0x28]
    "4d85d2"  # test r10,r10
    "743a"  # je keep
    "488b4c2420"  # mov rcx,[rsp+0x20]
    "89ca"  # mov edx,ecx
    "c1ea1e"  # shr edx,0x1e
    "83fa02"  # cmp edx,0x2
    "7522"  # jne done
    "488b542408"  # mov rdx,[rsp+0x8]
    "48894a08"  # mov [rdx+0x8],rcx
    "488b4c2418"  # mov rcx,[rsp+0x18]
    "48890a"  # mov [rdx],rcx
    "488b4c2410"  # mov rcx,[rsp+0x10]
    "48894a10"  # mov [rdx+0x10],rcx
    "488b4820"  # mov rcx,[rax+0x20]
    "48894a18"  # mov [rdx+0x18],rcx
    # done:
    "488b4020"  # mov rax,[rax+0x20]
    "4883c458"  # add rsp,0x58
    "c3"  # ret
    # keep:
    "488b542448"  # mov rdx,[rsp+0x48]
    "488902"  # mov [rdx],rax
    "ebed"  # jmp done
    # none:
    "488b3c24"  # mov rdi,[rsp]
    "488b8758deffff"  # mov rax,[rdi-0x21a8]
    "488b8000030000"  # mov rax,[rax+0x300]
    "488b8098000000"  # mov rax,[rax+0x98]
    "4883c458"  # add rsp,0x58
    "c3"  # ret
)

# int tcg_gen_code(context, tb): the address of the real one stands 16 bytes in front, and that of
# helper_check_exit_request behind that.
GENERATED: Final = bytes.fromhex(
    # generated:
    "53"  # push rbx
    "4889f3"  # mov rbx,rsi
    "ff15e6ffffff"  # call [rip+-0xe6]
    "83f811"  # cmp eax,0x11
    "7c3f"  # jl out
    "488b5320"  # mov rdx,[rbx+0x20]
    "66813a48bf"  # cmp word [rdx],0xbf48
    "7534"  # jne out
    "66817a0a33f6"  # cmp word [rdx+0xa],0xf633
    "752c"  # jne out
    "807a0ce8"  # cmp BYTE PTR [rdx+0xc],0xe8
    "7526"  # jne out
    "48634a0d"  # movsxd rcx,dword [rdx+0xd]
    "488d4c0a11"  # lea rcx,[rdx+rcx*1+0x11]
    "483b0dc0ffffff"  # cmp rcx,[rip+-0xc0]
    "7514"  # jne out
    "48b9837df0007d0b660f"  # movabs rcx,0xf660b7d00f07d83
    "48890a"  # mov [rdx],rcx
    "c742081f440000"  # mov dword [rdx+0x8],0x441f
    # out:
    "5b"  # pop rbx
    "c3"  # ret
)

# The beginning of helper_check_exit_request; what follows is Unicorn's own.
ASKED_X86: Final = bytes.fromhex(
    # slow-0x20:
    "488bbd58f7ffff"  # mov rdi,[rbp-0x8a8]
    "4c8b87b8010000"  # mov r8,[rdi+0x1b8]
    "418b80408a0000"  # mov eax,dword [r8+0x8a40]
    "85c0"  # test eax,eax
    "7807"  # js slow
    "c3"  # ret
    "660f1f440000"  # nop word [rax+rax*1+0x0]
)

ASKED_ARM: Final = bytes.fromhex(
    # slow-0x20:
    "488bbd58deffff"  # mov rdi,[rbp-0x21a8]
    "4c8b87b8010000"  # mov r8,[rdi+0x1b8]
    "418b8040a30000"  # mov eax,dword [r8+0xa340]
    "85c0"  # test eax,eax
    "7807"  # js slow
    "c3"  # ret
    "660f1f440000"  # nop word [rax+rax*1+0x0]
)

# In tlb_reset_dirty_by_vaddr, instead of a walk through all entries of a TLB: an address is in the
# one that its page number gives, if at all.
DIRTY_X86: Final = bytes.fromhex(
    # dirty:
    "4c89c2"  # mov rdx,r8
    # page:
    "4889d0"  # mov rax,rdx
    "48c1e806"  # shr rax,0x6
    "492302"  # and rax,[r10]
    "49034208"  # add rax,[r10+0x8]
    "488b4808"  # mov rcx,[rax+0x8]
    "f7c1400e0000"  # test ecx,0xe40
    "7516"  # jne next
    "4989c9"  # mov r9,rcx
    "4981e100f0ffff"  # and r9,0xfffffffffffff000
    "4939d1"  # cmp r9,rdx
    "7507"  # jne next
    "80cd04"  # or ch,0x4
    "48894808"  # mov [rax+0x8],rcx
    # next:
    "4881c200100000"  # add rdx,0x1000
    "4889d1"  # mov rcx,rdx
    "4c29c1"  # sub rcx,r8
    "4839f9"  # cmp rcx,rdi
    "72be"  # jb page
    "eb0e"  # jmp next+0x22
)

DIRTY_ARM: Final = bytes.fromhex(
    # dirty:
    "498bbaa8020000"  # mov rdi,[r10+0x2a8]
    "4c89ca"  # mov rdx,r9
    # page:
    "8b4f04"  # mov ecx,dword [rdi+0x4]
    "83e906"  # sub ecx,0x6
    "4889d0"  # mov rax,rdx
    "48d3e8"  # shr rax,cl
    "492303"  # and rax,[r11]
    "49034308"  # add rax,[r11+0x8]
    "488b4808"  # mov rcx,[rax+0x8]
    "f7c190030000"  # test ecx,0x390
    "7513"  # jne next
    "4989ce"  # mov r14,rcx
    "4c237708"  # and r14,[rdi+0x8]
    "4939d6"  # cmp r14,rdx
    "7507"  # jne next
    "80cd01"  # or ch,0x1
    "48894808"  # mov [rax+0x8],rcx
    # next:
    "482b5708"  # sub rdx,[rdi+0x8]
    "4889d1"  # mov rcx,rdx
    "4c29c9"  # sub rcx,r9
    "4c39c1"  # cmp rcx,r8
    "72bf"  # jb page
    "eb0e"  # jmp next+0x1f
)
