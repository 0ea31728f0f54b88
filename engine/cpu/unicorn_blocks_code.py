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
# front: the address of that one, of helper_check_exit_request, of `stop`, and the first 16 bytes
# of the clock's callback. It looks for the call of that check alone, or for
#     rdi = engine, esi = pc, edx = size, rcx = clock, call [callback]; the check
# behind a store of pc, where the block is neither in the machinery's windows nor of more than 127
# bytes, and makes of it, in the same room,
#     esi = pc, rcx = clock; cmp [rcx+0x20], rsi; je same; the tick, or jump to slow
#     same: add rsi, size; mov [rcx+0x20], rsi; cmp dword [rbp-0x10], 0; jge behind
#     slow: call [stop]; nop...
# Where the clock is to note where control has come from (0x68), the tick stands behind the block,
# whose size it gives back with that.
GENERATED: Final = bytes.fromhex(
    # generated:
    "55"  # push rbp
    "53"  # push rbx
    "51"  # push rcx
    "4889f3"  # mov rbx,rsi
    "ff15ccffffff"  # call [rip-0x34]
    "488b5320"  # mov rdx,[rbx+0x20]
    "4189c0"  # mov r8d,eax
    "83f810"  # cmp eax,0x10
    "0f8efe010000"  # jle end
    "66813a48bf"  # cmp word [rdx],0xbf48
    "750c"  # jne search
    "66817a0a33f6"  # cmp word [rdx+0xa],0xf633
    "0f84f1000000"  # je alone
    # search:
    "488d4207"  # lea rax,[rdx+0x7]
    "488d4a18"  # lea rcx,[rdx+0x18]
    # each:
    "66813848bf"  # cmp word [rax],0xbf48
    "740e"  # je found
    "4839c8"  # cmp rax,rcx
    "0f84d3010000"  # je end
    "48ffc0"  # inc rax
    "ebeb"  # jmp each
    # found:
    "80780abe"  # cmp byte [rax+0xa],0xbe
    "488d700f"  # lea rsi,[rax+0xf]
    "7428"  # je sized
    "668b480a"  # mov cx,word [rax+0xa]
    "488d7014"  # lea rsi,[rax+0x14]
    "6681f948be"  # cmp cx,0xbe48
    "7419"  # je sized
    "6681f948c7"  # cmp cx,0xc748
    "0f85aa010000"  # jne end
    "80780cc6"  # cmp byte [rax+0xc],0xc6
    "0f85a0010000"  # jne end
    "488d7011"  # lea rsi,[rax+0x11]
    # sized:
    "803eba"  # cmp byte [rsi],0xba
    "0f8593010000"  # jne end
    "66817e0548b9"  # cmp word [rsi+0x5],0xb948
    "0f8587010000"  # jne end
    "66817e0fff15"  # cmp word [rsi+0xf],0x15ff
    "0f857b010000"  # jne end
    "66817e1548bf"  # cmp word [rsi+0x15],0xbf48
    "0f856f010000"  # jne end
    "488b4802"  # mov rcx,[rax+0x2]
    "48394e17"  # cmp [rsi+0x17],rcx
    "0f8561010000"  # jne end
    "66817e1f33f6"  # cmp word [rsi+0x1f],0xf633
    "0f8555010000"  # jne end
    "440fb74b14"  # movzx r9d,word [rbx+0x14]
    "488d4e15"  # lea rcx,[rsi+0x15]
    "44394e01"  # cmp dword [rsi+0x1],r9d
    "754f"  # jne nclock
    "664183f97f"  # cmp r9w,0x7f
    "7748"  # ja nclock
    "488b7e07"  # mov rdi,[rsi+0x7]
    "4c8b0b"  # mov r9,[rbx]
    "4d89ca"  # mov r10,r9
    "4c2b5730"  # sub r10,[rdi+0x30]
    "4c3b5738"  # cmp r10,[rdi+0x38]
    "7234"  # jb nclock
    "4c2b4f40"  # sub r9,[rdi+0x40]
    "4c3b4f48"  # cmp r9,[rdi+0x48]
    "722a"  # jb nclock
    "48637e11"  # movsxd rdi,dword [rsi+0x11]
    "488d743e15"  # lea rsi,[rsi+rdi*1+0x15]
    "488b3de7feffff"  # mov rdi,[rip-0x119]
    "4c8b0e"  # mov r9,[rsi]
    "493939"  # cmp [r9],rdi
    "7512"  # jne nclock
    "4c8b1de0feffff"  # mov r11,[rip-0x120]
    "4d395908"  # cmp [r9+0x8],r11
    "7407"  # je check
    "eb03"  # jmp nclock
    # alone:
    "4889d1"  # mov rcx,rdx
    # nclock:
    "31c0"  # xor eax,eax
    # check:
    "80790ce8"  # cmp byte [rcx+0xc],0xe8
    "0f85eb000000"  # jne end
    "4863790d"  # movsxd rdi,dword [rcx+0xd]
    "488d7c3911"  # lea rdi,[rcx+rdi*1+0x11]
    "483b3da1feffff"  # cmp rdi,[rip-0x15f]
    "0f85d5000000"  # jne end
    "4885c0"  # test rax,rax
    "0f84b8000000"  # je plain
    "488b3d93feffff"  # mov rdi,[rip-0x16d]
    "48893e"  # mov [rsi],rdi
    "4989f1"  # mov r9,rsi
    "4c8b59f2"  # mov r11,[rcx-0xe]
    "488d700a"  # lea rsi,[rax+0xa]
    "4889d7"  # mov rdi,rdx
    "488d69eb"  # lea rbp,[rcx-0x15]
    # copy:
    "4839ee"  # cmp rsi,rbp
    "7303"  # jae copied
    "a4"  # movs byte es:[rdi],byte ds:[rsi]
    "ebf8"  # jmp copy
    # copied:
    "4889cd"  # mov rbp,rcx
    "4889f8"  # mov rax,rdi
    "488d35a2000000"  # lea rsi,[rip+0xa2]
    "6a37"  # push 0x37
    "59"  # pop rcx
    "41807b6800"  # cmp byte [r11+0x68],0x0
    "740a"  # je place
    "488d35c8000000"  # lea rsi,[rip+0xc8]
    "6a28"  # push 0x28
    "59"  # pop rcx
    # place:
    "f3a4"  # rep movs byte es:[rdi],byte ds:[rsi]
    "4c895802"  # mov [rax+0x2],r11
    "8a4314"  # mov al,byte [rbx+0x14]
    "8847ef"  # mov byte [rdi-0x11],al
    "8d4d17"  # lea ecx,[rbp+0x17]
    "29f9"  # sub ecx,edi
    "884ff9"  # mov byte [rdi-0x7],cl
    "4129f9"  # sub r9d,edi
    "44894ffc"  # mov dword [rdi-0x4],r9d
    "4889fe"  # mov rsi,rdi
    "488d4d11"  # lea rcx,[rbp+0x11]
    # nops:
    "4839cf"  # cmp rdi,rcx
    "7308"  # jae filled
    "c60790"  # mov byte [rdi],0x90
    "48ffc7"  # inc rdi
    "ebf3"  # jmp nops
    # filled:
    "41807b6800"  # cmp byte [r11+0x68],0x0
    "7451"  # je end
    "4a8d3c02"  # lea rdi,[rdx+r8*1]
    "4c8d4eec"  # lea r9,[rsi-0x14]
    "89f9"  # mov ecx,edi
    "4429c9"  # sub ecx,r9d
    "894ee8"  # mov dword [rsi-0x18],ecx
    "4989f2"  # mov r10,rsi
    "488d359d000000"  # lea rsi,[rip+0x9d]
    "6a39"  # push 0x39
    "59"  # pop rcx
    "4101c8"  # add r8d,ecx
    "f3a4"  # rep movs byte es:[rdi],byte ds:[rsi]
    "4129f9"  # sub r9d,edi
    "44894ffc"  # mov dword [rdi-0x4],r9d
    "418d4afa"  # lea ecx,[r10-0x6]
    "29f9"  # sub ecx,edi
    "8d4121"  # lea eax,[rcx+0x21]
    "8947db"  # mov dword [rdi-0x25],eax
    "83c12e"  # add ecx,0x2e
    "894fce"  # mov dword [rdi-0x32],ecx
    "eb14"  # jmp end
    # plain:
    "48b8837df0007d0b660f"  # movabs rax,0xf660b7d00f07d83
    "c741081f440000"  # mov dword [rcx+0x8],0x441f
    "488901"  # mov [rcx],rax
    # end:
    "5a"  # pop rdx
    "4489c0"  # mov eax,r8d
    "5b"  # pop rbx
    "5d"  # pop rbp
    "c3"  # ret
    # head:
    "48b98877665544332211"  # movabs rcx,0x1122334455667788
    "48397120"  # cmp [rcx+0x20],rsi
    "7413"  # je head_same
    "4883795800"  # cmp [rcx+0x58],0x0
    "751a"  # jne head_slow
    "4c8b09"  # mov r9,[rcx]
    "4983e901"  # sub r9,0x1
    "7211"  # jb head_slow
    "4c8909"  # mov [rcx],r9
    # head_same:
    "4883c67f"  # add rsi,0x7f
    "48897120"  # mov [rcx+0x20],rsi
    "837df000"  # cmp dword [rbp-0x10],0x0
    "7d00"  # jge head_slow
    # head_slow:
    "ff1500000000"  # call [rip+0x0]
    # noting:
    "48b98877665544332211"  # movabs rcx,0x1122334455667788
    "48397120"  # cmp [rcx+0x20],rsi
    "0f8500000000"  # jne noting_same
    # noting_same:
    "4883c67f"  # add rsi,0x7f
    "48897120"  # mov [rcx+0x20],rsi
    "837df000"  # cmp dword [rbp-0x10],0x0
    "7d00"  # jge noting_slow
    # noting_slow:
    "ff1500000000"  # call [rip+0x0]
    # elsewhere:
    "4883795800"  # cmp [rcx+0x58],0x0
    "0f8500000000"  # jne +0x28b
    "4c8b09"  # mov r9,[rcx]
    "4983e901"  # sub r9,0x1
    "0f8200000000"  # jb +0x298
    "4c8909"  # mov [rcx],r9
    "4c8b8108e0ffff"  # mov r8,[rcx-0x1ff8]
    "4c8b4920"  # mov r9,[rcx+0x20]
    "4c898110e0ffff"  # mov [rcx-0x1ff0],r8
    "4c898908e0ffff"  # mov [rcx-0x1ff8],r9
    "e900000000"  # jmp +0x2b9
)

# Called where the clock does not let the block begin, and where there may be another reason to
# stop. Behind it stands the address of helper_check_exit_request, where it goes on.
STOP_X86: Final = bytes.fromhex(
    # stop:
    "48397120"  # cmp [rcx+0x20],rsi
    "7410"  # je ask
    "48ff4110"  # inc [rcx+0x10]
    "51"  # push rcx
    "488bbd58f7ffff"  # mov rdi,[rbp-0x8a8]
    "ff5108"  # call [rcx+0x8]
    "59"  # pop rcx
    # ask:
    "ff2500000000"  # jmp [rip+0x0]
)

STOP_ARM: Final = bytes.fromhex(
    # stop:
    "48397120"  # cmp [rcx+0x20],rsi
    "7410"  # je ask
    "48ff4110"  # inc [rcx+0x10]
    "51"  # push rcx
    "488bbd58deffff"  # mov rdi,[rbp-0x21a8]
    "ff5108"  # call [rcx+0x8]
    "59"  # pop rcx
    # ask:
    "ff2500000000"  # jmp [rip+0x0]
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
