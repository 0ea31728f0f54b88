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
    "ff1547ffffff"  # call [rip-0xb9]
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
    "ff15c2ffffff"  # call [rip-0x3e]
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
    "ff150effffff"  # call [rip-0xf2]
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

# int tcg_gen_code(context, tb), which mends the beginning of what the real one has made. Words in
# front: the address of that one, of helper_check_exit_request, of what follows here, and the first
# 16 bytes of the clock's callback. It looks for the call of that check alone, or for
#     rdi = engine, esi = pc, edx = size, rcx = clock, call [callback]; the check
# behind a store of pc, where the block is neither in the machinery's windows nor of more than 127
# bytes, and makes of it
#     esi = pc, rcx = clock; xor eax, eax; cmp [rcx+0x20], rsi; je same; call [ticks]
#     same: add rsi, size; mov [rcx+0x20], rsi; mov [rcx+0x28], rax
#     cmp dword [rbp-0x10], 0; jge behind; nop...; call helper_check_exit_request
GENERATED: Final = bytes.fromhex(
    # generated:
    "55"  # push rbp
    "53"  # push rbx
    "4889f3"  # mov rbx,rsi
    "51"  # push rcx
    "ff15ccffffff"  # call [rip-0x34]
    "488b5320"  # mov rdx,[rbx+0x20]
    "4189c0"  # mov r8d,eax
    "83f810"  # cmp eax,0x10
    "0f8e02020000"  # jle +0x21e
    "66813a48bf"  # cmp word [rdx],0xbf48
    "750c"  # jne +0x2f
    "66817a0a33f6"  # cmp word [rdx+0xa],0xf633
    "0f84f9000000"  # je +0x128
    "488d4207"  # lea rax,[rdx+0x7]
    "488d4a18"  # lea rcx,[rdx+0x18]
    "66813848bf"  # cmp word [rax],0xbf48
    "740e"  # je +0x4c
    "4839c8"  # cmp rax,rcx
    "0f84d7010000"  # je +0x21e
    "48ffc0"  # inc rax
    "ebeb"  # jmp +0x37
    "80780abe"  # cmp byte [rax+0xa],0xbe
    "488d700f"  # lea rsi,[rax+0xf]
    "7428"  # je +0x7e
    "668b480a"  # mov cx,word [rax+0xa]
    "488d7014"  # lea rsi,[rax+0x14]
    "6681f948be"  # cmp cx,0xbe48
    "7419"  # je +0x7e
    "6681f948c7"  # cmp cx,0xc748
    "0f85ae010000"  # jne +0x21e
    "80780cc6"  # cmp byte [rax+0xc],0xc6
    "0f85a4010000"  # jne +0x21e
    "488d7011"  # lea rsi,[rax+0x11]
    "803eba"  # cmp byte [rsi],0xba
    "0f8597010000"  # jne +0x21e
    "66817e0548b9"  # cmp word [rsi+0x5],0xb948
    "0f858b010000"  # jne +0x21e
    "66817e0fff15"  # cmp word [rsi+0xf],0x15ff
    "0f857f010000"  # jne +0x21e
    "66817e1548bf"  # cmp word [rsi+0x15],0xbf48
    "0f8573010000"  # jne +0x21e
    "488b4802"  # mov rcx,[rax+0x2]
    "48394e17"  # cmp [rsi+0x17],rcx
    "0f8565010000"  # jne +0x21e
    "66817e1f33f6"  # cmp word [rsi+0x1f],0xf633
    "0f8559010000"  # jne +0x21e
    "440fb74b14"  # movzx r9d,word [rbx+0x14]
    "488d4e15"  # lea rcx,[rsi+0x15]
    "44394e01"  # cmp dword [rsi+0x1],r9d
    "7557"  # jne +0x12b
    "664183f97f"  # cmp r9w,0x7f
    "7750"  # ja +0x12b
    "488b7e07"  # mov rdi,[rsi+0x7]
    "4c8b0b"  # mov r9,[rbx]
    "4d89ca"  # mov r10,r9
    "4c2b5730"  # sub r10,[rdi+0x30]
    "4c3b5738"  # cmp r10,[rdi+0x38]
    "723c"  # jb +0x12b
    "4c2b4f40"  # sub r9,[rdi+0x40]
    "4c3b4f48"  # cmp r9,[rdi+0x48]
    "7232"  # jb +0x12b
    "48637e11"  # movsxd rdi,dword [rsi+0x11]
    "488d743e15"  # lea rsi,[rsi+rdi*1+0x15]
    "488b3de7feffff"  # mov rdi,[rip-0x119]
    "4c8b0e"  # mov r9,[rsi]
    "493939"  # cmp [r9],rdi
    "751a"  # jne +0x12b
    "31ff"  # xor edi,edi
    "4c8b1ddefeffff"  # mov r11,[rip-0x122]
    "4d395908"  # cmp [r9+0x8],r11
    "480f45c7"  # cmovne rax,rdi
    "480f45f7"  # cmovne rsi,rdi
    "eb07"  # jmp +0x12f
    "4889d1"  # mov rcx,rdx
    "31c0"  # xor eax,eax
    "31f6"  # xor esi,esi
    "80790ce8"  # cmp byte [rcx+0xc],0xe8
    "0f85e5000000"  # jne +0x21e
    "4863790d"  # movsxd rdi,dword [rcx+0xd]
    "488d7c3911"  # lea rdi,[rcx+rdi*1+0x11]
    "483b3d97feffff"  # cmp rdi,[rip-0x169]
    "0f85cf000000"  # jne +0x21e
    "4885c0"  # test rax,rax
    "0f84b2000000"  # je +0x20a
    "488b3d89feffff"  # mov rdi,[rip-0x177]
    "4c8d500a"  # lea r10,[rax+0xa]
    "448b49fc"  # mov r9d,dword [rcx-0x4]
    "488d69eb"  # lea rbp,[rcx-0x15]
    "48893e"  # mov [rsi],rdi
    "4c8b59f2"  # mov r11,[rcx-0xe]
    "4c89d6"  # mov rsi,r10
    "4889d7"  # mov rdi,rdx
    "4839ee"  # cmp rsi,rbp
    "7303"  # jae +0x180
    "a4"  # movs byte es:[rdi],byte ds:[rsi]
    "ebf8"  # jmp +0x178
    "488d71e1"  # lea rsi,[rcx-0x1f]
    "4829c6"  # sub rsi,rax
    "31c0"  # xor eax,eax
    "4c39d5"  # cmp rbp,r10
    "480f42f0"  # cmovb rsi,rax
    "488d0432"  # lea rax,[rdx+rsi*1]
    "48ba31c0483971207406"  # movabs rdx,0x67420713948c031
    "488d7018"  # lea rsi,[rax+0x18]
    "4889500a"  # mov [rax+0xa],rdx
    "4889ca"  # mov rdx,rcx
    "4829f2"  # sub rdx,rsi
    "66c70048b9"  # mov word [rax],0xb948
    "488d7111"  # lea rsi,[rcx+0x11]
    "4883c10c"  # add rcx,0xc
    "4101d1"  # add r9d,edx
    "66c74012ff15"  # mov word [rax+0x12],0x15ff
    "48ba4883c60048897120"  # movabs rdx,0x2071894800c68348
    "48895018"  # mov [rax+0x18],rdx
    "8b5314"  # mov edx,dword [rbx+0x14]
    "48bb48894128837df000"  # movabs rbx,0xf07d8328418948
    "66c740287d00"  # mov word [rax+0x28],0x7d
    "88501b"  # mov byte [rax+0x1b],dl
    "488d502a"  # lea rdx,[rax+0x2a]
    "4829d6"  # sub rsi,rdx
    "4c895802"  # mov [rax+0x2],r11
    "44894814"  # mov dword [rax+0x14],r9d
    "48895820"  # mov [rax+0x20],rbx
    "40887029"  # mov byte [rax+0x29],sil
    "4839ca"  # cmp rdx,rcx
    "731c"  # jae +0x21e
    "c60290"  # mov byte [rdx],0x90
    "48ffc2"  # inc rdx
    "ebf3"  # jmp +0x1fd
    "48b8837df0007d0b660f"  # movabs rax,0xf660b7d00f07d83
    "c741081f440000"  # mov dword [rcx+0x8],0x441f
    "488901"  # mov [rcx],rax
    "5a"  # pop rdx
    "4489c0"  # mov eax,r8d
    "5b"  # pop rbx
    "5d"  # pop rbp
    "c3"  # ret
)

# Called where control has come from elsewhere: what `native_code.BLOCK` does then. After a stop
# it gives back what leaves the clock as it was.
TICKS_X86: Final = bytes.fromhex(
    # tick:
    "4883795800"  # cmp [rcx+0x58],0x0
    "751d"  # jne stop
    "48832901"  # sub [rcx],0x1
    "7213"  # jb none
    "488b7950"  # mov rdi,[rcx+0x50]
    "4c8b4120"  # mov r8,[rcx+0x20]
    "4c8b0f"  # mov r9,[rdi]
    "4c894f08"  # mov [rdi+0x8],r9
    "4c8907"  # mov [rdi],r8
    "c3"  # ret
    # none:
    "48830101"  # add [rcx],0x1
    # stop:
    "48ff4110"  # inc [rcx+0x10]
    "51"  # push rcx
    "488bbd58f7ffff"  # mov rdi,[rbp-0x8a8]
    "ff5108"  # call [rcx+0x8]
    "59"  # pop rcx
    "488b0424"  # mov rax,[rsp]
    "480fbe5003"  # movsx rdx,byte [rax+0x3]
    "488b7120"  # mov rsi,[rcx+0x20]
    "4829d6"  # sub rsi,rdx
    "488b4128"  # mov rax,[rcx+0x28]
    "c3"  # ret
)

TICKS_ARM: Final = bytes.fromhex(
    # tick:
    "4883795800"  # cmp [rcx+0x58],0x0
    "751d"  # jne stop
    "48832901"  # sub [rcx],0x1
    "7213"  # jb none
    "488b7950"  # mov rdi,[rcx+0x50]
    "4c8b4120"  # mov r8,[rcx+0x20]
    "4c8b0f"  # mov r9,[rdi]
    "4c894f08"  # mov [rdi+0x8],r9
    "4c8907"  # mov [rdi],r8
    "c3"  # ret
    # none:
    "48830101"  # add [rcx],0x1
    # stop:
    "48ff4110"  # inc [rcx+0x10]
    "51"  # push rcx
    "488bbd58deffff"  # mov rdi,[rbp-0x21a8]
    "ff5108"  # call [rcx+0x8]
    "59"  # pop rcx
    "488b0424"  # mov rax,[rsp]
    "480fbe5003"  # movsx rdx,byte [rax+0x3]
    "488b7120"  # mov rsi,[rcx+0x20]
    "4829d6"  # sub rsi,rdx
    "488b4128"  # mov rax,[rcx+0x28]
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
